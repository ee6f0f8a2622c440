"""One iteration of the arena, compiled whole: a rollout of every column, then the update."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple, TypeAlias

import jax

from understudy.arena.columns import Columns, Ends, MatchCounts, Plan, per_column, snapshot_meetings
from understudy.arena.compiling import options
from understudy.arena.devices import columns_placement, mesh, placed
from understudy.arena.recording import RecordedFrames
from understudy.arena.rollout import RolloutParameters, Strategy, rollout
from understudy.core.ops import Array
from understudy.learner.hardware import computing, partition
from understudy.learner.maths.descent import FixedInputs, LearnerState, UpdateReport
from understudy.learner.maths.jax_ops import JAX
from understudy.learner.maths.segments import improve
from understudy.policy.layers import Params


class IterationInputs(NamedTuple):
    """What may change from one iteration to the next without being compiled again."""

    bounds: Array
    """float32 [groups, N]: whom the columns of each group may meet next, see `Mix.bounds`"""
    weights: Array
    """float32 [terms]: what each term of the rewards weighs"""


class IterationOutputs(NamedTuple):
    """What an iteration says about itself."""

    report: UpdateReport
    counts: MatchCounts
    ends: Ends
    strategy: Strategy
    meetings: Array
    """int32 [groups]: columns in a match against their group's snapshot"""
    return_square: Array
    """mean square of the returns, in units of reward"""
    recorded: RecordedFrames | None = None
    """of the recorded columns; None where none is"""


Iterate: TypeAlias = Callable[
    [LearnerState, FixedInputs, Params, IterationInputs, Columns],
    tuple[LearnerState, Columns, IterationOutputs],
]


@cache
def compiled(plan: Plan) -> Iterate:
    """`iterate(state, fixed, snapshots, inputs, columns)`; the columns given are used up."""
    made = placed(mesh(plan), (partition(), columns_placement(plan), partition()))
    return jax.jit(
        partial(iterate, plan), donate_argnums=4, out_shardings=made, compiler_options=options()
    )


def iterate(
    plan: Plan,
    state: LearnerState,
    fixed: FixedInputs,
    snapshots: Params,
    inputs: IterationInputs,
    columns: Columns,
) -> tuple[LearnerState, Columns, IterationOutputs]:
    """snapshots: [groups, ...]."""
    parameters = RolloutParameters(
        params=computing(plan.config, state.params),
        snapshots=computing(plan.config, snapshots),
        bounds=per_column(plan, inputs.bounds),
        weights=inputs.weights,
    )
    columns, rolled = rollout(plan, parameters, fixed, columns)
    # Without this wall XLA would compute parts of the game again inside the update.
    segments = JAX.barrier(rolled.segments)
    state, report, squares = improve(
        plan.spec, plan.config, state, fixed, segments, blockwise=True, mesh=mesh(plan)
    )
    meetings = snapshot_meetings(plan, columns)
    ends = rolled.ends._replace(sums=None)  # counted already; the host has no use for it
    outputs = IterationOutputs(
        report, rolled.counts, ends, rolled.strategy, meetings, squares, rolled.recorded
    )
    return state, columns, outputs
