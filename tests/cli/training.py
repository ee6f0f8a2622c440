"""How the tests of `understudy train` call it: one small arena, compiled once for all of them."""

from __future__ import annotations

import sys
from pathlib import Path

ROLLOUT, STAGED_ROLLOUT = 64, 2048
_SETTINGS = (
    "train.games=8",
    "train.segment=8",
    "train.groups=2",
    "learner.minibatches=2",
    "learner.epochs=1",
)
SMALL: tuple[object, ...] = ("--network", "mlp", *(f for s in _SETTINGS for f in ("--set", s)))
TINY: tuple[object, ...] = (*SMALL, "--config", "small", "--opponents", "random,self")

_STAGES = """
extends = "small"

[train]
games = 32
segment = 64
groups = 2

[learner]
minibatches = 2
epochs = 1

[league]
stint = 1
max_saved = 1000

[[curriculum.stages]]
name = "first"
opponents = "random"
measure = "score:random"
threshold = 0.02
min_matches = 4
confidence = 0.5
window = 32

[[curriculum.stages]]
name = "second"
opponents = "self=2,random=1"
"""


def command(*args: object) -> list[str]:
    """`understudy train brawl` in a process of its own."""
    return [sys.executable, "-m", "understudy", "train", "brawl", *map(str, args)]


def staged(path: Path) -> Path:
    """A file of settings: two stages, the first soon over, the second with snapshots."""
    path.write_text(_STAGES, encoding="utf-8")
    return path
