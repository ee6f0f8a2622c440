"""Lockstep: the same seed gives the same versions, bit for bit; another seed gives others."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.gates.promotion.records import Assigned, Nominated, Paired, Record
from understudy.policy.mlp import Mlp
from understudy.promotion.log import PromotionLog
from understudy.registry import run_folder
from understudy.registry.versions import WEIGHTS
from understudy.run.play import PlaySession, play

SMALL = with_values(Config(), {"learner.batch_matches": 2, "learner.replay_matches": 2})


def run(folder: Path, seed: int, config: Config = SMALL, **changes: Any) -> list[str]:
    kept: dict[str, Any] = {"matches": 5, **changes}
    session = PlaySession(
        game="swarm",
        run=folder,
        difficulty="easy",
        seed=seed,
        lockstep=True,
        network=Mlp((8,)),
        config=with_values(config, {"learner.seed": seed}),
        **kept,
    )
    summary = play(session, show=lambda progress: None)
    assert summary.status.matches == summary.status.episodes.ingested == kept["matches"]
    versions = sorted((folder / "versions").iterdir())
    return [hashlib.sha256((path / WEIGHTS).read_bytes()).hexdigest() for path in versions]


def test_same_seed_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folder, "RUNS", tmp_path)
    first, again, other = (run(tmp_path / name, seed) for name, seed in
                           (("a", 3), ("b", 3), ("c", 4)))  # fmt: skip
    assert len(first) == 3
    assert len(set(first)) == 3
    assert first == again
    assert first != other


def test_declared_bounds_reach_the_normaliser(tmp_path: Path) -> None:
    run(tmp_path / "free", 3)
    run(tmp_path / "bound", 3, with_values(SMALL, {"features.bounds.minerals": [0, 0.01]}))
    means = []
    for name in ("free", "bound"):
        folder = run_folder.RunFolder.load(tmp_path / name, SystemClock())
        weights = folder.versions.policy(folder.versions.head() or 0).weights
        means.append(float(weights.obs_mean[folder.spec.features.index("minerals")]))
    assert means[0] > 0.02 and 0.0 < means[1] <= 0.01


def log_of(folder: Path) -> list[Record]:
    """The records of a run; a session's name has its process in it."""
    records = PromotionLog(folder / "promotion").new()
    return [msgspec.structs.replace(record, session="") for _, record in records]


AUTO = with_values(
    SMALL,
    {
        "promotion.first_matches": 2,
        "promotion.first_share": 0.5,
        "promotion.practice_share": 0.0,  # no version waits for practice
        "learner.learning_rate": 0.03,
        "learner.learning_rate_max": 0.03,  # versions that still choose evenly are not tried
    },
)


def in_auto(folder: Path, seed: int, config: Config = AUTO) -> tuple[list[str], list[Record]]:
    """The weights of its versions, and its log."""
    versions = run(folder, seed, config, matches=8, mode="auto", rules="economy")
    return versions, log_of(folder)


def test_mode_auto_repeats_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coins, nominations, results and times are the same."""
    monkeypatch.setattr(run_folder, "RUNS", tmp_path)
    first, again = in_auto(tmp_path / "a", 3), in_auto(tmp_path / "b", 3)
    assert first == again
    log = first[1]
    assert any(isinstance(record, Nominated) for record in log)
    coins = [record for record in log if isinstance(record, Assigned)]
    assert len(coins) == 8 and {coin.version > 0 for coin in coins} == {False, True}


def test_tests_by_a_simulator_repeat_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_folder, "RUNS", tmp_path)
    config = with_values(AUTO, {"promotion.evidence": "simulator"})
    first, again = (in_auto(tmp_path / name, 3, config) for name in ("a", "b"))
    assert first == again
    assert sum(isinstance(record, Paired) for record in first[1]) >= 2
    assert not any(isinstance(one, Assigned) and one.arm == "canary" for one in first[1])
