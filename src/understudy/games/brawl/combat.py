"""Hits, knockback, knockouts and weapons: one frame for both players at once.

Both players strike from the same state, so hits are simultaneous. Weapons appear on the stage, are
picked up, thrown away, or vanish; at most one lies there. Its side is counted from the match's
`tilt`, so that a mirrored match has it on the mirrored side. Players who reach for it in the same
frame get one each.
"""

from __future__ import annotations

from understudy.core.ops import Array, Ops
from understudy.games.brawl import tables
from understudy.games.brawl.state import State
from understudy.games.brawl.tables import f32

_LINEAR, _SQUARE = f32(1 / 70), f32(1 / 12000)


def knockback(damage: Array, fixed: Array, variable: Array) -> Array:
    """The speed that a hit gives to a body that has taken this much damage with it."""
    force = fixed + variable * (damage * _LINEAR + damage * damage * _SQUARE)
    return force * tables.FORCE_SPEED


def strike(ops: Ops, state: State) -> State:
    """Resolve the blows of both players, then let their moves run on."""
    xp = ops.xp
    where, maximum = xp.where, xp.maximum
    numbers = xp.asarray(tables.MOVE_TABLE[: tables.PUSH_X]).take(state.move, axis=1)
    clock = state.move_clock
    active = (clock >= numbers[tables.STARTUP]) & (
        clock < numbers[tables.STARTUP] + numbers[tables.ACTIVE]
    )
    ahead = (state.x[::-1] - state.x) * state.facing
    above = state.y[::-1] - state.y
    touches = xp.abs(ahead - numbers[tables.AHEAD]) < numbers[tables.WIDTH] + tables.HALF_WIDTH
    touches = touches & (
        xp.abs(above - numbers[tables.ABOVE]) < numbers[tables.HEIGHT] + tables.HALF_HEIGHT
    )
    open_to = (state.dodge <= _ZERO) & (state.safe <= _ZERO) & (state.out <= _ZERO)
    hits = active & ~state.struck & touches & open_to[::-1]

    hurt = hits[::-1]
    blow = numbers[:, ::-1]
    stunned = state.stun > _ZERO
    damage = state.damage + where(hurt, blow[tables.DAMAGE], _ZERO)
    speed = knockback(damage, blow[tables.FIXED], blow[tables.VARIABLE])
    chain = where(stunned, state.chain + where(hurt, _ONE, _ZERO), _ZERO)
    stun = blow[tables.STUN] + speed * tables.STUN_PER_SPEED - chain * tables.COMBO_RELIEF
    stun = where(hurt, maximum(stun, tables.STUN_LEAST), state.stun)
    lifted = hurt & (blow[tables.UPWARD] > _ZERO)

    total = numbers[tables.STARTUP] + numbers[tables.ACTIVE] + numbers[tables.RECOVERING]
    ends = hurt | (clock + _ONE >= total)
    return state._replace(
        vx=where(hurt, state.facing[::-1] * blow[tables.AWAY] * speed, state.vx),
        vy=where(hurt, blow[tables.UPWARD] * speed, state.vy),
        grounded=state.grounded & ~lifted,
        carried=state.carried & ~lifted,
        damage=damage,
        stun=stun,
        chain=chain,
        dash=where(hurt, _ZERO, state.dash),
        move=where(ends, xp.int32(tables.NO_MOVE), state.move),
        move_clock=where(ends, _ZERO, clock + _ONE),
        struck=(state.struck | hits) & ~ends,
        dealt=where(hits, numbers[tables.DAMAGE], _ZERO),
        combo=hits & stunned[::-1],
    )


