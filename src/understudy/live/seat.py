"""Where an agent with the old API plays: its present match and the one before."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import InputError
from understudy.core.ops import NUMPY
from understudy.experience.episode import Outcome
from understudy.live.bot import Understudy
from understudy.live.match import Match
from understudy.policy import distributions
from understudy.policy.policy import Policy
from understudy.policy.weights import normalise


class Play:
    """One match as an agent of the old API lives it; it begins with the first decision."""

    def __init__(self, mind: Understudy) -> None:
        self._mind = mind
        self._match: Match | None = None
        self._states: list[NDArray] = []
        self._actions: list[int] = []
        self.rewards: list[float] = []

    def explore(self, state: Sequence[float] | NDArray) -> tuple[int, float]:
        """Draw an action: its number and its probability. It is learned from."""
        if self._match is None:
            self._match = self._mind.match(api="rl_agent")
        number = self._number(self._match.decide(state))
        self._states.append(np.array(state, np.float32))
        self._actions.append(number)
        self.rewards.append(0.0)
        return number, self._match.last.probability or 0.0

    def exploit(self, state: Sequence[float] | NDArray) -> tuple[int, float]:
        """The likeliest action and its probability. It is not learned from."""
        seen = np.asarray(state, np.float32)
        expected = (len(self._mind.spec.features),)
        if seen.shape != expected or not np.isfinite(seen).all():
            raise InputError(f"state: expected {expected[0]} finite numbers, got {state!r}")
        policy = self._mind.policy
        choice = policy.act(seen[None], policy.begin())
        return int(choice.actions[0, 0]), math.exp(choice.log_probs[0])

    def reward(self, amount: float) -> None:
        """Add to the last decision that is learned from, if there is one."""
        if self._match is not None:
            self._match.reward(amount)
            self.rewards[-1] += float(amount)

    def finish(self, outcome: Outcome) -> None:
        """The match is over, and kept when this returns."""
        if self._match is not None:
            self._match.finish(outcome)

    def leave(self) -> None:
        """Nobody plays on: what was not finished is kept as aborted."""
        if self._match is not None:
            self._match.leave()

    def arrays(self) -> dict[str, NDArray]:
        """states [T, F], actions [T], rewards [T], as old experience files have them."""
        return {
            "states": np.array(self._states, np.float32),
            "actions": np.array(self._actions, np.int64),
            "rewards": np.array(self.rewards, np.float32),
        }

    def exploration(self) -> float:
        """How often the policy does something else than its favourite in these states."""
        return 1.0 - float(_favourites(self._mind.policy, np.array(self._states)).mean())

    def _number(self, label: str) -> int:
        return self._mind.spec.actions.names.index(label)  # type: ignore[union-attr]


class Seat:
    """Where an agent plays: its present match and the one before."""

    def __init__(self, mind: Understudy) -> None:
        self.play = Play(mind)
        self.finished = self.play

    def next(self, mind: Understudy) -> None:
        """The present match is over."""
        self.finished, self.play = self.play, Play(mind)


def _favourites(policy: Policy, states: NDArray) -> NDArray:
    """The probability [T] of the likeliest action in states [T, F]."""
    weights, network = policy.weights, policy.spec.network
    obs = normalise(NUMPY, weights, states)
    logits, _, _ = network.step(NUMPY, weights.params, obs, policy.begin(len(states)))
    log_probs = distributions.log_probs(NUMPY, policy.spec.actions, logits, None)
    likeliest: NDArray = np.exp(log_probs.max(-1))
    return likeliest
