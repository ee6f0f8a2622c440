"""Parallel environments, several side by side, as columns of one policy that plays every agent.

An environment is a PettingZoo parallel one, or has its interface (`factory.Alone`): every agent is
a column, and all agents share the policy. When a match ends, the next one begins in the same step,
and the last observation is kept beside it. The column of an agent that is out before the others is
not alive until the next match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from understudy.adapters.gymnasium.spaces import SpaceTranslator
from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError, InputError


class Finished(NamedTuple):
    """One match of one environment."""

    reward: float
    """The sum of rewards, as the mean over the agents."""
    steps: int
    sides: tuple[float, ...] = ()
    """The sum of rewards of each agent, in the order of the environment's agents."""
    alike: bool = False
    """Whether a time limit ended it, with the same rewards as the first match of the session."""


class EnvironmentInputs(NamedTuple):
    """The inputs of the policy, by column."""

    obs: NDArray
    """float32 [B, F]"""
    legal: NDArray
    """bool [B, options]"""
    first: NDArray
    """bool [B]: a match begins"""
    alive: NDArray
    """bool [B]: this column takes part in its match"""


class EnvironmentOutputs(NamedTuple):
    """The result of one action of every column."""

    rewards: NDArray
    """float32 [B]"""
    ended: NDArray
    """bool [B]: the match is over for this column"""
    cut: NDArray
    """bool [B]: truncated, by a time limit that the observation does not show"""
    last_obs: NDArray
    """float32 [B, F]: the observation after the action, before any next match"""


class Environments:
    """`count` environments of one kind."""

    def __init__(
        self,
        make: Callable[[], Any],
        count: int,
        seeds: NDArray,
        *,
        features: Sequence[str] = (),
    ) -> None:
        """`seeds` uint32 [count] are for the first matches; later ones follow from them.
        `features` are those of the run, where there is one (`SpaceTranslator`)."""
        self._envs = [make() for _ in range(count)]
        self.agents = tuple(self._envs[0].possible_agents)
        self.spaces = shared_spaces(self._envs[0], features)
        self.columns = count * len(self.agents)
        options = self.spaces.actions.options
        self._now = EnvironmentInputs(
            obs=np.zeros((self.columns, len(self.spaces.features)), np.float32),
            legal=np.ones((self.columns, options), np.bool_),
            first=np.ones(self.columns, np.bool_),
            alive=np.zeros(self.columns, np.bool_),
        )
        self._gained = np.zeros((count, len(self.agents)))
        self._steps = np.zeros(count, np.int64)
        self._terminated = np.zeros(count, np.bool_)
        """Whether the match ended for any agent by something else than a time limit."""
        self._first_rewards: NDArray | None = None
        """[agents], of the first match that ended."""
        self.finished: list[tuple[int, Finished]] = []
        """Matches that ended, with the number of their environment; callers clear the list."""
        for index, seed in enumerate(seeds):
            self._begin(index, int(seed))

    def moment(self) -> EnvironmentInputs:
        """The present inputs of the policy."""
        return EnvironmentInputs(*(field.copy() for field in self._now))

    def step(self, actions: NDArray) -> EnvironmentOutputs:
        """One step of every environment; actions [B, parts] as a policy drew them."""
        after = EnvironmentOutputs(
            rewards=np.zeros(self.columns, np.float32),
            ended=np.zeros(self.columns, np.bool_),
            cut=np.zeros(self.columns, np.bool_),
            last_obs=np.zeros_like(self._now.obs),
        )
        self._now.first[:] = False
        for index, env in enumerate(self._envs):
            acting = list(env.agents)
            column_of = {agent: self._column(index, agent) for agent in acting}
            chosen = {agent: self.spaces.action_of(actions[c]) for agent, c in column_of.items()}
            obs, rewards, terminated, truncated, infos = env.step(chosen)
            self._steps[index] += 1
            for agent, column in column_of.items():
                if not np.isfinite(rewards[agent]):
                    raise InputError(f"the environment gave a reward of {rewards[agent]}")
                over = bool(terminated[agent])
                cut = bool(truncated[agent]) and not over
                out = over or cut
                after.rewards[column] = rewards[agent]
                after.ended[column], after.cut[column] = out, cut
                self._terminated[index] |= over
                after.last_obs[column] = self._see(column, obs[agent])
                self._now.alive[column] = not out
                # An agent that is out has no next action: board games mask all of them.
                self._now.legal[column] = out or self._legal(obs[agent], infos.get(agent))
                self._gained[index, self.agents.index(agent)] += float(rewards[agent])
            if not env.agents:
                self._finish(index)
        return after

    def close(self) -> None:
        for env in self._envs:
            env.close()

    def _finish(self, index: int) -> None:
        gained = self._gained[index]
        if self._first_rewards is None:
            self._first_rewards = gained.copy()
        # Compared by agent: in a zero-sum game the mean over agents is 0 in every match.
        alike = not self._terminated[index] and np.array_equal(gained, self._first_rewards)
        sides = tuple(float(one) for one in gained)
        self.finished.append(
            (index, Finished(float(gained.mean()), int(self._steps[index]), sides, alike))
        )
        self._begin(index, None)

    def _begin(self, index: int, seed: int | None) -> None:
        obs, infos = self._envs[index].reset(seed=seed)
        self._gained[index], self._steps[index], self._terminated[index] = 0.0, 0, False
        for agent in self.agents:
            column = self._column(index, agent)
            self._now.first[column] = True
            self._now.alive[column] = agent in obs
            if agent in obs:
                self._see(column, obs[agent])
                self._now.legal[column] = self._legal(obs[agent], infos.get(agent))

    def _see(self, column: int, obs: Any) -> NDArray:
        features = self.spaces.features_of(obs)
        if not np.isfinite(features).all():
            bad = self.spaces.features[int(np.flatnonzero(~np.isfinite(features))[0])]
            raise InputError(f"the environment gave {bad} that is not a finite number")
        self._now.obs[column] = features
        return features

    def _legal(self, obs: Any, info: Any) -> NDArray | bool:
        legal = self.spaces.legal_of(info, obs)
        return True if legal is None else legal

    def _column(self, index: int, agent: str) -> int:
        return index * len(self.agents) + self.agents.index(agent)


def shared_spaces(env: Any, features: Sequence[str] = ()) -> SpaceTranslator:
    """The spaces of all agents of an environment; an error where they differ."""
    agents = tuple(env.possible_agents)
    pairs = [(env.observation_space(agent), env.action_space(agent)) for agent in agents]
    for agent, pair in zip(agents, pairs, strict=True):
        if pair != pairs[0]:
            raise ConfigError(
                f"agents share one policy, so that their spaces must be the same: {agent} has "
                f"{pair}, {agents[0]} has {pairs[0]}"
            )
    return SpaceTranslator(*pairs[0], features=features)
