"""Rewards of the scripted queens: `python -m understudy.games.territory.balance --matches 400`.

It prints the table of `docs/territory.md`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.core.ops import NUMPY
from understudy.games.base import Bot
from understudy.games.frame import bot_frames
from understudy.games.territory import tables
from understudy.games.territory.bots import BOTS, Single
from understudy.games.territory.rules import Territory
from understudy.games.territory.state import chunk_of

HELD_OUT = 2_900_000_011
"""The first of the seeds that tables are made from: first used after the rules were frozen."""


class Outcome(NamedTuple):
    """How B matches went."""

    reward: NDArray[np.float32]
    """[B]: the mean reward of a tick."""
    score: NDArray[np.float32]
    """[B]"""
    mined: NDArray[np.float32]
    """[B]: the share of all that could have been mined."""
    style: NDArray[np.int32]
    """[B]: whom she met."""
    spawns: NDArray[np.int64]
    """[513]: how often each action was executed."""

    def reward_against(self, style: int) -> float:
        """The mean reward of a tick against one style; nan where she never met it."""
        met = self.reward[self.style == style]
        return float(met.mean()) if met.size else math.nan

    @property
    def largest_share(self) -> float:
        """The share of spawns at the chunk that got most of them; 0 without spawns."""
        at = self.spawns[1:].reshape(tables.CHUNKS, -1).sum(axis=1)
        return float(at.max() / max(at.sum(), 1))


def play(bot: Bot, seeds: NDArray[np.uint32]) -> Outcome:
    """One match for each seed, side by side, to the end; all are equally long."""
    game = Territory()
    total = np.zeros(len(seeds), np.float32)
    spawns = np.zeros(tables.OPTIONS, np.int64)
    for _, frame in bot_frames(game, [bot], seeds, np.zeros(len(seeds), np.bool_)):
        before, after = frame.moment.before, frame.moment.after
        total += game.reward(NUMPY, before, after)[0]
        spawns += np.bincount(after.spawned, minlength=tables.OPTIONS)
    mined = after.minerals[1] / (after.workers * game.max_frames).astype(np.float32)
    reward = total / np.float32(game.max_frames)
    return Outcome(reward, frame.score, mined, after.style, spawns)


def best_single_chunk(seeds: NDArray[np.uint32]) -> NDArray[np.float32]:
    """What always spawning at one chunk earns, [matches]: in each match the best one in hindsight,
    of those where there is ore when it begins."""
    vein = chunk_of(Territory().start(NUMPY, seeds).vein)
    earned = play(Single(vein.reshape(-1)), np.tile(seeds, tables.VEINS)).reward
    best: NDArray[np.float32] = earned.reshape(tables.VEINS, len(seeds)).max(axis=0)
    return best


def seeds_held_out(matches: int) -> NDArray[np.uint32]:
    """Seeds for tables and tests, uint32 [matches]."""
    return np.arange(HELD_OUT, HELD_OUT + matches, dtype=np.uint32)


def _row(name: str, outcome: Outcome) -> str:
    styles = " ".join(f"{outcome.reward_against(i):9.3f}" for i in range(len(tables.STYLES)))
    won, lost = (outcome.score > 0).mean(), (outcome.score < 0).mean()
    return (
        f"{name:<10} {outcome.reward.mean():7.3f} {outcome.mined.mean():6.1%} {won:5.0%} "
        f"{lost:5.0%} {styles}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, default=400)
    options = parser.parse_args(arguments)
    seeds = seeds_held_out(options.matches)
    styles = " ".join(f"{style.name:>9}" for style in tables.STYLES)
    print(f"{options.matches} matches, territory version {tables.VERSION}")
    print(f"{'player':<10} {'reward':>7} {'mined':>6} {'won':>5} {'lost':>5} {styles}")
    for name, bot in BOTS.items():
        print(_row(name, play(bot, seeds)))
    few = seeds[: max(len(seeds) // tables.VEINS, 1)]
    print(f"one chunk, the best in hindsight: {best_single_chunk(few).mean():.3f}")


if __name__ == "__main__":
    main()
