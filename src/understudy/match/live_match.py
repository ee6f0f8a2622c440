"""One live match of a game under NumPy, seen from one side, and the seeds of matches."""

from __future__ import annotations

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.chance import fold, side_key
from understudy.core.ops import NUMPY
from understudy.games.base import Bot, Game

TRAINING, EVALUATION, SIMULATION = 1, 2, 3
"""Purposes of matches: learning, measuring, and tests of versions by simulated matches. Their seeds
never meet."""


def match_seeds(seed: int, indices: NDArray, *, purpose: int, series: int = 0) -> NDArray:
    """uint32 [N]: the seeds of matches number `indices` of a run with this seed.

    Each `series` of one purpose has seeds of its own, such as the matches of each test.
    """
    key = fold(fold(np.full(1, purpose, np.uint32), seed & 0xFFFFFFFF), seed >> 32)
    if series:
        key = fold(key, series)
    return np.asarray(fold(key, indices.astype(np.uint32)))


class LiveMatch:
    """A match in progress. All arrays are of this one match: [F], [options]."""

    def __init__(self, game: Game, seed: int, *, side: int = 0) -> None:
        self.game = game
        self._side = side
        self._state = game.start(NUMPY, np.array([seed], np.uint32))
        self._actions = np.zeros((game.players, len(game.actions.parts), 1), np.int32)
        self._key = side_key(NUMPY, np.array([seed], np.uint32), side)
        self._frame = np.zeros(1, np.int32)
        self.over = False

    @property
    def tags(self) -> dict[str, str]:
        """What to remember this match by."""
        return dict(self.game.tags(self._state, 0))

    def observe(self) -> NDArray:
        """What this side sees, float32 [F]."""
        seen: NDArray = self.game.observe(NUMPY, self._state)[self._side, :, 0]
        return seen

    def legal(self) -> NDArray:
        """What this side may do, bool [options]."""
        allowed: NDArray = self.game.legal(NUMPY, self._state)[self._side, :, 0]
        return allowed

    def scripted(self, bot: Bot, seen: NDArray) -> NDArray:
        """What a bot does here, int32 [parts], from what it sees, `observe()`; as a `BotPlayer`
        does in this match."""
        chosen: NDArray = bot.act(NUMPY, seen[:, None], self._key, self._frame)[:, 0]
        return chosen

    def act(self, action: NDArray | int) -> float:
        """One frame further; returns the reward."""
        self._frame = self._frame + np.int32(1)
        self._actions[self._side, :, 0] = action
        before, self._state = self._state, self.game.step(NUMPY, self._state, self._actions)
        self.over = bool(self.game.over(NUMPY, self._state)[0])
        return float(self.game.reward(NUMPY, before, self._state)[self._side, 0])

    def outcome(self) -> str:
        """victory, defeat or tie."""
        score = float(self.game.score(NUMPY, self._state)[self._side, 0])
        return "victory" if score > 0 else "defeat" if score < 0 else "tie"
