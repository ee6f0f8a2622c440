"""A policy that plays match after match by itself: it draws, keeps its memory and starts it anew.

Exported files hold this class (`agents.module_file`), so that they play as `load_agent` does.
"""

from __future__ import annotations

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
        self._shape = (len(policy.spec.features),)
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
            InputError: An argument has another shape, or leaves no legal option.
        """
        obs = np.asarray(features, np.float32)
        if obs.shape != self._shape:
            raise InputError(f"features: expected {self._shape[0]} numbers, got shape {obs.shape}")
        if legal is not None:
            legal = _checked_mask(legal, self.policy.spec.actions.options, self._starts)[None]
        if uniforms is not None:
            uniforms = np.asarray(uniforms, np.float32).reshape(1, self._parts)
        elif not self.greedy:
            uniforms = self._rng.random((1, self._parts), np.float32)
        choice = self.policy.act(obs[None], self._memory, legal=legal, uniforms=uniforms)
        self._memory = choice.memory
        if self._single:
            return int(choice.actions[0, 0])
        return distributions.executed(NUMPY, self.policy.spec.actions, choice.actions[0])


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
