"""Runs of swarm whose versions are scripted: each holds one strategy from the first frame on."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from understudy.core.clock import Clock, SystemClock
from understudy.core.config import Config, with_values
from understudy.games import catalog
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights, encode
from understudy.registry.checkpoints import MATCHES
from understudy.registry.pointers import LATEST
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest

NETWORK = Mlp((4,))
OPTIONS = {"difficulty": "hard"}
WORST = "all_in"
"""Wins 9% of matches v hard; the strategy DEFENSIVE wins 36%, AGGRESSIVE 29%, the rules 46%."""


def settings(**promotion: object) -> Config:
    quick: dict[str, object] = {"first_matches": 1, **promotion}
    return with_values(Config(), {f"promotion.{name}": one for name, one in quick.items()})


def run_of_swarm(
    root: Path, *, config: Config | None = None, clock: Clock | None = None
) -> RunFolder:
    game = catalog.make("swarm")
    spec = PolicySpec(game.features, game.actions, NETWORK)
    return RunFolder.open(
        root,
        spec=spec,
        config=config or settings(),
        clock=clock or SystemClock(),
        game=f"swarm {game.version}",
    )


def commit(
    folder: RunFolder, number: int, strategy: str, *, matches: int = 100, finite: bool = True
) -> None:
    """A version that plays one strategy nearly always, and has learned from so many matches."""
    actions = folder.spec.actions
    params = NETWORK.init(None, len(folder.spec.features), actions.options)
    params = {name: np.zeros_like(one) for name, one in params.items()}
    params["policy.b"][actions.names.index(strategy)] = 12.0  # type: ignore[union-attr]
    params["value.b"][0] = 0.0 if finite else np.nan
    features = len(folder.spec.features)
    weights = Weights(
        params=params,
        obs_mean=np.zeros(features, np.float32),
        obs_scale=np.ones(features, np.float32),
        value_scale=np.float32(1.0),
    )
    manifest = Manifest(
        number=number,
        parent=None,
        created_at=0.0,
        spec=folder.spec,
        counters={MATCHES: matches},
    )
    folder.versions.commit(manifest, {WEIGHTS: encode(weights)})
    folder.pointers.move("candidate", number, by=LATEST)
