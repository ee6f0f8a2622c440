"""Decision gates: each judges one proposed action, SEND or WAIT, and says why.

A gate sees what the policy sees (raw features) and the proposed action, so that the learner can
evaluate recorded decisions again. For learning, a gate is part of the environment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from understudy.core.arrays import NDArray


class Verdict(NamedTuple):
    """The judgement of one action."""

    send: bool
    """False: WAIT, nothing is executed"""
    expected_reward: float
    """In units of reward; nan: no expectation"""
    reasons: tuple[str, ...] = ()
    """A few words each, the most important first"""

    @classmethod
    def of(
        cls, expected: float | np.floating[Any], *, threshold: float, reasons: Sequence[str] = ()
    ) -> Verdict:
        """SEND if `expected` is above the threshold.

        NumPy scalars become Python numbers, which messages and records need.
        """
        return cls(bool(expected > threshold), float(expected), tuple(reasons))


NOTHING_TO_BLOCK = Verdict(True, math.nan, ("nothing to block",))
"""The verdict on an action that does nothing."""


class DecisionGate(Protocol):
    """The interface of decision gates, also of custom ones.

    A custom gate is a class that is made without arguments or with `threshold` (the setting
    `live.threshold`). `understudy serve --gate module:Name` loads it, and tries it on zeros before
    it serves. It needs no base class:

        from understudy.gates.decision import Verdict

        class Careful:
            name = "careful"

            def __init__(self, threshold=0.0):
                self._threshold = threshold

            def evaluate(self, observation, action):
                expected = 0.5 - observation[3]
                return Verdict.of(expected, threshold=self._threshold, reasons=("threat",))

    A server calls a custom gate in a worker thread, one call at a time, with the deadline
    `live.gate_deadline_ms`. A gate that can judge many actions at once also has `evaluate_all`
    (`BatchGate`), which is called instead of `evaluate`.
    """

    @property
    def name(self) -> str:
        """The gate's name in the status and the report."""

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        """Judge one proposed action. Deterministic, since the learner evaluates it again.

        Args:
            observation: float32 [F], the raw features that the policy sees. Not to be changed.
            action: int32 [parts], the proposed action, one option for each part.

        Returns:
            A `Verdict` of plain Python values; `Verdict.of` makes one.

        Raises:
            Anything: the observation gets the safe action, others are not affected, and the error
            is noted in the journal.
        """


@runtime_checkable
class BatchGate(Protocol):
    """A gate that can judge many actions at once, which is faster on a busy server."""

    def evaluate_all(self, observations: NDArray, actions: NDArray) -> list[Verdict]:
        """A verdict for each of observations float32 [B, F] and actions int32 [B, parts]."""


_LET_THROUGH = Verdict(True, math.nan)


class OpenGate:
    """Sends every action, without an expectation: the default for declared games."""

    name = "open"

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        return _LET_THROUGH

    def evaluate_all(self, observations: NDArray, actions: NDArray) -> list[Verdict]:
        return [_LET_THROUGH] * len(observations)


def judge(gate: DecisionGate, observations: NDArray, actions: NDArray) -> list[Verdict]:
    """A verdict for each of observations [B, F] and actions [B, parts]; one call if it can."""
    if isinstance(gate, BatchGate):
        return gate.evaluate_all(observations, actions)
    return [
        gate.evaluate(observation, action)
        for observation, action in zip(observations, np.asarray(actions), strict=True)
    ]
