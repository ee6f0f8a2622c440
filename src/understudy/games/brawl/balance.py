"""How the scripted players fare against each other: `python -m understudy.games.brawl.balance`.

The table of `docs/brawl.md` is what this prints. Every pair plays half of its matches in either
slot; the seeds were first used after the rules were frozen. It plays by a loop of its own, since
games know nothing of `match`, the room above them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.core import chance
from understudy.core.ops import NUMPY
from understudy.games.base import Bot, Game
from understudy.games.brawl import tables
from understudy.games.brawl.bots import BOTS
from understudy.games.brawl.rules import Brawl

HELD_OUT = 2_900_000_011
"""The first of the seeds that tables are made from: first used after the rules were frozen."""


class Outcome(NamedTuple):
    """How B matches ended, each from both slots."""

    score: NDArray[np.float32]
    """[2, B]: +1 win, 0 draw, -1 loss."""
    frames: NDArray[np.int32]
    """[B]"""
    stocks: NDArray[np.float32]
    """[2, B]: left at the end."""


def play(game: Game, bots: tuple[Bot, Bot], seeds: NDArray[np.uint32]) -> Outcome:
    """One match for each seed, side by side, to the end; bots by slot."""
    state = game.start(NUMPY, seeds)
    noise = [np.asarray(chance.fold(seeds, slot + 1)) for slot in range(2)]
    score = np.zeros((2, len(seeds)), np.float32)
    stocks = np.zeros((2, len(seeds)), np.float32)
    frames = np.zeros(len(seeds), np.int32)
    left = np.arange(len(seeds))
    while len(left):
        obs = game.observe(NUMPY, state)
        actions = np.stack(
            [bot.act(NUMPY, obs[k], noise[k][left], state.frame) for k, bot in enumerate(bots)]
        )
        state = game.step(NUMPY, state, actions)
        over = game.over(NUMPY, state)
        if over.any():
            ended = left[over]
            score[:, ended] = game.score(NUMPY, state)[:, over]
            stocks[:, ended] = state.stocks[:, over]
            frames[ended] = state.frame[over]
            left = left[~over]
            state = type(state)(*(leaf[..., ~over] for leaf in state))
    return Outcome(score, frames, stocks)


def meet(one: str, two: str, seeds: NDArray[np.uint32]) -> Outcome:
    """Matches of two bots by name, half of them in exchanged slots; `one` is row 0."""
    half = len(seeds) // 2
    there = play(Brawl(), (BOTS[one], BOTS[two]), seeds[:half])
    back = play(Brawl(), (BOTS[two], BOTS[one]), seeds[half:])
    return Outcome(
        np.concatenate([there.score, back.score[::-1]], axis=1),
        np.concatenate([there.frames, back.frames]),
        np.concatenate([there.stocks, back.stocks[::-1]], axis=1),
    )


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
