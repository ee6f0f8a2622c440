"""Weapons on the stage: they appear, are picked up, thrown away, or vanish.

At most one lies on the stage at a time. Its side is counted from the match's `tilt`, so that a
mirrored match has it on the mirrored side. Players who reach for it in the same frame get one each.
"""

from __future__ import annotations

from understudy.core.ops import Array, Ops
from understudy.games.brawl import tables
from understudy.games.brawl.state import State
from understudy.games.brawl.tables import f32

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
