"""One wave: observations of different territories that are decided together, in one forward pass.

All of a wave is decided by one policy. A policy with memory gets each territory's own, side by side
in a batch, and gives it back: what one territory saw never reaches another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import Tree, mapped, stacked
from understudy.gates.decision import DecisionGate, Verdict, judge
from understudy.live.message_fields import RequestId
from understudy.live.territories import Territory, Waiting
from understudy.live.translation import Sight
from understudy.policy.policy import Policy

_LARGEST = float(np.finfo(np.float32).max)


class Asked(NamedTuple):
    """One observation that waits to be decided."""

    place: int
    """In the inbox"""
    request: RequestId | None
    territory: Territory
    tick: int
    sight: Sight
    due: Waiting | None
    """The decision that this observation tells the reward of"""


class Proposal(NamedTuple):
    """What is proposed for one observation."""

    action: tuple[int, ...]
    log_prob: float
    value: float
    verdict: Verdict
    explored: bool
    """The verdict is WAIT and it is sent all the same"""
    memory: Tree
    """Afterwards, without a batch axis"""


def propose(
    policy: Policy,
    gate: DecisionGate,
    asked: Sequence[Asked],
    *,
    rng: np.random.Generator,
    explore_share: float,
) -> list[Proposal]:
    """A proposal for each, drawn from the policy and judged by the gate."""
    count = len(asked)
    observations = np.array([one.sight.features for one in asked])
    # Features near the edge of 32 bits may overflow on the way; the normaliser clips them then.
    with np.errstate(over="ignore", invalid="ignore"):
        choice = policy.act(
            observations,
            _gathered(policy, asked),
            legal=masks([one.sight.legal for one in asked], policy.spec.actions.options),
            uniforms=rng.random((count, len(policy.spec.actions.parts)), np.float32),
        )
        verdicts = judge(gate, observations, choice.actions)
    explore = (rng.random(count) < explore_share).tolist()
    columns = zip(
        choice.actions.tolist(),
        choice.log_probs.tolist(),
        choice.values.tolist(),
        verdicts,
        explore,
        _scattered(choice.memory, count),
        strict=True,
    )
    return [
        Proposal(
            tuple(action), log_prob, value, _finite(verdict), drawn and not verdict.send, memory
        )
        for action, log_prob, value, verdict, drawn, memory in columns
    ]


def masks(legal: Sequence[NDArray | None], options: int) -> NDArray | None:
    """bool [B, options]; None where everything is legal to everybody."""
    if all(mask is None for mask in legal):
        return None
    everything = np.ones(options, np.bool_)
    return np.array([everything if mask is None else mask for mask in legal])


def _gathered(policy: Policy, asked: Sequence[Asked]) -> Tree:
    """Everybody's memory as arrays [B, ...]."""
    if not policy.remembers:
        return policy.begin(len(asked))
    alone = mapped(lambda leaf: leaf[0], policy.begin(1))
    held = (one.territory.memory for one in asked)
    return stacked([alone if memory is None else memory for memory in held])


def _scattered(memory: Tree, count: int) -> list[Tree]:
    """Each one's memory; copies, so that nobody keeps the whole batch alive."""
    if not memory:
        return [None] * count
    return [_at(memory, index) for index in range(count)]


def _at(memory: Tree, index: int) -> Tree:
    return mapped(lambda leaf: leaf[index].copy(), memory)


def _finite(verdict: Verdict) -> Verdict:
    """A gate of one's own may expect anything; what is recorded is a number of 32 bits, or nan: it
    had nothing to say."""
    if abs(verdict.expected_reward) <= _LARGEST:
        return verdict
    return verdict._replace(expected_reward=math.nan)
