"""A zero-sum toy in PettingZoo's own convention: the mask is part of the observation, and when the
match is over no action is legal."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from understudy.core.arrays import NDArray

ROUNDS = 4


class Contest(ParallelEnv[str, Any, Any]):  # type: ignore[misc]
    """Each round two agents are shown a sign each and earn 1 for naming it (0: minus, 1: plus) and
    lose 1 if the other names its own. Action 2 is always wrong; one wrong action is illegal."""

    metadata = {"name": "contest", "render_modes": []}  # noqa: RUF012
    render_mode = None

    def __init__(self, mask_in: str = "observation") -> None:
        self.possible_agents = ["left", "right"]
        self.agents: list[str] = []
        self._in_info = mask_in == "info"
        self._chosen = spaces.Discrete(3)
        sign, mask = spaces.Box(-1.0, 1.0, (1,)), spaces.Box(0, 1, (3,), np.int8)
        observed: dict[str, spaces.Space[Any]] = {"observation": sign}
        self._observed = spaces.Dict(
            observed if self._in_info else observed | {"action_mask": mask}
        )

    def observation_space(self, agent: str) -> Any:
        return self._observed

    def action_space(self, agent: str) -> Any:
        return self._chosen

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self._left = ROUNDS
        return self._show()

    def step(self, actions: dict[str, Any]) -> Any:
        for agent, action in actions.items():
            assert self._masks[agent][action], f"{agent} played {action}, which is illegal"
        right = {agent: float(actions[agent] == self._right[agent]) for agent in self.agents}
        rewards = {agent: 2.0 * right[agent] - sum(right.values()) for agent in self.agents}
        self._left -= 1
        obs, infos = self._show()
        over = dict.fromkeys(self.agents, self._left == 0)
        cut = dict.fromkeys(self.agents, False)
        self.agents = self.agents if self._left else []
        return obs, rewards, over, cut, infos

    def close(self) -> None:
        pass

    def _show(self) -> tuple[dict[str, Any], dict[str, Any]]:
        self._right = {agent: int(self._rng.integers(2)) for agent in self.agents}
        self._masks = {agent: self._mask(right) for agent, right in self._right.items()}
        infos: dict[str, Any] = {agent: {} for agent in self.agents}
        obs: dict[str, Any] = {
            agent: {"observation": np.array([2.0 * right - 1.0], np.float32)}
            for agent, right in self._right.items()
        }
        for agent, mask in self._masks.items():
            (infos if self._in_info else obs)[agent]["action_mask"] = mask
        return obs, infos

    def _mask(self, right: int) -> NDArray:
        mask = np.ones(3, np.int8)
        mask[int(self._rng.choice([1 - right, 2]))] = 0
        return mask if self._left else np.zeros(3, np.int8)


def parallel_env(**options: Any) -> Contest:
    return Contest(**options)
