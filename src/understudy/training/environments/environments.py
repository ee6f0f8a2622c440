"""Environments of others, several side by side, as columns that one policy plays.

An environment is a PettingZoo parallel one, or looks like it (`named.Alone`): every agent is a
column, and all agents share the policy. A match that ends begins anew in the same step, and what
was seen last is kept beside it. An agent that is out before the others is a column that is not
alive until they all begin again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from understudy.adapters.gymnasium.spaces import SpaceTranslator
from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError, InputError
from understudy.training.environments.session import Finished


class EnvironmentInputs(NamedTuple):
    """What every column sees before it acts."""

    obs: NDArray
    """float32 [B, F]"""
    legal: NDArray
    """bool [B, options]"""
    first: NDArray
    """bool [B]: a match begins"""
    alive: NDArray
    """bool [B]: this column has a part in its match"""


class EnvironmentOutputs(NamedTuple):
    """What came of one action of every column."""

    rewards: NDArray
    """float32 [B]"""
    ended: NDArray
    """bool [B]: the match is over for this column"""
    cut: NDArray
    """bool [B]: over, but not by a result: a time limit that the observation does not show"""
    last_obs: NDArray
    """float32 [B, F]: what was seen after the action, before anything began anew"""


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
        self.seam = _seam(self._envs[0], self.agents, features)
        self.columns = count * len(self.agents)
        options = self.seam.actions.options
        self._now = EnvironmentInputs(
            obs=np.zeros((self.columns, len(self.seam.features)), np.float32),
            legal=np.ones((self.columns, options), np.bool_),
            first=np.ones(self.columns, np.bool_),
            alive=np.zeros(self.columns, np.bool_),
        )
        self._gained = np.zeros((count, len(self.agents)))
        self._steps = np.zeros(count, np.int64)
        self._terminated = np.zeros(count, np.bool_)
        """Whether any agent's part in the match had an end other than a time limit."""
        self._first_rewards: NDArray | None = None
        """[agents], of the first match that ended."""
        self.finished: list[tuple[int, Finished]] = []
        """Matches that ended, with the number of their environment; callers take them away."""
        for index, seed in enumerate(seeds):
            self._begin(index, int(seed))

    def moment(self) -> EnvironmentInputs:
        """What every column sees now."""
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
            chosen = {agent: self.seam.action_of(actions[c]) for agent, c in column_of.items()}
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
        """Let all of them go."""
        for env in self._envs:
            env.close()

    def _finish(self, index: int) -> None:
        gained = self._gained[index]
        if self._first_rewards is None:
            self._first_rewards = gained.copy()
        # Each agent's: the mean over them is 0 in every match of a zero-sum game.
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
        features = self.seam.features_of(obs)
        if not np.isfinite(features).all():
            bad = self.seam.features[int(np.flatnonzero(~np.isfinite(features))[0])]
            raise InputError(f"the environment gave {bad} that is not a finite number")
        self._now.obs[column] = features
        return features

    def _legal(self, obs: Any, info: Any) -> NDArray | bool:
        legal = self.seam.legal_of(info, obs)
        return True if legal is None else legal

    def _column(self, index: int, agent: str) -> int:
        return index * len(self.agents) + self.agents.index(agent)


def _seam(env: Any, agents: Sequence[str], features: Sequence[str]) -> SpaceTranslator:
    spaces = [(env.observation_space(agent), env.action_space(agent)) for agent in agents]
    for agent, pair in zip(agents, spaces, strict=True):
        if pair != spaces[0]:
            raise ConfigError(
                f"agents share one policy, so that their spaces must be the same: {agent} has "
                f"{pair}, {agents[0]} has {spaces[0]}"
            )
    return SpaceTranslator(*spaces[0], features=features)
