"""What happened in a frame of brawl, one pure function for each thing; `reward_sets` names them.

Every array is [2, B] by the player *to whom* it is counted: a term named after a deed counts for
who did it, one named after a mishap for whom it befell, and `[::-1]` is the other player. A term
counts; whether that is good is the sign of its weight.
"""

from __future__ import annotations

import numpy as np

from understudy.core.ops import Array, Ops
from understudy.core.spaces import Discrete
from understudy.games.brawl import controls, rewards, tables
from understudy.games.brawl.state import State, scores
from understudy.games.brawl.tables import f32
from understudy.games.moments import Moment

_ZERO, _HALF, _ONE = f32(0), f32(0.5), f32(1)
_BLOWS = tables.MOVE_TABLE[:, tables.FIRST_MOVE :]
REACH_X = f32((_BLOWS[tables.AHEAD] + _BLOWS[tables.WIDTH]).max() + tables.HALF_WIDTH)
REACH_Y = f32((np.abs(_BLOWS[tables.ABOVE]) + _BLOWS[tables.HEIGHT]).max() + tables.HALF_HEIGHT)
"""2.87 and 1.8: no attack hits beyond these, with whatever weapon."""
_LIFTS = tuple(
    tables.FIRST_MOVE + weapon * len(tables.MOVES) + tables.RECOVERY
    for weapon in range(len(tables.WEAPONS))
)
"""The recovery with each weapon: it is the way back to the stage, and no miss."""
_FRAIL = f32(1 / 100)
"""About a hundred points of damage make a knockout."""
_PER_OUTSIDE = f32(1) / (tables.BLAST_X - tables.LEDGE)
_PER_BELOW = f32(1) / tables.BLAST_BELOW
_HIGH = f32(4)
"""Two jumps; who is higher was thrown, or is on the way to it."""
_PER_ABOVE = f32(1) / (tables.BLAST_ABOVE - _HIGH)
_MARGIN = f32(2.5)
"""The outer half of a block."""
_PER_MARGIN = f32(1) / _MARGIN
_CORNER = f32(4)
"""Who presses is no farther away than this."""
_STILL = f32(0.02)
"""The platform carries a body less than this in a frame; a walk is 0.18."""
_MANY_KEYS = 3
_SPAMS = (tables.CHORD_KEYS.sum(axis=0) > _MANY_KEYS).astype(np.float32)
"""[chords]: none of them, as it happens."""


def _as_number(ops: Ops, happened: Array) -> Array:
    return happened.astype(ops.xp.float32)


# --- damage, stocks and the result


def damage_dealt(ops: Ops, moment: Moment) -> Array:
    """Points, to the attacker."""
    return moment.after.dealt


def damage_taken(ops: Ops, moment: Moment) -> Array:
    """Points, to the victim."""
    return moment.after.dealt[::-1]


def knockout_dealt(ops: Ops, moment: Moment) -> Array:
    """1 to the player whose opponent was knocked out, by whatever cause."""
    return _as_number(ops, moment.after.knocked_out[::-1])


def knocked_out(ops: Ops, moment: Moment) -> Array:
    """1 to the victim."""
    return _as_number(ops, moment.after.knocked_out)


def win(ops: Ops, moment: Moment) -> Array:
    """1 to the winner, in the frame that ends the match."""
    return ops.xp.maximum(scores(ops, moment.after), _ZERO)


def loss(ops: Ops, moment: Moment) -> Array:
    """1 to the loser, in the frame that ends the match."""
    return ops.xp.maximum(-scores(ops, moment.after), _ZERO)


# --- fighting


def combo(ops: Ops, moment: Moment) -> Array:
    """1 to the attacker who hits a stunned player."""
    return _as_number(ops, moment.after.combo)


def stun(ops: Ops, moment: Moment) -> Array:
    """1 to the player whose opponent is stunned, -1 to the stunned one."""
    stunned = _as_number(ops, moment.after.stun > _ZERO)
    return stunned[::-1] - stunned


def equip(ops: Ops, moment: Moment) -> Array:
    """1 to the player who picks a weapon up."""
    return _as_number(ops, moment.after.equipped)


def drop(ops: Ops, moment: Moment) -> Array:
    """1 to the player who throws a weapon away."""
    return _as_number(ops, moment.after.dropped)


