"""A policy that plays match after match by itself: it draws, keeps its memory and starts it anew.

Exported files hold this class (`agents.module_file`), so that they play as `load_agent` does.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Protocol

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import InputError
from understudy.core.ops import NUMPY
from understudy.core.spaces import ActionSpace, Discrete
from understudy.policy import distributions
from understudy.policy.policy import Policy


class LoadedAgent(Protocol):
    """What `load_agent` gives, and what an exported file has: see `PolicyAgent`."""

    policy: Any

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the numbers that it acts on, in their order."""

    @property
    def actions(self) -> Any:
        """Its action space."""

    @property
    def version(self) -> int:
        """The version of the run that it is."""

    def act(self, features: Any, *, legal: Any = None, uniforms: Any = None) -> Any:
        """What to do now."""

    def reset(self) -> None:
        """Begin a new match."""


class PolicyAgent:
    """Acts in one match after another.

        agent.reset()                       # before each match
        action = agent.act(features)        # in each frame

    Actions are drawn, as in training; a `greedy` agent takes the likeliest one. The same `seed`
    gives the same draws.
    """

    def __init__(self, policy: Policy, *, greedy: bool = False, seed: int | None = None) -> None:
        self.policy = policy
        self.greedy = greedy
        self._rng = np.random.default_rng(seed)
        self._parts = len(policy.spec.actions.parts)
        self._single = isinstance(policy.spec.actions, Discrete)
        self._starts = np.cumsum((0, *policy.spec.actions.parts[:-1]))
        self._memory = policy.begin()

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the numbers that `act` takes, in their order."""
        return self.policy.spec.features

    @property
    def actions(self) -> ActionSpace:
        """The action space."""
        return self.policy.spec.actions

    @property
    def version(self) -> int:
        """The version of the run that it is."""
        return self.policy.version

    def reset(self) -> None:
        """Begin a new match: empties the memory."""
        self._memory = self.policy.begin()

    def act(self, features: Any, *, legal: Any = None, uniforms: Any = None) -> Any:
        """What to do in this frame.

        Args:
            features: The numbers that `features` names [F].
            legal: What may be done, bool [options]: the options of all parts side by side. None:
                everything.
            uniforms: Numbers from 0 to 1 to draw with [parts]; None: the agent's own.

        Returns:
            One choice among options: its index, an int. Several choices or switches: int32 [parts].
            Real numbers: float32 [parts], within their bounds.

        Raises:
            InputError: An argument has another shape, holds a number that it may not hold, or
                leaves no legal option. Nothing has changed then: `act` can be called again.
        """
        obs = _checked_features(features, self.policy.spec.features)
        if legal is not None:
            legal = _checked_mask(legal, self.policy.spec.actions.options, self._starts)[None]
        if uniforms is not None:
            uniforms = _checked_uniforms(uniforms, self._parts)[None]
        elif not self.greedy:
            uniforms = self._rng.random((1, self._parts), np.float32)
        choice = self.policy.act(obs[None], self._memory, legal=legal, uniforms=uniforms)
        self._memory = choice.memory
        if self._single:
            return int(choice.actions[0, 0])
        return distributions.executed(NUMPY, self.policy.spec.actions, choice.actions[0])


def _checked_features(features: Any, names: tuple[str, ...]) -> NDArray:
    """float32 [F], all finite: one that is not would stay in a memory until the match ends."""
    obs = _numbers("features", features, len(names))
    # One sum checks them all, in a quarter of the time of np.isfinite; doubles do not overflow.
    if not isfinite(sum(obs.tolist())):
        wrong = int(np.isfinite(obs).argmin())
        raise InputError(f"features: {names[wrong]!r} is {obs[wrong]}, expected a finite number")
    return obs


def _checked_uniforms(uniforms: Any, parts: int) -> NDArray:
    """float32 [parts], each from 0 to 1."""
    drawn = _numbers("uniforms", uniforms, parts)
    if not all(0.0 <= one <= 1.0 for one in drawn.tolist()):
        raise InputError(f"uniforms: expected numbers from 0 to 1, got {drawn.tolist()}")
    return drawn


def _numbers(what: str, given: Any, count: int) -> NDArray:
    try:
        numbers = np.asarray(given, np.float32)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what}: expected plain numbers ({error})") from error
    if numbers.shape != (count,):
        raise InputError(f"{what}: expected {count} numbers, got shape {numbers.shape}")
    return numbers


def _checked_mask(legal: Any, options: int, starts: NDArray) -> NDArray:
    """bool [options], with a legal option in each part; `starts` [parts] is where parts begin."""
    mask = np.asarray(legal, np.bool_)
    if mask.shape != (options,):
        raise InputError(f"legal: expected {options} flags, got shape {mask.shape}")
    possible = np.logical_or.reduceat(mask, starts)
    if not possible.all():
        raise InputError(
            f"legal: part {int(possible.argmin())} of {len(possible)} has no legal option"
        )
    return mask
