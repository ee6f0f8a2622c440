"""Results of the scripted bots against each other: `python -m understudy.games.brawl.balance`.

It prints the tables of `docs/brawl.md`. Every pair plays half of its matches on either side; the
seeds were first used after the rules were frozen.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.core.ops import NUMPY
from understudy.games.brawl import tables
from understudy.games.brawl.bots import BOTS
from understudy.games.brawl.rules import Brawl
from understudy.games.frame import bot_frames, by_side

HELD_OUT = 2_900_000_011
"""The first of the seeds that tables are made from: first used after the rules were frozen."""


class Outcome(NamedTuple):
    """How B matches of two bots ended; the first bot is row 0."""

    score: NDArray[np.float32]
    """[2, B]: +1 win, 0 draw, -1 loss."""
    frames: NDArray[np.int32]
    """[B]"""
    stocks: NDArray[np.float32]
    """[2, B]: left at the end."""


def meet(one: str, two: str, seeds: NDArray[np.uint32]) -> Outcome:
    """One match for each seed between two bots by name; `one` is the second player in the last
    half of them."""
    matches = len(seeds)
    second = np.arange(matches) >= matches // 2
    score, stocks = np.zeros((2, matches), np.float32), np.zeros((2, matches), np.float32)
    frames = np.zeros(matches, np.int32)
    for open_matches, frame in bot_frames(Brawl(), (BOTS[one], BOTS[two]), seeds, second):
        ended, stocks_left = open_matches[frame.over], frame.moment.after.stocks[:, frame.over]
        frames[open_matches] += 1
        score[:, ended] = frame.score[frame.over], -frame.score[frame.over]
        stocks[:, ended] = by_side(NUMPY, second[ended], stocks_left)
    return Outcome(score, frames, stocks)


def seeds_held_out(matches: int) -> NDArray[np.uint32]:
    """Seeds for tables and tests, uint32 [matches]."""
    return np.arange(HELD_OUT, HELD_OUT + matches, dtype=np.uint32)


def _cell(outcome: Outcome) -> str:
    wins = int((outcome.score[0] > 0).sum())
    draws = int((outcome.score[0] == 0).sum())
    losses = int((outcome.score[0] < 0).sum())
    return f"{wins}-{draws}-{losses}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print wins, draws and losses of each row against each column, and how long matches took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matches", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=HELD_OUT)
    options = parser.parse_args(arguments)
    seeds = seeds_held_out(options.matches) - np.uint32(HELD_OUT) + np.uint32(options.first_seed)
    names = tuple(BOTS)
    print(f"brawl version {tables.VERSION}, {options.matches} matches a pair: wins-draws-losses\n")
    print("| row against column | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    pairs: dict[tuple[str, str], Outcome] = {}
    for one in names:
        cells = []
        for two in names:
            if (two, one) in pairs and one != two:
                kept = pairs[two, one]
                pairs[one, two] = kept._replace(score=kept.score[::-1], stocks=kept.stocks[::-1])
            else:
                pairs[one, two] = meet(one, two, seeds)
            cells.append(_cell(pairs[one, two]))
        print(f"| **{one}** | " + " | ".join(cells) + " |", flush=True)
    print("\n| seconds a match, mean | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    for one in names:
        means = (pairs[one, two].frames.mean() / tables.FRAMES_PER_S for two in names)
        print(f"| **{one}** | " + " | ".join(f"{mean:.0f}" for mean in means) + " |")


if __name__ == "__main__":
    main()
