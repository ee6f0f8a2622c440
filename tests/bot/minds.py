"""Small bots and hand-made versions that the tests of the live room share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from understudy import Config, Understudy, with_values
from understudy.core.clock import Clock, SystemClock
from understudy.experience.episode import Episode
from understudy.experience.spool import Spool
from understudy.policy.mlp import Mlp
from understudy.policy.spec import AnyNetwork
from understudy.policy.transformer import Transformer
from understudy.policy.weights import Weights, encode
from understudy.promotion.promotion import Promotion
from understudy.registry.pointers import LATEST
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest
from understudy.telemetry.events import Event
from understudy.telemetry.journal import Reader

FEATURES = ("minerals", "army")
ACTIONS = ("left", "right", "wait")
SMALL = Mlp(widths=(8,))
REMEMBERING = Transformer(width=8, heads=2, layers=1, feed=8, window=4)


def mind(root: Path, **changes: Any) -> Understudy:
    """A bot that learns by playing, with nobody who learns, unless told otherwise."""
    kept = {
        "features": FEATURES,
        "actions": ACTIONS,
        "mode": "learn",
        "learner": "off",
        "network": SMALL,
        "seed": 1,
    }
    return Understudy.open(root, **{**kept, **changes})


def episodes(root: Path) -> list[Episode]:
    """What lies in the buffer, oldest first."""
    folder = RunFolder.load(root, SystemClock())
    spool = Spool(root, folder.spec, SystemClock())
    return [spool.load(name) for name in spool.pending()]


def journal(root: Path) -> list[Event]:
    return [entry.e for entry in Reader(root / "journal").new()]


def lively(folder: RunFolder, seed: int) -> Weights:
    """Weights far from those of every other seed, normaliser included."""
    rng = np.random.default_rng(seed)
    params = folder.spec.network.init(rng, len(folder.spec.features), folder.spec.actions.options)
    return Weights(
        params={
            name: (value + rng.standard_normal(value.shape)).astype(np.float32)
            for name, value in params.items()
        },
        obs_mean=rng.standard_normal(len(folder.spec.features)).astype(np.float32),
        obs_scale=np.exp(rng.standard_normal(len(folder.spec.features))).astype(np.float32),
        value_scale=np.float32(rng.random() + 0.5),
    )


def auto(
    root: Path, *, network: AnyNetwork = SMALL, clock: Clock | None = None, **promotion: Any
) -> Understudy:
    """A bot in mode auto, whose canary plays nearly every match and whose newest version has no
    matches to learn, unless told otherwise."""
    shares = {"first_share": 1 - 1e-9, "share": 1 - 1e-9, "holdout": 0.0, "practice_share": 0.0}
    changes = {**shares, **promotion}
    config = with_values(Config(), {f"promotion.{name}": v for name, v in changes.items()})
    return mind(root, mode="auto", config=config, network=network, clock=clock)


def tried(bot: Understudy, number: int, **fields: Any) -> None:
    """Publish a version, and have it tried."""
    publish(bot.folder, number, champion=False, **fields)
    assert Promotion(bot.folder).nominate(number, experience=0, reason="a test tries it")
    bot.refresh()


def publish(
    folder: RunFolder,
    number: int,
    *,
    champion: bool = True,
    weights: Weights | None = None,
    **fields: Any,
) -> None:
    """Commit a version as a learner would, without having learned anything."""
    manifest = Manifest(number=number, parent=None, created_at=0.0, spec=folder.spec, **fields)
    folder.versions.commit(manifest, {WEIGHTS: encode(weights or lively(folder, number))})
    folder.pointers.move("candidate", number, by=LATEST)
    if champion:
        folder.pointers.move("champion", number, by="test")