def attack(ops: Ops, moment: Moment) -> Array:
    """1 to the player who begins an attack, the recovery among them."""
    return _as_number(ops, _begun(moment.after))


def hit(ops: Ops, moment: Moment) -> Array:
    """1 to the player whose attack hits."""
    return _as_number(ops, moment.after.dealt > _ZERO)


def whiff(ops: Ops, moment: Moment) -> Array:
    """1 to the player who begins an attack that no attack could hit with; recoveries are free."""
    after = moment.after
    begun = _begun(after) & _out_of_reach(ops, after)
    for lift in _LIFTS:
        begun = begun & (after.move != lift)
    return _as_number(ops, begun)


def _begun(after: State) -> Array:
    """Whose move is in its first frame; who was hit in that frame has none any more."""
    return (after.move_clock == _ONE) & (after.move >= tables.FIRST_MOVE)


def _out_of_reach(ops: Ops, state: State) -> Array:
    xp = ops.xp
    far = xp.abs(state.x[::-1] - state.x) > REACH_X
    return far | (xp.abs(state.y[::-1] - state.y) > REACH_Y)


# --- where one is, and what one does there


def danger(ops: Ops, state: State) -> Array:
    """0 on the stage, 1 at a blast zone with a hundred points of damage, half of it with none.

    Along each way out: |x| from the ledge, y from the tops down, y from two jumps up.
    """
    xp = ops.xp
    near = xp.maximum((xp.abs(state.x) - tables.LEDGE) * _PER_OUTSIDE, state.y * _PER_BELOW)
    near = xp.maximum(near, (state.y - _HIGH) * _PER_ABOVE)
    frail = xp.minimum(state.damage * _FRAIL, _ONE)
    return xp.clip(near, _ZERO, _ONE) * (frail * _HALF + _HALF)


def cornered(ops: Ops, state: State) -> Array:
    """0 to 1 over the outer half of a block, and 1 beyond, while the opponent is inside and near.

    Inside: from here, the opponent is in the direction of the middle.
    """
    xp = ops.xp
    gap = state.x[::-1] - state.x
    pressed = (gap * state.x < _ZERO) & (xp.abs(gap) < _CORNER)
    out = (xp.abs(state.x) - (tables.LEDGE - _MARGIN)) * _PER_MARGIN
    return xp.where(pressed, xp.clip(out, _ZERO, _ONE), _ZERO)


def danger_zone(ops: Ops, moment: Moment) -> Array:
    """`danger` after the frame, to the player who is in it."""
    return danger(ops, moment.after)


def edge_pressure(ops: Ops, moment: Moment) -> Array:
    """How far the opponent is `cornered` after the frame, to the player who corners it."""
    return cornered(ops, moment.after)[::-1]


def over_pit(ops: Ops, moment: Moment) -> Array:
    """1 to the player in the air over the pit, or in it."""
    after = moment.after
    return _as_number(ops, (ops.xp.abs(after.x) < tables.PIT) & ~after.grounded)


def camping(ops: Ops, moment: Moment) -> Array:
    """1 to the player who could act and stands still, out of reach of an opponent who is there."""
    xp, before, after = ops.xp, moment.before, moment.after
    here = after.out <= _ZERO
    still = (xp.abs(after.x - before.x) < _STILL) & after.grounded
    still = still & (after.move == tables.NO_MOVE) & (after.dodge <= _ZERO)
    able = (before.stun <= _ZERO) & (before.wait <= _ZERO) & here & here[::-1]
    return _as_number(ops, still & able & _out_of_reach(ops, after))


def apart(ops: Ops, moment: Moment) -> Array:
    """Units between the players along x and y, added, in each frame."""
    return rewards.apart(ops, moment.after)


def key_spam(ops: Ops, moment: Moment) -> Array:
    """1 to the player who holds more than three keys at once."""
    if isinstance(moment.game.actions, Discrete):
        return ops.xp.asarray(_SPAMS).take(moment.actions[:, 0])
    keys = _as_number(ops, controls.keys_of_switches(ops, moment.actions)).sum(0)
    return _as_number(ops, keys > _MANY_KEYS)


def time(ops: Ops, moment: Moment) -> Array:
    """1 in every frame."""
    return ops.xp.ones_like(moment.after.dealt)
