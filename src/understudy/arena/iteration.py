"""One iteration of the arena, compiled whole: a rollout of every slot, then the update."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from understudy.arena import slots as slotting
from understudy.arena.compiling import options
from understudy.arena.recording import RecordedFrames
from understudy.arena.rollout import RolloutParameters, Strategy, rollout
from understudy.arena.slots import Ends, MatchCounts, Plan, Slots
from understudy.core.ops import Array
from understudy.learner.hardware import computing
from understudy.learner.maths.descent import FixedInputs, LearnerState, UpdateReport
from understudy.learner.maths.jax_ops import JAX
from understudy.learner.segments import improve
from understudy.policy.layers import Params


class IterationInputs(NamedTuple):
    """What may change from one iteration to the next without being compiled again."""

    bounds: Array
    """float32 [groups, N]: whom the slots of each group may meet next, see `Mix.bounds`"""
    weights: Array
    """float32 [terms]: what each term of the rewards weighs"""


class IterationOutputs(NamedTuple):
    """What an iteration says about itself."""

    report: UpdateReport
    counts: MatchCounts
    ends: Ends
    strategy: Strategy
    meetings: Array
    """int32 [groups]: slots in a match against their group's snapshot"""
    return_square: Array
    """mean square of the returns, in units of reward"""
    recorded: RecordedFrames | None = None
    """of the recorded columns; None where none is"""


Iterate: TypeAlias = Callable[
    [LearnerState, FixedInputs, Params, IterationInputs, Slots],
    tuple[LearnerState, Slots, IterationOutputs],
]


@cache
def compiled(plan: Plan) -> Iterate:
    """`iterate(state, frozen, rivals, orders, slots)`; the slots given are used up."""
    return jax.jit(partial(iterate, plan), donate_argnums=4, compiler_options=options())


def iterate(
    plan: Plan,
    state: LearnerState,
    frozen: FixedInputs,
    rivals: Params,
    orders: IterationInputs,
    slots: Slots,
) -> tuple[LearnerState, Slots, IterationOutputs]:
    """rivals: [groups, ...]."""
    cast = RolloutParameters(
        params=computing(plan.config, state.params),
        rivals=computing(plan.config, rivals),
        bounds=for_slots(plan, orders.bounds),
        weights=orders.weights,
    )
    slots, rolled = rollout(plan, cast, frozen, slots)
    # Without this wall XLA would compute parts of the game again inside the update.
    segments = JAX.barrier(rolled.segments)
    state, report, squares = improve(plan.spec, plan.config, state, frozen, segments)
    meetings = slotting.meetings(plan, slots)
    ends = rolled.ends._replace(ledger=None)  # counted already; the host has no use for it
    played = IterationOutputs(
        report, rolled.counts, ends, rolled.strategy, meetings, squares, rolled.recorded
    )
    return state, slots, played


def for_slots(plan: Plan, bounds: Array) -> Array:
    """float32 [groups, N] as [B, N]."""
    return jnp.repeat(bounds, plan.games // plan.groups, axis=0)
