"""Lockstep: the same seed gives the same versions, bit for bit; another seed gives others."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from understudy.core.config import Config, with_values
from understudy.policy.mlp import Mlp
from understudy.registry import run_folder
from understudy.registry.versions import WEIGHTS
from understudy.run.play import PlaySession, play

SMALL = with_values(Config(), {"learner.batch_matches": 2, "learner.replay_matches": 2})


def run(folder: Path, seed: int) -> list[str]:
    session = PlaySession(
        game="swarm",
        run=folder,
        difficulty="easy",
        matches=5,
        seed=seed,
        lockstep=True,
        network=Mlp((8,)),
        config=with_values(SMALL, {"learner.seed": seed}),
    )
    summary = play(session, show=lambda progress: None)
    assert summary.status.matches == 5
    assert summary.status.episodes.ingested == 5
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
