"""How bodies move: steering, gravity, blocks, the platform; one frame for both players at once.

Left and right enter only through `facing`, |x| and differences of x, so a mirrored state moves as
the mirror of itself, to the last bit.
"""

from __future__ import annotations

import numpy as np

from understudy.core.ops import Array, Ops
from understudy.games.brawl import tables
from understudy.games.brawl.state import State
from understudy.games.brawl.tables import f32

_ZERO, _ONE, _TWO = f32(0), f32(1), f32(2)
_PERIOD = np.array(tables.PLATFORM_PERIOD, np.int32)
_QUARTERS = f32(4 / tables.PLATFORM_PERIOD)
_SLACK = f32(0.05)
"""How far a body may have sunk into the platform and still stand on it: the platform moves."""
_INNER, _OUTER = tables.PIT - tables.HALF_WIDTH, tables.LEDGE + tables.HALF_WIDTH
_MIDDLE = (tables.PIT + tables.LEDGE) / _TWO


def platform_at(ops: Ops, frame: Array, phase: Array, tilt: Array) -> Array:
    """x and y [2, B] of the platform in a frame: to and fro on a straight line."""
    xp = ops.xp
    along = ((frame + phase) % _PERIOD).astype(xp.float32) * _QUARTERS
    wave = xp.abs(along - _TWO) - _ONE
    return xp.stack(
        [tilt * wave * tables.PLATFORM_REACH_X, tables.PLATFORM_Y + wave * tables.PLATFORM_REACH_Y]
    )


def steer(ops: Ops, state: State, keys: Array) -> State:
    """Speeds after a frame of walking, steering, friction and gravity."""
    xp = ops.xp
    where, maximum, minimum = xp.where, xp.maximum, xp.minimum
    stunned = state.stun > _ZERO
    able = ~stunned & (state.wait <= _ZERO) & (state.out <= _ZERO)
    swinging = state.move != tables.NO_MOVE
    forward = able & keys[tables.FORWARD] & (state.dodge <= _ZERO)
    forward = forward | (state.turn_wait == tables.TURN_WAIT)
    walks = forward & ~(swinging & state.grounded)
    stride = where(walks & state.grounded, state.stride + _ONE, _ZERO)
    stride = where(state.dash > _ZERO, tables.STRIDE, minimum(stride, tables.STRIDE))
    pace = where(stride >= tables.STRIDE, tables.RUN, tables.WALK)
    pace = where(state.grounded, pace, tables.AIR)
    wanted = where(walks, state.facing * pace, _ZERO)
    grip = where(swinging, tables.SWING_GRIP, tables.GRIP)
    grip = where(stunned, tables.STUN_GRIP, grip)
    air_grip = where(stunned, tables.STUN_AIR_GRIP, tables.AIR_GRIP)
    grip = where(state.grounded, grip, air_grip)
    grip = where(state.dash > _ZERO, _ZERO, grip)
    vx = state.vx + maximum(minimum(wanted - state.vx, grip), -grip)
    vx = where(_blocked(ops, state, vx) & ~stunned, _ZERO, vx)

    fast = able & keys[tables.DOWN] & ~state.grounded
    fall = tables.FALL + where(fast, tables.FAST_FALL, _ZERO)
    most = where(fast | (state.vy < -tables.FALL_MAX), tables.FAST_FALL_MAX, tables.FALL_MAX)
    vy = maximum(state.vy - fall, -most)
    here = state.out <= _ZERO
    return state._replace(vx=where(here, vx, _ZERO), vy=where(here, vy, _ZERO), stride=stride)


def _blocked(ops: Ops, state: State, vx: Array) -> Array:
    """Which players would walk into the other's body, bool [2, B]; dodgers pass through."""
    xp = ops.xp
    gap, rise = state.x[::-1] - state.x, state.y[::-1] - state.y
    touch = (xp.abs(gap) < tables.BODY_GAP) & (xp.abs(rise) < tables.BODY_RISE)
    solid = (state.dodge <= _ZERO) & (state.safe <= _ZERO)
    return touch & (gap * vx > _ZERO) & solid & solid[::-1]


def travel(ops: Ops, state: State, keys: Array) -> State:
    """Move by the speeds; land on blocks and on the platform, stop at walls."""
    xp = ops.xp
    where = xp.where
    platform = platform_at(ops, state.frame + xp.int32(1), state.phase, state.tilt)
    drift = platform - state.platform
    x = state.x + state.vx * tables.DT + where(state.carried, drift[0], _ZERO)
    y = state.y + state.vy * tables.DT
    aside = xp.abs(x)
    inside = (aside > _INNER) & (aside < _OUTER) & (y <= _ZERO)
    onto = inside & (state.y >= -tables.STEP_UP) & (state.vy <= _ZERO)
    wall = inside & ~onto & (y < -tables.STEP_UP)
    stop = where(aside < _MIDDLE, _INNER, _OUTER)
    right = where(x < _ZERO, -_ONE, _ONE)
    x = where(wall, right * stop, x)

    through = keys[tables.DOWN] & ~(keys[tables.LIGHT] | keys[tables.HEAVY])
    near = xp.abs(x - platform[0]) < tables.PLATFORM_HALF + tables.HALF_WIDTH
    above = state.y >= state.platform[1] - _SLACK
    aboard = near & above & (y <= platform[1]) & (state.vy <= _ZERO) & ~through
    aboard = aboard | (state.carried & near & ~through)
    landed = onto | aboard
    landed = landed & (state.out <= _ZERO)
    y = where(onto, _ZERO, where(aboard, platform[1], y))
    return state._replace(
        platform=platform,
        x=x,
        y=where(state.out <= _ZERO, y, state.y),
        vx=where(wall, _ZERO, state.vx),
        vy=where(landed, _ZERO, state.vy),
        grounded=landed,
        carried=aboard & ~onto & landed,
        jumps=where(landed, tables.AIR_JUMPS, state.jumps),
        recoveries=where(landed, _ONE, state.recoveries),
    )
