"""Our Gymnasium brawl, many matches in one step: the fastest way in which the peer can play it.

Column for column it is `GameEnv`: the same seeds and actions give the same observations, rewards
and ends, bit for bit (`tests/match/test_equal_time.py`). A match that ends is followed by another,
against an opponent that is drawn anew from all scripted bots alike, as ours are met; half of the
columns play from the second slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from understudy.core import chance
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.base import Bot, Game
from understudy.match.live_match import TRAINING, match_seeds


class Ended(NamedTuple):
    """One match that is over."""

    column: int
    opponent: str
    score: float
    frames: int
    returned: float
    last: NDArray
    """The last observation, float32 [F]; the next match's first one is already shown."""


class Matches:
    """B matches side by side, each followed by another."""

    def __init__(
        self, columns: int, *, seed: int, game: Game | None = None,
        bots: Mapping[str, Bot] | None = None,
    ) -> None:  # fmt: skip
        self.game = game or catalog.make("brawl")
        self.bots = dict(bots or catalog.bots("brawl"))
        self.names = tuple(self.bots)
        self.side = np.arange(columns) % 2
        self.opponents = np.zeros(columns, np.int64)
        """int [B]: whom each column meets, an index into `names`."""
        self.seeds = np.zeros(columns, np.uint32)
        """uint32 [B]: of the match that each column is in."""
        self._seed, self._begun = seed, 0
        self._rng = np.random.default_rng(seed)
        self._columns = np.arange(columns)
        self._frame = np.zeros(columns, np.int32)
        self._returned = np.zeros(columns)

    def reset(self) -> NDArray:
        """New matches everywhere; what is seen, float32 [B, F]."""
        self._draw(self._columns)
        self._state = self.game.start(NUMPY, self.seeds)
        return self._look()

    def step(self, actions: NDArray) -> tuple[NDArray, NDArray, NDArray, list[Ended]]:
        """One frame: actions int [B] to observations [B, F], rewards [B], over [B] and ends."""
        game, before = self.game, self._state
        self._state = game.step(NUMPY, before, self._both(actions))
        self._frame += 1
        rewards = game.reward(NUMPY, before, self._state)[self.side, self._columns]
        self._returned += rewards
        over = game.over(NUMPY, self._state)
        seen = self._look()
        if not over.any():
            return seen, rewards, over, []
        score = game.score(NUMPY, self._state)[self.side, self._columns]
        ended = [
            Ended(
                int(column), self.names[self.opponents[column]], float(score[column]),
                int(self._frame[column]), float(self._returned[column]), seen[column],
            )
            for column in np.flatnonzero(over)
        ]  # fmt: skip
        self._renew(np.flatnonzero(over))
        return self._look(), rewards, over, ended

    def _both(self, actions: NDArray) -> NDArray:
        """Ours and the bots', int32 [2, 1, B]."""
        both = np.zeros((2, 1, len(actions)), np.int32)
        both[self.side, 0, self._columns] = actions
        for columns, bot in self._groups:
            chosen = bot.act(
                NUMPY, self._across[:, columns], self._noise[columns], self._frame[columns]
            )
            both[1 - self.side[columns], 0, columns] = chosen[0]
        return both

    def _look(self) -> NDArray:
        obs = self.game.observe(NUMPY, self._state)
        second = self.side == 1
        self._across = np.where(second, obs[0], obs[1])
        seen: NDArray = np.clip(np.where(second, obs[1], obs[0]).T, -1.0, 1.0)
        return seen

    def _renew(self, columns: NDArray) -> None:
        """New matches in those columns, int [N]."""
        self._draw(columns)
        fresh = self.game.start(NUMPY, self.seeds[columns])
        leaves = []
        for leaf, new in zip(self._state, fresh, strict=True):
            changed = leaf.copy()
            changed[..., columns] = new
            leaves.append(changed)
        self._state = type(self._state)(*leaves)

    def _draw(self, columns: NDArray) -> None:
        numbers = self._begun + np.arange(len(columns))
        self._begun += len(columns)
        self.seeds[columns] = match_seeds(self._seed, numbers, purpose=TRAINING)
        self.opponents[columns] = self._rng.integers(0, len(self.names), len(columns))
        self._frame[columns] = 0
        self._returned[columns] = 0.0
        self._noise = chance.side_key(NUMPY, self.seeds, 1 - self.side)
        met = [np.flatnonzero(self.opponents == index) for index in range(len(self.names))]
        self._groups = [
            (one, self.bots[name]) for one, name in zip(met, self.names, strict=True) if len(one)
        ]
