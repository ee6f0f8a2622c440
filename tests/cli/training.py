"""How the tests of `understudy train` call it: one small arena, compiled once for all of them."""

from __future__ import annotations

import sys

ROLLOUT = 64
_SETTINGS = (
    "train.games=8",
    "train.segment=8",
    "train.groups=2",
    "learner.minibatches=2",
    "learner.epochs=1",
)
TINY: tuple[object, ...] = (
    *("--preset", "mlp", "--config", "small", "--opponents", "random,self", "--delay", 2),
    *(flag for one in _SETTINGS for flag in ("--set", one)),
)


def command(*args: object) -> list[str]:
    """`understudy train brawl` in a process of its own."""
    return [sys.executable, "-m", "understudy", "train", "brawl", *map(str, (*TINY, *args))]
