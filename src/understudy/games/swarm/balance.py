"""Win rates of the scripted bots: `python -m understudy.games.swarm.balance --matches 4000`.

It prints the tables of `docs/adr/0002-swarm-rules.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.core.ops import NUMPY
from understudy.games.base import Bot
from understudy.games.frame import bot_frames
from understudy.games.swarm import tables
from understudy.games.swarm.bots import BOTS
from understudy.games.swarm.rules import Swarm

HELD_OUT = 2_700_000_029
"""The first of the seeds that tables are made from: first used after the rules were frozen."""


class Outcome(NamedTuple):
    """How B matches ended."""

    score: NDArray[np.float32]
    """[B]: +1 win, 0 draw, -1 loss."""
    frames: NDArray[np.int32]
    """[B]"""
    reward: NDArray[np.float32]
    """[B]: all rewards of a match."""
    build: NDArray[np.int32]
    """[B]: what the enemy played."""

    @property
    def wins(self) -> float:
        """The share of matches that were won."""
        return float((self.score > 0).mean())

    def wins_against(self, build: int) -> float:
        """The share of wins among the matches against one build."""
        return float((self.score[self.build == build] > 0).mean())


def play(game: Swarm, bot: Bot, seeds: NDArray[np.uint32]) -> Outcome:
    """One match for each seed, side by side, to the end."""
    matches = len(seeds)
    score, reward = np.zeros(matches, np.float32), np.zeros(matches, np.float32)
    frames, build = np.zeros(matches, np.int32), np.zeros(matches, np.int32)
    for open_matches, frame in bot_frames(game, [bot], seeds, np.zeros(matches, np.bool_)):
        before, after = frame.moment.before, frame.moment.after
        reward[open_matches] += game.reward(NUMPY, before, after)[0]
        frames[open_matches] += 1
        ended = open_matches[frame.over]
        score[ended], build[ended] = frame.score[frame.over], after.build[frame.over]
    return Outcome(score, frames, reward, build)


def seeds_held_out(matches: int) -> NDArray[np.uint32]:
    """Seeds for tables and tests, uint32 [matches]."""
    return np.arange(HELD_OUT, HELD_OUT + matches, dtype=np.uint32)


def _row(name: str, outcome: Outcome) -> str:
    builds = " ".join(f"{outcome.wins_against(index):6.0%}" for index in range(len(tables.BUILDS)))
    draws = float((outcome.score == 0).mean())
    return (
        f"{name:<11} {outcome.wins:6.1%} {draws:6.1%} {outcome.frames.mean():6.0f} "
        f"{outcome.reward.mean():7.2f} {builds}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one table for each difficulty."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, default=4000)
    parser.add_argument("--difficulty", choices=tuple(tables.DIFFICULTIES), action="append")
    options = parser.parse_args(arguments)
    seeds = seeds_held_out(options.matches)
    builds = " ".join(f"{build.race[0]}/{build.name[:4]:<4}" for build in tables.BUILDS)
    for difficulty in options.difficulty or tables.DIFFICULTIES:
        print(f"\n{difficulty}, {options.matches} matches, swarm version {tables.VERSION}")
        print(f"{'player':<11} {'wins':>6} {'draws':>6} {'frames':>6} {'reward':>7} {builds}")
        for name, bot in BOTS.items():
            print(_row(name, play(Swarm(difficulty), bot, seeds)))


if __name__ == "__main__":
    main()
