"""One iteration of the arena, compiled whole: a rollout of every slot, then the update."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from understudy.arena import slots as slotting
from understudy.arena.compiling import options
from understudy.arena.rollout import Cast, rollout
from understudy.arena.slots import Counts, Plan, Slots
from understudy.core.ops import Array
from understudy.learner.descent import Frozen, Report, State
from understudy.learner.hardware import computing
from understudy.learner.jax_ops import JAX
from understudy.learner.segments import improve
from understudy.policy.layers import Params


class Played(NamedTuple):
    """What an iteration says about itself."""

    report: Report
    counts: Counts
    meetings: Array
    """int32 [groups]: slots in a match against their group's version"""
    return_square: Array
    """mean square of the returns, in units of reward"""


@cache
def compiled(
    plan: Plan,
) -> Callable[[State, Frozen, Params, Array, Slots], tuple[State, Slots, Played]]:
    """`iterate(state, frozen, rivals, free, slots)`; the slots given are used up."""
    return jax.jit(partial(_iterate, plan), donate_argnums=4, compiler_options=options())


def _iterate(
    plan: Plan, state: State, frozen: Frozen, rivals: Params, free: Array, slots: Slots
) -> tuple[State, Slots, Played]:
    """rivals: [groups, ...]; free: bool [groups], where the group's version may be met."""
    cast = Cast(
        params=computing(plan.config, state.params),
        rivals=computing(plan.config, rivals),
        bounds=bounds(plan, free),
    )
    slots, segments, counts = rollout(plan, cast, frozen, slots)
    # Without this wall XLA would compute parts of the game again inside the update.
    segments = JAX.barrier(segments)
    state, report, squares = improve(plan.spec, plan.config, state, frozen, segments)
    return state, slots, Played(report, counts, slotting.meetings(plan, slots), squares)


def bounds(plan: Plan, free: Array) -> Array:
    """float32 [B, N]: whom each slot may meet next."""
    rows = jnp.where(
        free[:, None], plan.mix.bounds(with_self=True), plan.mix.bounds(with_self=False)
    )
    return jnp.repeat(rows, plan.games // plan.groups, axis=0)
