"""How often each scripted player wins: `python -m understudy.games.swarm.balance --matches 4000`.

The tables of `docs/adr/0002-swarm-rules.md` are what this prints.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.core.ops import NUMPY
from understudy.games.base import Bot
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
    state = game.start(NUMPY, seeds)
    score = np.zeros(len(seeds), np.float32)
    reward = np.zeros(len(seeds), np.float32)
    frames = np.zeros(len(seeds), np.int32)
    running = np.ones(len(seeds), np.bool_)
    for _ in range(game.max_frames):
        actions = bot.act(NUMPY, game.observe(NUMPY, state)[0], seeds, state.frame)
        after = game.step(NUMPY, state, actions[None])
        reward += np.where(running, game.reward(NUMPY, state, after)[0], np.float32(0))
        frames += running
        ended = running & game.over(NUMPY, after)
        score = np.where(ended, game.score(NUMPY, after)[0], score)
        running &= ~ended
        state = after
        if not running.any():
            break
    return Outcome(score, frames, reward, state.build)


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
