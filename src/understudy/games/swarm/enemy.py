"""The enemy's mind: a build order by the clock, bent by what our army does."""

from __future__ import annotations

from understudy.core.ops import Array, Ops
from understudy.games.swarm import tables
from understudy.games.swarm.combat import power
from understudy.games.swarm.state import State
from understudy.games.swarm.tables import f32

_PLANS = tables.BUILD_PLAN.reshape(-1)
_WAVER_LEAST, _WAVER_RANGE = f32(0.7), f32(0.6)
_RESPECT = f32(0.7)
"""An army of ours below this share of the enemy's own does not worry it."""
_EASE = f32(6)
_PREY, _PREY_UNITS = f32(1.6), f32(10)
"""An enemy so many times (and so many units) stronger comes, whatever its build says."""
_ONE = f32(1)


def plan(ops: Ops, state: State, *, alert: float, mood: Array) -> Array:
    """The orders that the enemy follows this frame, int32 [B]; mood [B] in [0, 1) is its noise.

    It keeps to its build, but defends when our army comes or outgrows its own, and attacks when we
    are easy prey. An enemy that has gone all in listens to nothing.
    """
    xp = ops.xp
    clock = state.frame.astype(xp.float32) * state.pace
    until = xp.asarray(tables.BUILD_UNTIL).take(state.build, axis=1)
    phase = (clock >= until[0]).astype(xp.int32) + (clock >= until[1])
    build = xp.asarray(_PLANS).take(phase * len(tables.BUILDS) + state.build)

    ours, theirs = power(state.army, state.upgrades)
    guard = xp.asarray(tables.BUILD_GUARD).take(state.build) * f32(alert)
    guard = guard * (_WAVER_LEAST + mood * _WAVER_RANGE)
    coming = (state.front[0] > _ONE - guard) & (ours > theirs * _RESPECT)
    outgrown = ours * guard > theirs + _EASE
    prey = (theirs > ours * _PREY + _PREY_UNITS) & (phase > 0)
    answer = xp.where(prey, xp.int32(tables.AGGRESSIVE), xp.int32(tables.DEFENSIVE))
    return xp.where((coming | outgrown | prey) & (build != tables.ALL_IN), answer, build)
