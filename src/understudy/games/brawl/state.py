"""A match of brawl as arrays, what happened in its last frame, and its score.

A field of shape [2, B] holds player 0 and player 1. No rule asks which one it is: the other player
is always `field[::-1]`. Counts and timers are float32 too, because int32 with float32 becomes
float64 under NumPy.
"""

from __future__ import annotations

from typing import NamedTuple

from understudy.core.ops import Array, Ops
from understudy.games.brawl import tables
from understudy.games.brawl.tables import f32

_ZERO = f32(0)


class State(NamedTuple):
    """B matches side by side; float32 unless said otherwise. Timers count frames down to 0."""

    frame: Array
    """int32 [B]"""
    key: Array
    """uint32 [B]: what every draw of this match is folded from."""
    tilt: Array
    """[B]: +1 or -1, the side that the match's chance counts from; a mirror negates it."""
    phase: Array
    """int32 [B]: where in its period the platform began."""
    platform: Array
    """[2, B]: x and y of the middle of the platform's top."""
    item: Array
    """int32 [B]: which of `tables.WEAPONS` lies on the stage, 0 for none."""
    item_x: Array
    item_clock: Array
    """[B]: frames until a weapon appears or, where one lies, until it vanishes."""

    x: Array
    """[2, B], as is everything below: the middle of the body."""
    y: Array
    """The feet."""
    vx: Array
    vy: Array
    facing: Array
    """+1 right, -1 left."""
    grounded: Array
    """bool: stands on a block or on the platform."""
    carried: Array
    """bool: stands on the platform."""
    stride: Array
    """Frames walked without a stop; enough of them become a run."""
    jumps: Array
    """Air jumps left."""
    recoveries: Array
    """Recovery moves left in this airtime."""
    jump_wait: Array
    turn_wait: Array
    hand_wait: Array
    dodge_wait: Array
    dodge: Array
    """Frames left of a dodge; nothing hurts a dodger."""
    dash: Array
    """Frames left of a dash or a backdash."""
    stun: Array
    wait: Array
    """Frames until the player may act for the first time."""
    out: Array
    """Frames until a knocked out player is back on the stage."""
    safe: Array
    """Frames in which nothing hurts a player who was out."""
    move: Array
    """int32: the column of `tables.MOVE_TABLE` that is under way, 0 for none."""
    move_clock: Array
    """Frames since the move began."""
    struck: Array
    """bool: the move has hit."""
    weapon: Array
    """int32: which of `tables.WEAPONS` is in hand."""
    damage: Array
    """Taken since the last knockout."""
    stocks: Array
    chain: Array
    """Hits taken while stunned, since the stun began."""

    dealt: Array
    """Damage dealt by each in the last frame. This and the rest are what the last frame did."""
    knocked_out: Array
    """bool, by victim."""
    equipped: Array
    """bool, by actor."""
    dropped: Array
    """bool, by actor: thrown away on purpose."""
    combo: Array
    """bool, by attacker: hit a stunned player."""


def exchanged(state: State) -> State:
    """The same match with the players in each other's slots."""
    shared = State._fields[: State._fields.index("x")]
    return State(
        *(
            leaf if field in shared else leaf[::-1]
            for field, leaf in zip(State._fields, state, strict=True)
        )
    )


def mirrored(ops: Ops, state: State) -> State:
    """The same match with left and right exchanged; actions stay, they count from facing."""
    xp = ops.xp
    return state._replace(
        tilt=-state.tilt,
        platform=xp.stack([-state.platform[0], state.platform[1]]),
        item_x=-state.item_x,
        x=-state.x,
        vx=-state.vx,
        facing=-state.facing,
    )


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
    """A player has no stock left, or time is up; bool [B]."""
    last = state.stocks <= _ZERO
    return last[0] | last[1] | (state.frame >= tables.MAX_FRAMES)


def scores(ops: Ops, state: State) -> Array:
    """More stocks left at the end wins, as many is a draw: +1, 0 or -1, float32 [2, B]."""
    xp = ops.xp
    ahead = state.stocks - state.stocks[::-1]
    return xp.where(is_over(ops, state), xp.sign(ahead), _ZERO)
