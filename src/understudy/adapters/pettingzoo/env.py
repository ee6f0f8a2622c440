"""Our games as PettingZoo parallel environments: every side is an agent, all act at once.

    from understudy.adapters.pettingzoo.env import parallel_env

    env = parallel_env("brawl")
    obs, infos = env.reset(seed=7)
    while env.agents:                                # player_0, player_1
        actions = {agent: choose(obs[agent], infos[agent]["action_mask"]) for agent in env.agents}
        obs, rewards, terminations, truncations, infos = env.step(actions)

As in `adapters.gymnasium.env`, every end is a termination; seed and actions alone decide a match.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.adapters.gymnasium.env import (
    action_mask,
    action_space,
    bound_of,
    made,
    observation_space,
)
from understudy.core.arrays import NDArray
from understudy.core.dependencies import needs
from understudy.core.errors import InputError
from understudy.core.ops import NUMPY
from understudy.games.base import Game

with needs("{} is not installed", extra="envs"):
    from pettingzoo import ParallelEnv


class GameParallelEnv(ParallelEnv[str, NDArray, Any]):  # type: ignore[misc]
    """One match after the other, from all sides of a game."""

    metadata = {"render_modes": [], "name": "understudy", "is_parallelizable": True}  # noqa: RUF012

    def __init__(self, game: Game, *, bound: float | None = None) -> None:
        self.game = game
        self.render_mode = None
        self.possible_agents = [f"player_{side}" for side in range(game.players)]
        self.agents: list[str] = []
        self._bound = bound_of(game, bound)
        self.observation_spaces = {
            agent: observation_space(game, self._bound) for agent in self.possible_agents
        }
        self.action_spaces = {agent: action_space(game.actions) for agent in self.possible_agents}
        self._rng = np.random.default_rng()

    def observation_space(self, agent: str) -> Any:
        """The same object every time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """The same object every time."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray], dict[str, dict[str, Any]]]:
        """A new match; the same seed gives the same one."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        seeds = self._rng.integers(0, 2**32, 1, dtype=np.uint32)
        self._state = self.game.start(NUMPY, seeds)
        self.agents = list(self.possible_agents)
        return self._seen()

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, NDArray],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """One frame; every agent's action is needed."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        missing = set(self.agents) - set(actions)
        if missing:
            raise InputError(
                f"step: expected an action of every agent, {sorted(missing)} gave none"
            )
        game, before = self.game, self._state
        joint = np.zeros((game.players, len(game.actions.parts), 1), np.int32)
        for side, agent in enumerate(self.agents):
            joint[side, :, 0] = actions[agent]
        self._state = game.step(NUMPY, before, joint)
        gained = game.reward(NUMPY, before, self._state)[:, 0]
        over = bool(game.over(NUMPY, self._state)[0])
        obs, infos = self._seen()
        rewards = {agent: float(gained[side]) for side, agent in enumerate(self.agents)}
        if over:
            score = game.score(NUMPY, self._state)[:, 0]
            for side, agent in enumerate(self.agents):
                infos[agent]["score"] = float(score[side])
        terminations = dict.fromkeys(self.agents, over)
        truncations = dict.fromkeys(self.agents, False)
        if over:
            self.agents = []
        return obs, rewards, terminations, truncations, infos

    def render(self) -> None:
        """Nothing: `understudy watch` draws matches."""

    def close(self) -> None:
        """Nothing is held."""

    def _seen(self) -> tuple[dict[str, NDArray], dict[str, dict[str, Any]]]:
        obs = self.game.observe(NUMPY, self._state)[:, :, 0]
        legal = self.game.legal(NUMPY, self._state)[:, :, 0]
        sides = list(enumerate(self.agents))
        return (
            {agent: np.clip(obs[side], -self._bound, self._bound) for side, agent in sides},
            {
                agent: {"action_mask": action_mask(self.game.actions, legal[side])}
                for side, agent in sides
            },
        )


def parallel_env(
    game: str | Game = "brawl", *, bound: float | None = None, **options: object
) -> GameParallelEnv:
    """A game of the catalog with its options, or one of your own; `bound` as of `GameEnv`."""
    return GameParallelEnv(made(game, options), bound=bound)
