"""Decision gates: one action of one decision in, SEND or WAIT out, and why.

    class Careful:
        name = "careful"

        def evaluate(self, observation, action):
            expected = 0.5 - observation[3]
            return Verdict.of(expected, threshold=0.0, reasons=("threat",))

A gate sees what the policy sees (raw features) and the action that it proposes, so that the learner
can ask it again about anything that was recorded. For learning a gate is part of the world.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from understudy.core.arrays import NDArray


class Verdict(NamedTuple):
    """What a gate says of one action."""

    send: bool
    """False: wait, nothing is executed"""
    expected_reward: float
    """nan: the gate has nothing to say of it"""
    reasons: tuple[str, ...] = ()
    """In a few words each, the weightiest first"""

    @classmethod
    def of(
        cls, expected: float | np.floating[Any], *, threshold: float, reasons: Sequence[str] = ()
    ) -> Verdict:
        """SEND where more than the threshold is expected.

        Numbers of NumPy become plain ones, which is what messages and records are made of.
        """
        return cls(bool(expected > threshold), float(expected), tuple(reasons))


NOTHING_TO_BLOCK = Verdict(True, math.nan, ("nothing to block",))
"""Of an action that does nothing."""


class DecisionGate(Protocol):
    """Whatever judges actions one by one: the contract for gates of one's own."""

    @property
    def name(self) -> str:
        """What the status and the report call it."""

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        """observation float32 [F], raw, and the proposed action int32 [parts]."""


@runtime_checkable
class BatchGate(Protocol):
    """A gate that can judge many actions at once, which is what a busy server wants."""

    def evaluate_all(self, observations: NDArray, actions: NDArray) -> list[Verdict]:
        """observations [B, F] and actions [B, parts] to a verdict each."""


_LET_THROUGH = Verdict(True, math.nan)


class OpenGate:
    """Lets everything through and has nothing to say: what serves where no gate was asked for."""

    name = "open"

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        return _LET_THROUGH

    def evaluate_all(self, observations: NDArray, actions: NDArray) -> list[Verdict]:
        return [_LET_THROUGH] * len(observations)


def judge(gate: DecisionGate, observations: NDArray, actions: NDArray) -> list[Verdict]:
    """A verdict for each of observations [B, F] and actions [B, parts], at once if it can."""
    if isinstance(gate, BatchGate):
        return gate.evaluate_all(observations, actions)
    return [
        gate.evaluate(observation, action)
        for observation, action in zip(observations, np.asarray(actions), strict=True)
    ]
