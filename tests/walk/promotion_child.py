"""A bot in mode `auto`, as a process: its rules hold or push by a coin, and one of both wins.

python -m tests.walk.promotion_child RUN MATCHES SEED push|hold
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from understudy import Understudy
from understudy.policy.mlp import Mlp

ACTIONS = ("hold", "push")


def play(run: Path, *, matches: int, seed: int, wins: str) -> None:
    """A match has four decisions; each that wins adds a fifth to the chance of victory."""
    rng = np.random.default_rng(seed)
    with Understudy.open(
        run,
        features=("one",),
        actions=ACTIONS,
        mode="auto",
        learner="off",
        network=Mlp(widths=()),
        rules="coin",
        seed=seed,
        settings={
            "promotion.first_matches": 10,
            "promotion.practice_share": 0,  # no version waits for practice
            "report.status_every_s": 0,
        },
    ) as mind:
        for _ in range(matches):
            mind.refresh()
            with mind.match(opponent="wall") as match:
                good = sum(
                    match.decide([1.0], fallback=ACTIONS[rng.integers(2)]) == wins for _ in range(4)
                )
                match.finish("victory" if rng.random() < 0.1 + 0.2 * good else "defeat")


if __name__ == "__main__":
    run, matches, seed, wins = sys.argv[1:]
    play(Path(run), matches=int(matches), seed=int(seed), wins=wins)
