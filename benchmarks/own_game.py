"""A custom game in the arena: speed and strength of docs/examples/tictactoe.py.

python benchmarks/own_game.py [--steps 6M] [--seeds 2]

Trains as docs/your-own-game.md does, through the command line, and judges the likeliest actions in
frozen matches. The bounds are those of the game itself: the best player against `random`, and the
best one that never loses, by exhaustive search.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from machine import describe

GAME = Path(__file__).parents[1] / "docs" / "examples" / "tictactoe.py"
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
WINS, LOSSES = 0.95, 0.002
"""The goal: the share of wins against `random`, and of losses at most."""
Board = tuple[int, ...]


@cache
def against_random(board: Board, turn: int, own: int, caution: float) -> tuple[float, float]:
    """Chances to win and to lose, where a loss weighs `caution` wins."""
    for player in (1, 2):
        if any(all(board[cell] == player for cell in line) for line in LINES):
            return (1.0, 0.0) if player == own else (0.0, 1.0)
    empty = [cell for cell in range(9) if not board[cell]]
    if not empty:
        return 0.0, 0.0
    after = [
        against_random((*board[:cell], turn, *board[cell + 1 :]), 3 - turn, own, caution)
        for cell in empty
    ]
    if turn == own:
        return max(after, key=lambda chances: chances[0] - caution * chances[1])
    return sum(one[0] for one in after) / len(after), sum(one[1] for one in after) / len(after)


def bound(caution: float) -> tuple[float, float]:
    """The same over both sides."""
    both = [against_random((0,) * 9, 1, own, caution) for own in (1, 2)]
    return (both[0][0] + both[1][0]) / 2, (both[0][1] + both[1][1]) / 2


def understudy(folder: Path, *args: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "understudy", *args, "--json"],
        cwd=folder, check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default="6M")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--matches", type=int, default=2000)
    asked = parser.parse_args()
    print(describe("jax"))
    for words, caution in (
        ("a player that weighs a loss as a win", 1.0),
        ("one that never loses", 1e6),
    ):
        won, lost = bound(caution)
        print(f"bound v random, {words}: wins {won:.2%}, loses {lost:.2%}")
    met = True
    with tempfile.TemporaryDirectory() as name:
        folder, game = Path(name), f"{GAME}:TicTacToe"
        for seed in range(asked.seeds):
            run = f"runs/seed-{seed}"
            trained = understudy(
                folder, "train", game, "--opponents", "all,self=2", "--steps", asked.steps,
                "--seed", str(seed), "--run", run,
            )  # fmt: skip
            judged = understudy(
                folder, "eval", game, "--agent", run, "--greedy", "--matches", str(asked.matches)
            )["opponents"]
            rate, losses = (judged["random"][key] / asked.matches for key in ("wins", "losses"))
            good = rate >= WINS and losses <= LOSSES and judged["rules"]["losses"] == 0
            met = met and good
            print(
                f"seed {seed}: {trained['steps']:,} steps in {trained['seconds']:.0f} s, "
                f"{trained['steps_s']:,.0f} a second, compiled in {trained['compiled_s']:.0f} s; "
                f"v random wins {rate:.2%}, loses {losses:.2%}; v rules loses "
                f"{judged['rules']['losses']} of {asked.matches}: {'met' if good else 'NOT met'}",
                flush=True,
            )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
