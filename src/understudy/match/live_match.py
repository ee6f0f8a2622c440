"""One live match of a game under NumPy, seen from one side, and the seeds of matches."""

from __future__ import annotations

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.chance import fold
from understudy.core.ops import NUMPY
from understudy.games.base import Game

TRAINING, EVALUATION = 1, 2
"""Seeds of matches that are learned from, and of matches that only measure, never meet."""


def match_seeds(seed: int, indices: NDArray, *, purpose: int) -> NDArray:
    """uint32 [N]: the seeds of matches number `indices` of a run with this seed."""
    key = fold(fold(np.full(1, purpose, np.uint32), seed & 0xFFFFFFFF), seed >> 32)
    return np.asarray(fold(key, indices.astype(np.uint32)))


class LiveMatch:
    """A match in progress. All arrays are of this one match: [F], [options]."""

    def __init__(self, game: Game, seed: int, *, side: int = 0) -> None:
        self.game = game
        self._side = side
        self._state = game.start(NUMPY, np.array([seed], np.uint32))
        self._actions = np.zeros((game.players, len(game.actions.parts), 1), np.int32)
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

    def act(self, action: NDArray | int) -> float:
        """One frame further; returns the reward."""
        self._actions[self._side, :, 0] = action
        before, self._state = self._state, self.game.step(NUMPY, self._state, self._actions)
        self.over = bool(self.game.over(NUMPY, self._state)[0])
        return float(self.game.reward(NUMPY, before, self._state)[self._side, 0])

    def outcome(self) -> str:
        """victory, defeat or tie."""
        score = float(self.game.score(NUMPY, self._state)[self._side, 0])
        return "victory" if score > 0 else "defeat" if score < 0 else "tie"
