"""Rollouts in environments with the NumPy policy, which also plays live: for learning and judging.

A time limit is not an end: the last reward of a truncated match is increased by the policy's value
of the last observation.

The uniform numbers that choose actions may be kept for several steps (`train.noise_steps`). Each
is still uniform, so every action has the probability that the policy gives it; only successive
draws are correlated. A policy with high entropy then moves one way for a while: of 4,000 matches of
MountainCar under uniform actions none reaches the goal with a draw each step, and 9 % do with one
in 16 steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Tree
from understudy.match.tally import Tally
from understudy.policy.network import emptied
from understudy.policy.policy import Policy
from understudy.training.environments.environments import EnvironmentInputs, Environments
from understudy.training.environments.session import Finished

if TYPE_CHECKING:
    from understudy.learner.maths.segments import Segments


class EnvironmentRollout:
    """Plays segment after segment and keeps the memory of matches in flight."""

    def __init__(
        self, environments: Environments, rng: np.random.Generator, *, noise_steps: int = 1
    ) -> None:
        self._environments = environments
        self._rng = rng
        self._noise_steps = noise_steps
        self._noise: NDArray | None = None
        self._memory: Tree = None

    def play(
        self, policy: Policy, steps: int, *, gamma: float, stop: Callable[[], bool] = lambda: False
    ) -> Segments | None:
        """A segment of `steps`; None if `stop` ended it early."""
        from understudy.learner.maths.segments import Segments

        environments = self._environments
        parts = len(policy.spec.actions.parts)
        scale = policy.weights.value_scale
        if self._memory is None:
            self._memory = policy.begin(environments.columns)
        began, rows = self._memory, []
        for _ in range(steps):
            if stop():
                return None
            now = environments.moment()
            memory = emptied(NUMPY, self._memory, now.first)
            uniforms = self._uniforms(now.first, parts)
            choice = policy.act(now.obs, memory, legal=now.legal, uniforms=uniforms)
            after = environments.step(choice.actions)
            rewards = after.rewards
            if after.cut.any():
                beyond = policy.act(after.last_obs, choice.memory).values
                rewards = np.where(after.cut, rewards + np.float32(gamma) * beyond, rewards)
            self._memory = choice.memory
            rows.append(
                {
                    "obs": now.obs,
                    "legal": now.legal,
                    "actions": choice.actions,
                    "log_probs": choice.log_probs,
                    "values": choice.values / scale,
                    "rewards": rewards.astype(np.float32),
                    "ongoing": (now.alive & ~after.ended).astype(np.float32),
                    "first": now.first,
                    "valid": now.alive.astype(np.float32),
                }
            )
        columns: dict[str, Any] = {key: np.stack([row[key] for row in rows]) for key in rows[0]}
        return Segments(
            **columns,
            opponent_actions=np.zeros_like(columns["actions"]),
            foretold=np.zeros_like(columns["valid"]),
            opponent_kinds=np.full(columns["valid"].shape, -1, np.int32),
            memory=began,
            bootstrap=self._ahead(policy) / scale,
        )

    def _uniforms(self, first: NDArray, parts: int) -> NDArray:
        """Uniform numbers [B, parts]; a column draws anew once in `noise_steps` steps, by chance,
        and where a match begins."""
        fresh = self._rng.random((len(first), parts), dtype=np.float32)
        if self._noise_steps > 1 and self._noise is not None:
            anew = first | (self._rng.random(len(first)) * self._noise_steps < 1.0)
            fresh = np.where(anew[:, None], fresh, self._noise)
        self._noise = fresh
        return fresh

    def _ahead(self, policy: Policy) -> NDArray:
        """The bootstrap value [B] after the segment."""
        now = self._environments.moment()
        memory = emptied(NUMPY, self._memory, now.first)
        return policy.act(now.obs, memory, legal=now.legal).values


def judge(
    policy: Policy,
    environments: Environments,
    matches: int,
    *,
    show: Callable[[float], None] = lambda share: None,
) -> list[Finished]:
    """Frozen matches in which the policy plays every side with its likeliest action."""
    memory = policy.begin(environments.columns)

    def act(now: EnvironmentInputs, ended: NDArray) -> NDArray:
        nonlocal memory
        memory = emptied(NUMPY, memory, now.first)
        choice = policy.act(now.obs, memory, legal=now.legal)
        memory = choice.memory
        return choice.actions

    return _played(environments, matches, act, show)


def meet(
    policy: Policy,
    opponent: Policy,
    environments: Environments,
    matches: int,
    *,
    rng: np.random.Generator,
    show: Callable[[float], None] = lambda share: None,
) -> Tally:
    """Frozen matches of the policy on one side against the opponent on all others; the side
    changes with every match. The side with more reward than any other wins.

    Both draw their actions (ADR 0017). Two likeliest ones would play the same match every time
    where an environment has one fixed start.
    """
    columns, agents = environments.columns, len(environments.agents)
    shape = (columns, len(policy.spec.actions.parts))
    memories = [one.begin(columns) for one in (policy, opponent)]

    def side(environment: NDArray, match: NDArray) -> NDArray:
        return (environment + match) % agents

    def act(now: EnvironmentInputs, ended: NDArray) -> NDArray:
        chosen = []
        for index, player in enumerate((policy, opponent)):
            memory = emptied(NUMPY, memories[index], now.first)
            uniforms = rng.random(shape, dtype=np.float32)
            choice = player.act(now.obs, memory, legal=now.legal, uniforms=uniforms)
            memories[index] = choice.memory
            chosen.append(choice.actions)
        ours = side(np.arange(len(ended)), ended)[:, None] == np.arange(agents)
        return np.where(ours.reshape(-1, 1), *chosen)

    played = _played(environments, matches, act, show)
    rounds, indices = np.divmod(np.arange(matches), columns // agents)
    sides = side(indices, rounds)
    return Tally.of(np.array([_score(*one) for one in zip(played, sides, strict=True)]))


def _score(match: Finished, side: int) -> int:
    """+1, 0 or -1: whether the side has more reward than the best of the others."""
    ahead = match.sides[side] - max(match.sides[:side] + match.sides[side + 1 :])
    return int(np.sign(round(ahead, 9)))


def _played(
    environments: Environments,
    matches: int,
    act: Callable[[EnvironmentInputs, NDArray], NDArray],
    show: Callable[[float], None],
) -> list[Finished]:
    """Matches by rounds: the first of every environment, then the second. Every environment plays
    the same number of them, since the first to end are the short ones. `act` is given what every
    column sees and how many matches each environment has ended; `show` the share that is done."""
    count = environments.columns // len(environments.agents)
    each = -(-matches // count)
    ended: list[list[Finished]] = [[] for _ in range(count)]
    environments.finished.clear()
    while min(map(len, ended)) < each:
        show(sum(min(len(one), each) for one in ended) / (each * count))
        environments.step(act(environments.moment(), np.array([len(one) for one in ended])))
        for index, match in environments.finished:
            ended[index].append(match)
        environments.finished.clear()
    show(1.0)
    rounds = zip(*(one[:each] for one in ended), strict=True)
    return [match for together in rounds for match in together][:matches]