def knock_out(ops: Ops, state: State) -> State:
    """Who left the stage through a blast zone loses a stock and waits to return.

    It returns on the other side of the stage than its opponent; where that is the very middle, its
    own facing decides, which a mirror negates with everything else.
    """
    xp = ops.xp
    where = xp.where
    gone = (xp.abs(state.x) > tables.BLAST_X) | (state.y < tables.BLAST_BELOW)
    gone = (gone | (state.y > tables.BLAST_ABOVE)) & (state.out <= _ZERO)
    there = state.x[::-1]
    side = where(there < _ZERO, _ONE, where(there > _ZERO, -_ONE, state.facing))
    stays = ~gone

    def cleared(field: Array) -> Array:
        return where(gone, _ZERO, field)

    return state._replace(
        x=where(gone, side * tables.RETURN_X, state.x),
        y=where(gone, tables.RETURN_Y, state.y),
        vx=cleared(state.vx),
        vy=cleared(state.vy),
        facing=where(gone, -side, state.facing),
        grounded=state.grounded & stays,
        carried=state.carried & stays,
        jumps=where(gone, tables.AIR_JUMPS, state.jumps),
        recoveries=where(gone, _ONE, state.recoveries),
        dodge=cleared(state.dodge),
        dash=cleared(state.dash),
        stun=cleared(state.stun),
        chain=cleared(state.chain),
        out=where(gone, tables.OUT_FRAMES, state.out),
        safe=where(gone, tables.OUT_FRAMES + tables.SAFE_FRAMES, state.safe),
        move=where(gone, xp.int32(tables.NO_MOVE), state.move),
        move_clock=cleared(state.move_clock),
        struck=state.struck & stays,
        weapon=where(gone, xp.int32(0), state.weapon),
        damage=cleared(state.damage),
        stocks=xp.maximum(state.stocks - gone.astype(xp.float32), _ZERO),
        knocked_out=gone,
    )


_ZERO, _HALF, _ONE, _TWO = f32(0), f32(0.5), f32(1), f32(2)
_KINDS = f32(len(tables.WEAPONS) - 1)
DRAWS = 4


def hands(ops: Ops, state: State, keys: Array) -> State:
    """Pick up what lies in reach, or throw away what is in hand."""
    xp = ops.xp
    where = xp.where
    free = (state.stun <= _ZERO) & (state.wait <= _ZERO) & (state.out <= _ZERO)
    free = free & (state.move == tables.NO_MOVE) & (state.hand_wait <= _ZERO)
    uses = keys[tables.HAND] & free
    lies = state.item > 0
    near = lies & (xp.abs(state.x - state.item_x) < tables.HAND_REACH_X)
    near = near & (xp.abs(state.y) < tables.HAND_REACH_Y)
    takes = uses & near
    throws = uses & ~near & (state.weapon > 0)
    taken = takes[0] | takes[1]
    weapon = where(throws, xp.int32(0), state.weapon)
    return state._replace(
        weapon=where(takes, state.item, weapon),
        hand_wait=where(takes | throws, tables.HAND_WAIT, state.hand_wait),
        equipped=takes,
        dropped=throws,
        item_clock=where(taken, _ZERO, state.item_clock),
    )


def supply(ops: Ops, state: State, draw: Array) -> State:
    """Count down to the next weapon, or to the end of the one that lies there; draw: [4, B]."""
    xp = ops.xp
    where = xp.where
    due = state.item_clock <= _ZERO
    lay = state.item > 0
    comes, goes = due & ~lay, due & lay
    kind = (draw[0] * _KINDS).astype(xp.int32) + xp.int32(1)
    side = where(draw[1] < _HALF, state.tilt, -state.tilt)
    place = tables.SPOTS + (draw[2] * _TWO - _ONE) * tables.SPOTS_SPREAD
    pause = tables.WEAPON_WAIT + draw[3] * tables.WEAPON_WAIT_SPREAD
    clock = where(comes, tables.WEAPON_LIES, where(goes, pause, state.item_clock - _ONE))
    return state._replace(
        item=where(comes, kind, where(goes, xp.int32(0), state.item)),
        item_x=where(comes, side * place, where(goes, xp.zeros_like(state.item_x), state.item_x)),
        item_clock=clock,
    )
