"""Our Gymnasium brawl as the peer's vectorised environment: all matches in one step.

What a match is, `equal_time_matches.py` says; here it is only handed over, and results are counted.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from equal_time_matches import Matches
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv  # type: ignore[import-not-found]

from understudy.adapters.gymnasium.env import GameEnv, action_space, bound_of, observation_space

WINDOW = 100
"""Matches against each opponent that a line of the log looks back over."""


class MatchesVecEnv(VecEnv):  # type: ignore[misc]
    """`Matches` as the peer wants them."""

    def __init__(self, matches: Matches, columns: int) -> None:
        game = matches.game
        super().__init__(
            columns, observation_space(game, bound_of(game, None)), action_space(game.actions)
        )
        self._matches = matches
        self.recent = {name: deque[float](maxlen=WINDOW) for name in matches.names}
        self.returns = deque[float](maxlen=WINDOW * len(matches.names))
        self.ended = 0

    def reset(self) -> np.ndarray:
        return self._matches.reset()

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        seen, rewards, over, ended = self._matches.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for one in ended:
            infos[one.column]["terminal_observation"] = one.last
            infos[one.column]["episode"] = {"r": one.returned, "l": one.frames}
            self.count(one.opponent, one.score, one.returned)
        return seen, rewards, over, infos

    def count(self, opponent: str, score: float, returned: float) -> None:
        """Take in the result of a match."""
        self.recent[opponent].append(score)
        self.returns.append(returned)
        self.ended += 1

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: object = None) -> list[Any]:
        return [getattr(self, attr_name, None)] * self.num_envs

    def set_attr(self, attr_name: str, value: object, indices: object = None) -> None:
        raise NotImplementedError

    def env_method(self, method_name: str, *args: object, **kwargs: object) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: type, indices: object = None) -> list[bool]:
        return [False] * self.num_envs


class OneByOne(DummyVecEnv):  # type: ignore[misc]
    """One `GameEnv` after the other, each with one opponent: to see what stepping at once saves.

    Its results are counted in `game`, as if that had stepped them.
    """

    def __init__(self, envs: int, game: MatchesVecEnv) -> None:
        names = tuple(game.recent)
        self._opponents = [names[index % len(names)] for index in range(envs)]
        self._game = game
        self._returned = np.zeros(envs)
        super().__init__(
            [
                lambda name=name, index=index: GameEnv("brawl", opponent=name, side=index % 2)
                for index, name in enumerate(self._opponents)
            ]
        )

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        seen, rewards, over, infos = super().step_wait()
        self._returned += rewards
        for column in np.flatnonzero(over):
            score, returned = infos[column]["score"], float(self._returned[column])
            self._game.count(self._opponents[column], score, returned)
            self._returned[column] = 0.0
        return seen, rewards, over, infos
