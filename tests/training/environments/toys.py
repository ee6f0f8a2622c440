"""Toy environments of others: what is right to do can be seen, and tests know it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from understudy.core.arrays import NDArray

KINDS: dict[str, spaces.Space[Any]] = {
    "continuous": spaces.Box(0.0, 10.0, (1,)),
    "multi_binary": spaces.MultiBinary(2),
    "multi_discrete": spaces.MultiDiscrete([3, 2], start=[1, 0]),
    "discrete": spaces.Discrete(2, start=5),
}
LENGTH = 8


class Mirror(gymnasium.Env[NDArray, Any]):
    """Eight times two numbers in [-1, 1] are shown; at most 1 is earned each time.

    continuous: 5 + 4 times the first; multi_binary: on where a number is above 0; multi_discrete:
    which third the first is in (from 1), and whether the second is above 0; discrete: 6 where the
    first is above 0, else 5.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = KINDS[kind]
        self.taken: list[Any] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray, dict[str, Any]]:
        super().reset(seed=seed)
        self._left = LENGTH
        return self._show(), {}

    def step(self, action: Any) -> tuple[NDArray, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        self.taken.append(action)
        reward = self._worth(action)
        self._left -= 1
        return self._show(), reward, self._left == 0, False, {}

    def _show(self) -> NDArray:
        self._shown = self.np_random.uniform(-1.0, 1.0, 2).astype(np.float32)
        return self._shown

    def _worth(self, action: Any) -> float:
        one, two = self._shown
        if self.kind == "continuous":
            return 1.0 - float(np.square((action[0] - (5.0 + 4.0 * one)) / 5.0))
        if self.kind == "multi_binary":
            return float(((self._shown > 0) == action).mean())
        if self.kind == "discrete":
            return float(action == 5 + (one > 0))
        third = min(int((one + 1.0) * 1.5), 2) + 1
        return (float(action[0] == third) + float(action[1] == (two > 0))) / 2.0


class Faulty(Mirror):
    """Its last reward is not a number."""

    def _worth(self, action: Any) -> float:
        return super()._worth(action) if self._left > 1 else float("nan")


class Countdown(gymnasium.Env[NDArray, Any]):
    """Shows the step as a number and pays 1 a step; action 1 ends it, `after` steps cut it off."""

    def __init__(self, after: int = 5) -> None:
        self.observation_space = spaces.Box(0.0, 100.0, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._after = after

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        return self._show(), self._legal()

    def step(self, action: Any) -> tuple[NDArray, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        return self._show(), 1.0, action == 1, self._steps >= self._after, self._legal()

    def _show(self) -> NDArray:
        return np.array([self._steps], np.float32)

    def _legal(self) -> dict[str, Any]:
        """Ending it is allowed from the third step on."""
        return {"action_mask": np.array([1, self._steps >= 2], np.int8)}


class Echo(ParallelEnv[str, NDArray, Any]):  # type: ignore[misc]
    """Two agents are shown a sign each and paid for saying it; the second leaves after two steps,
    the first after four."""

    metadata = {"name": "echo", "render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        self.possible_agents = ["left", "right"]
        self.agents: list[str] = []
        self._observed = spaces.Box(-1.0, 1.0, (1,), np.float32)
        self._chosen = spaces.Discrete(2)

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
        self._steps = 0
        return self._show(), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        acting = list(self.agents)
        assert set(actions) == set(acting)
        rewards = {a: float((self._signs[a][0] > 0) == (actions[a] == 1)) for a in acting}
        self._steps += 1
        over = {"left": self._steps == 4, "right": self._steps == 2}
        ended = {agent: over[agent] for agent in acting}
        obs = self._show()
        self.agents = [agent for agent in acting if not ended[agent]]
        return obs, rewards, ended, dict.fromkeys(acting, False), {agent: {} for agent in acting}

    def close(self) -> None:
        pass

    def _show(self) -> dict[str, NDArray]:
        self._signs = {
            agent: self._rng.choice(np.array([-1.0, 1.0], np.float32), 1) for agent in self.agents
        }
        return dict(self._signs)


def parallel_env() -> Echo:
    return Echo()


if "Mirror-v0" not in gymnasium.registry:
    gymnasium.register("Mirror-v0", entry_point=f"{__name__}:Mirror")
    gymnasium.register("Faulty-v0", entry_point=f"{__name__}:Faulty")
    gymnasium.register("Countdown-v0", entry_point=f"{__name__}:Countdown")
