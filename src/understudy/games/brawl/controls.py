"""Keys from actions, and what a player begins to do with them: turn, dash, dodge, jump, attack.

Keys count from the player's own facing (`d` is forward, `a` is back), as observations do; a mirror
of the match therefore leaves them as they are.
"""

from __future__ import annotations

from understudy.core.ops import Array, Ops
from understudy.games.brawl import tables
from understudy.games.brawl.state import State
from understudy.games.brawl.tables import f32

_ZERO = f32(0)


def keys_of_chords(ops: Ops, chords: Array) -> Array:
    """Keys bool [keys, 2, B] from chord numbers int32 [2, 1, B]."""
    return ops.xp.asarray(tables.CHORD_KEYS).take(chords[:, 0], axis=1)


def keys_of_switches(ops: Ops, switches: Array) -> Array:
    """Keys bool [keys, 2, B] from switches int32 [2, keys, B]."""
    return ops.xp.swapaxes(switches != 0, 0, 1)


def begin(ops: Ops, state: State, keys: Array) -> State:
    """What each player starts in this frame; players who may not act do nothing."""
    where, maximum = ops.xp.where, ops.xp.maximum
    able = (state.stun <= _ZERO) & (state.wait <= _ZERO) & (state.out <= _ZERO)
    free = able & (state.move == tables.NO_MOVE) & (state.dodge <= _ZERO)
    forward, back = keys[tables.FORWARD], keys[tables.BACK]
    evade = keys[tables.DODGE]

    turn = free & back & ~evade & (state.turn_wait <= _ZERO) & (state.dash <= _ZERO)
    facing = where(turn, -state.facing, state.facing)

    evade = evade & free & (state.dodge_wait <= _ZERO) & (state.dash <= _ZERO)
    step = evade & state.grounded & (forward | back)
    dash, backdash = step & forward, step & ~forward
    dodge = evade & ~step
    vx = where(dash, facing * tables.DASH_SPEED, state.vx)
    vx = where(backdash, -facing * tables.BACKDASH_SPEED, vx)
    dash_left = where(dash, tables.DASH_FRAMES, state.dash)
    dash_left = where(backdash, tables.BACKDASH_FRAMES, dash_left)
    dodge_wait = where(state.grounded, tables.DODGE_WAIT, tables.AIR_DODGE_WAIT)
    dodge_wait = where(dodge, dodge_wait, where(step, tables.DASH_WAIT, state.dodge_wait))

    jump = keys[tables.JUMP] & free & ~evade & (state.jump_wait <= _ZERO)
    jump = jump & (state.grounded | (state.jumps > _ZERO))
    leap = jump & forward
    vx = where(leap, facing * maximum(vx * facing, tables.LEAP_SPEED), vx)
    vy = where(jump, tables.JUMP_SPEED, state.vy)
    air_jump = jump & ~state.grounded

    state = state._replace(
        facing=facing,
        vx=vx,
        vy=vy,
        dash=dash_left,
        dodge=where(dodge, tables.DODGE_FRAMES, state.dodge),
        dodge_wait=dodge_wait,
        turn_wait=where(turn, tables.TURN_WAIT, state.turn_wait),
        jump_wait=where(jump, tables.JUMP_WAIT, state.jump_wait),
        jumps=state.jumps - air_jump.astype(ops.xp.float32),
        grounded=state.grounded & ~jump,
        carried=state.carried & ~jump,
    )
    return _begin_move(ops, state, keys, free & ~evade & ~jump)


def _begin_move(ops: Ops, state: State, keys: Array, free: Array) -> State:
    """Start the attack that the keys ask for; w with k is the recovery, where one is left."""
    xp = ops.xp
    where, i32 = xp.where, xp.int32
    light, heavy, down = keys[tables.LIGHT], keys[tables.HEAVY], keys[tables.DOWN]
    side = keys[tables.FORWARD] | keys[tables.BACK]
    special = heavy & keys[tables.UP]
    pound = heavy & down & ~state.grounded & ~special
    aim = where(down, i32(2), where(side, i32(1), i32(0)))
    kind = where(state.grounded, where(heavy, i32(3), i32(0)), i32(6))
    number = where(special, i32(tables.RECOVERY), kind + aim)
    number = where(pound, i32(tables.GROUND_POUND), number)
    number = number + state.weapon * i32(len(tables.MOVES)) + i32(tables.FIRST_MOVE)
    attack = free & (light | heavy) & ~(special & (state.recoveries <= _ZERO))
    taunt = free & keys[tables.TAUNT] & ~attack & state.grounded
    number = where(taunt, i32(tables.TAUNT_MOVE), number)
    start = attack | taunt
    move = where(start, number, state.move)
    push = xp.asarray(tables.MOVE_TABLE[tables.PUSH_X :]).take(move, axis=1)
    return state._replace(
        move=move,
        move_clock=where(start, _ZERO, state.move_clock),
        struck=state.struck & ~start,
        recoveries=state.recoveries - (attack & special).astype(xp.float32),
        vx=where(start & (push[0] != _ZERO), state.facing * push[0], state.vx),
        vy=where(start & (push[1] != _ZERO), push[1], state.vy),
        grounded=state.grounded & ~(attack & special),
        carried=state.carried & ~(attack & special),
    )
