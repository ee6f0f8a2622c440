"""Tic-tac-toe as a game of Understudy: rules as array functions over B matches at once.

understudy train docs/examples/tictactoe.py:TicTacToe

The batch is the last axis of every array. `ops.xp` is NumPy in one process and JAX in another.
"""

from typing import NamedTuple

import numpy as np

from understudy import Discrete
from understudy.games import chance
from understudy.games.shapes import BACKGROUND, FIRST, GREY, SECOND, Disc, Drawing, Line, View

LINES = np.array(
    [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]]
)
WAIT = 9  # the option of the side that is not on turn


class State(NamedTuple):
    board: np.ndarray  # int32 [9, B]: 0 empty, 1 the first player's, 2 the second's
    frame: np.ndarray  # int32 [B]


class TicTacToe:
    """Three in a row on nine cells; the sides take turns."""

    name = "tictactoe"
    version = 1  # raise it with every change that changes a match
    players = 2
    features = (
        *(f"mine_{cell}" for cell in range(9)),
        *(f"theirs_{cell}" for cell in range(9)),
        "my_turn",
    )
    actions = Discrete((*(f"cell_{cell}" for cell in range(9)), "wait"))
    max_frames = 9

    def start(self, ops, seeds):
        empty = ops.xp.zeros((9, seeds.shape[0]), ops.xp.int32)
        return State(board=empty, frame=empty[0])

    def step(self, ops, state, actions):
        xp = ops.xp
        turn = state.frame % 2
        chosen = xp.where(turn == 0, actions[0, 0], actions[1, 0])
        here = xp.arange(9, dtype=xp.int32)[:, None] == chosen
        return State(
            board=xp.where(here & ~self.over(ops, state), turn + 1, state.board).astype(xp.int32),
            frame=state.frame + xp.int32(1),
        )

    def observe(self, ops, state):
        xp, turn = ops.xp, state.frame % 2
        marks = [(state.board == player).astype(xp.float32) for player in (1, 2)]
        on_turn = [(turn == player).astype(xp.float32)[None] for player in (0, 1)]
        return xp.stack(
            [
                xp.concatenate([marks[0], marks[1], on_turn[0]]),
                xp.concatenate([marks[1], marks[0], on_turn[1]]),
            ]
        )

    def legal(self, ops, state):
        xp, turn = ops.xp, state.frame % 2
        empty = state.board == 0
        sides = [
            xp.concatenate([empty & (turn == player), (turn != player)[None]]) for player in (0, 1)
        ]
        # A full board is over; its side on turn may choose anything.
        full = xp.concatenate([~empty.any(0)[None].repeat(9, 0), xp.zeros_like(turn)[None] > 0])
        return xp.stack(sides) | full

    def reward(self, ops, before, after):
        return self.score(ops, after)

    def over(self, ops, state):
        return self._won(ops, state, 1) | self._won(ops, state, 2) | (state.board > 0).all(0)

    def score(self, ops, state):
        first = self._won(ops, state, 1).astype(ops.xp.float32)
        second = self._won(ops, state, 2).astype(ops.xp.float32)
        return ops.xp.stack([first - second, second - first])

    def tags(self, state, index):
        return {}

    def draw(self, state, index):
        """For `understudy watch`: shapes in units of cells, y up."""
        shapes = [Line(at, 0, at, 3, 0.05, GREY) for at in (1, 2)]
        shapes += [Line(0, at, 3, at, 0.05, GREY) for at in (1, 2)]
        for cell, mark in enumerate(state.board[:, index]):
            x, y = cell % 3 + 0.5, 2.5 - cell // 3
            if mark == 1:
                shapes.append(Line(x - 0.3, y - 0.3, x + 0.3, y + 0.3, 0.12, FIRST))
                shapes.append(Line(x - 0.3, y + 0.3, x + 0.3, y - 0.3, 0.12, FIRST))
            elif mark == 2:
                shapes.append(Disc(x, y, 0.34, SECOND))
                shapes.append(Disc(x, y, 0.2, BACKGROUND))
        return Drawing(View(-0.1, -0.1, 3.1, 3.1), shapes, notes=("crosses", "noughts"))

    def _won(self, ops, state, player):
        return (state.board[LINES] == player).all(1).any(0)


class Random:
    """Any empty cell, each as likely."""

    def act(self, ops, obs, seeds, frame):
        return _best(ops, obs, seeds, frame, np.zeros((9, 1), np.float32))


class Rules:
    """Wins where it can, blocks where it must, else prefers the centre and the corners."""

    taste = np.array([2, 1, 2, 1, 3, 1, 2, 1, 2], np.float32)[:, None]

    def act(self, ops, obs, seeds, frame):
        xp = ops.xp
        mine, theirs = obs[:9], obs[9:18]
        completes = xp.zeros_like(mine)
        for marks, worth in ((theirs, 10.0), (mine, 100.0)):
            for line in LINES:
                ready = (marks[line].sum(0) == 2).astype(xp.float32) * np.float32(worth)
                here = (np.arange(9)[:, None] == line).any(1).astype(np.float32)[:, None]
                completes = completes + here * ready
        return _best(ops, obs, seeds, frame, completes + self.taste)


def _best(ops, obs, seeds, frame, worth):
    """The empty cell that is worth most, ties by chance; `WAIT` where it is not our turn."""
    xp = ops.xp
    key = chance.fold(seeds, frame.astype(xp.uint32))
    noise = chance.uniform(ops, key, np.arange(9, dtype=np.uint32))
    taken = obs[:9] + obs[9:18]
    cell = (worth + noise - taken * np.float32(1000)).argmax(0)
    return xp.where(obs[18] > 0, cell, WAIT).astype(xp.int32)[None]


BOTS = {"random": Random(), "rules": Rules()}
