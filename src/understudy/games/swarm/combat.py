"""Armies march, meet and lay siege: one frame of it, for both sides at once.

`front` runs from 0 (own base) to 1 (the other's), so two armies meet where their fronts add up to
about one. Both sides strike from the state before the blow: neither is first.
"""

from __future__ import annotations

from typing import NamedTuple

from understudy.core.ops import Array, Ops
from understudy.games.swarm import tables
from understudy.games.swarm.state import State
from understudy.games.swarm.tables import f32

UPGRADE_POWER, UPGRADE_ARMOUR = f32(0.1), f32(0.05)
DEFENCE_POWER = f32(3)
"""What a static defence is worth, in units, when its base is besieged."""
MILITIA = f32(0.3)
"""What a worker is worth when its base is besieged."""
BITE = f32(0.06)
"""Units that one unit of power kills in a frame of full contact."""
RAZE = f32(0.005)
"""Townhalls that one unit of power razes in a frame, above what the defenders hold."""
BREACH = f32(0.02)
RAZED = f32(0.1)
"""A side with less than this of a townhall has lost."""
HOPELESS, HOPELESS_UNITS = f32(2.5), f32(20)
"""A side outmatched this many times, in arms (and so many units more) and in all, gives up."""
POINTS = f32(1.5)
"""At the time limit a side with so many times the other's arms wins; closer is a draw."""
GARRISON = f32(8)
"""Units that a cautious army adds to what it knows of the other's: there are always some more."""
_NERVE, _DOUBT_MAX = f32(1.3), f32(0.7)
_REACH, _FAR, _HOME = f32(5), f32(3.5), f32(4)
_LUCK_LEAST, _LUCK_RANGE = f32(0.85), f32(0.3)
_UNITS_PER_HP = f32(1 / tables.UNIT_HP)
_ZERO, _ONE, _TINY = f32(0), f32(1), f32(1e-3)


class Toll(NamedTuple):
    """The fields of a state that a fight moves, each [2, B]."""

    army: Array
    front: Array
    defence: Array
    halls: Array
    workers: Array


def power(army: Array, upgrades: Array) -> Array:
    """What an army is worth in a fight in the open, in units without upgrades."""
    return army * (_ONE + upgrades * UPGRADE_POWER)


def might(state: State) -> Array:
    """All arms of each side [2, B]: the army and the static defences."""
    return power(state.army, state.upgrades) + state.defence * DEFENCE_POWER


def beaten(state: State) -> Array:
    """Which side has lost, bool [2, B].

    It has no townhall left, is hopelessly outmatched, or is behind in arms at the time limit.
    """
    arms = might(state)
    worth = arms + state.workers
    outgunned = arms[::-1] > arms * HOPELESS + HOPELESS_UNITS
    on_points = (state.frame >= tables.MAX_FRAMES) & (arms[::-1] > arms * POINTS)
    return (state.halls < RAZED) | (outgunned & (worth[::-1] > worth * HOPELESS)) | on_points


def _ramp(ops: Ops, value: Array) -> Array:
    """0 until 0.7, 1 from 0.9 on: how far an army is in contact."""
    return ops.xp.minimum(ops.xp.maximum(value * _REACH - _FAR, _ZERO), _ONE)


def doubt(ops: Ops, state: State, strength: Array) -> Array:
    """How unsure each army is of winning, [2, B] from 0 to 0.7; ours goes by what was scouted."""
    xp = ops.xp
    rival = xp.stack([state.seen[2] * _UNITS_PER_HP, strength[0]]) + GARRISON
    return xp.minimum(xp.maximum(_NERVE - strength / rival * _NERVE, _ZERO), _DOUBT_MAX)


def fight(ops: Ops, state: State, orders: Array, luck: Array) -> Toll:
    """March towards the goal of orders, fight where armies meet, raze what is not held.

    orders: [orders, 2, B]; luck: [2, B] in [0, 1), how well each side fights this frame.
    """
    low, high = ops.xp.minimum, ops.xp.maximum
    strength = power(state.army, state.upgrades)
    meet = _ramp(ops, state.front[0] + state.front[1])
    pace = orders[tables.MARCH] / state.distance
    goal = orders[tables.GOAL] * (_ONE - orders[tables.CAUTION] * doubt(ops, state, strength))
    front = state.front + high(low(goal - state.front, pace * (_ONE - meet)), -pace)

    siege = _ramp(ops, front)
    at_home = high(_ONE - front * _HOME, _ZERO)
    attack = orders[tables.ATTACK]
    posture = attack + (orders[tables.HOLD] - attack) * at_home
    blow = strength * posture * (_LUCK_LEAST + luck * _LUCK_RANGE)
    walls = state.defence * DEFENCE_POWER + state.workers * MILITIA
    inbound = blow[::-1]

    wounds = (inbound * meet + walls[::-1] * siege) * BITE
    push = inbound * siege[::-1]
    held = blow * meet + walls + _TINY
    halls = high(state.halls - high(push - held, _ZERO) * RAZE, _ZERO)
    return Toll(
        army=high(state.army - wounds / (_ONE + state.upgrades * UPGRADE_ARMOUR), _ZERO),
        front=front,
        defence=high(state.defence - push * walls / held * BREACH, _ZERO),
        halls=halls,
        workers=state.workers * (halls / (state.halls + _TINY)),
    )
