"""What happened in the last frame, and how a match stands: each array by the player it names."""

from __future__ import annotations

from typing import NamedTuple

from understudy.core.ops import Array, Ops
from understudy.games.brawl import tables
from understudy.games.brawl.state import State
from understudy.games.brawl.tables import f32

_ZERO = f32(0)


class Events(NamedTuple):
    """bool [2, B], true for the player in the role that the name of the argument says."""

    knocked_out: Array
    """victim"""
    won: Array
    """winner"""
    equipped: Array
    """actor"""
    dropped: Array
    """actor"""
    combo: Array
    """attacker"""


def events(ops: Ops, state: State) -> Events:
    """The events of the frame that led to this state."""
    return Events(
        knocked_out=state.knocked_out,
        won=scores(ops, state) > _ZERO,
        equipped=state.equipped,
        dropped=state.dropped,
        combo=state.combo,
    )


def is_over(ops: Ops, state: State) -> Array:
    """Somebody has no stock left, or time is up; bool [B]."""
    last = state.stocks <= _ZERO
    return last[0] | last[1] | (state.frame >= tables.MAX_FRAMES)


def scores(ops: Ops, state: State) -> Array:
    """More stocks left at the end wins, as many is a draw: +1, 0 or -1, float32 [2, B]."""
    xp = ops.xp
    ahead = state.stocks - state.stocks[::-1]
    return xp.where(is_over(ops, state), xp.sign(ahead), _ZERO)
