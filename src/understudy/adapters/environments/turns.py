"""One environment by turns: which sides act now, what each of them sees, what each has gained.

PettingZoo has two interfaces. In a parallel environment all agents act at once; in an AEC
environment, as board games are, one after the other. Behind `Turns` both look the same: `acting`
lists the sides that must act now, `send` takes an action of each of them, and the match is over
when `acting` is empty. A side is an index into the environment's possible agents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from understudy.core.errors import InputError


class Turns(ABC):
    """An environment, and the match that is played in it."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.agents: tuple[str, ...] = tuple(env.possible_agents)
        self.acting: tuple[int, ...] = ()
        """Sides that must act now; empty: the match is over."""
        self.gained = [0.0] * len(self.agents)
        """The rewards of each side in this match, as far as it has been told."""
        self.terminated = [False] * len(self.agents)
        self.truncated = [False] * len(self.agents)
        self.steps = 0
        """Steps of this match."""
        self._seen: list[tuple[Any, Any]] = [(None, None)] * len(self.agents)
        self._actions: Mapping[int, Any] = {}

    def seen(self, side: int) -> tuple[Any, Any]:
        """The newest observation and info of a side."""
        return self._seen[side]

    def reset(self, seed: int | None) -> None:
        """Begin a match."""
        count = len(self.agents)
        self.gained = [0.0] * count
        self.terminated, self.truncated = [False] * count, [False] * count
        self.steps = 0
        self._reset(seed)

    def send(self, actions: Mapping[int, Any]) -> None:
        """Begin a step: an action, as the environment takes it, of each side in `acting`."""
        self.steps += 1
        self._actions = actions

    def receive(self) -> None:
        """End the step. An environment that has `send` and `receive` itself, because its game runs
        in another process, plays in between."""
        self._step(self._actions)

    @property
    def aborted(self) -> bool:
        """Whether the match has no result: the environment says so (`info["aborted"]`)."""
        return any(isinstance(info, dict) and bool(info.get("aborted")) for _, info in self._seen)

    def picture(self) -> Any:
        """What the environment draws now: text, an image [H, W, 3], or nothing."""
        return self.env.render()

    def close(self) -> None:
        self.env.close()

    @abstractmethod
    def _reset(self, seed: int | None) -> None: ...

    @abstractmethod
    def _step(self, actions: Mapping[int, Any]) -> None: ...

    def _gain(self, side: int, reward: Any) -> None:
        if not np.isfinite(reward):
            raise InputError(f"the environment gave a reward of {reward}")
        self.gained[side] += float(reward)

    def _end(self, side: int, terminated: Any, truncated: Any) -> None:
        self.terminated[side] = bool(terminated)
        self.truncated[side] = bool(truncated) and not terminated


class ParallelTurns(Turns):
    """A parallel environment: all sides that are not out act at once."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._sides = {agent: side for side, agent in enumerate(self.agents)}
        self._halves = hasattr(env, "send") and hasattr(env, "receive")

    def send(self, actions: Mapping[int, Any]) -> None:
        super().send(actions)
        if self._halves:
            self.env.send(self._named(actions))

    def _reset(self, seed: int | None) -> None:
        obs, infos = self.env.reset(seed=seed)
        for agent, one in obs.items():
            self._seen[self._sides[agent]] = (one, infos.get(agent))
        self.acting = tuple(self._sides[agent] for agent in self.env.agents)

    def _step(self, actions: Mapping[int, Any]) -> None:
        chosen = self._named(actions)
        after = self.env.receive() if self._halves else self.env.step(chosen)
        obs, rewards, terminated, truncated, infos = after
        for agent in chosen:
            side = self._sides[agent]
            self._gain(side, rewards[agent])
            self._end(side, terminated[agent], truncated[agent])
            self._seen[side] = (obs[agent], infos.get(agent))
        self.acting = tuple(self._sides[agent] for agent in self.env.agents)

    def _named(self, actions: Mapping[int, Any]) -> dict[str, Any]:
        return {self.agents[side]: action for side, action in actions.items()}


class AecTurns(Turns):
    """An AEC environment: one side acts at a time, and is told its rewards when its turn comes."""

    def _reset(self, seed: int | None) -> None:
        self.env.reset(seed=seed)
        self._advance()

    def _step(self, actions: Mapping[int, Any]) -> None:
        (action,) = actions.values()
        self.env.step(action)
        self._advance()

    def _advance(self) -> None:
        """Go on to the next side that has a choice; sides that are out are told so."""
        env = self.env
        while env.agents:
            side = self.agents.index(env.agent_selection)
            obs, reward, terminated, truncated, info = env.last()
            self._gain(side, reward)
            self._seen[side] = (obs, info)
            if not (terminated or truncated):
                self.acting = (side,)
                return
            self._end(side, terminated, truncated)
            env.step(None)
        self.acting = ()


def turns_of(env: Any) -> Turns:
    """The turns of an environment: parallel, or AEC (it has `last`)."""
    return AecTurns(env) if is_aec(env) else ParallelTurns(env)


def is_aec(env: Any) -> bool:
    """Whether agents act one after the other."""
    return hasattr(env, "last") and hasattr(env, "agent_iter")
