"""What a player of swarm sees: fifteen numbers, the enemy's through the fog."""

from __future__ import annotations

import numpy as np

from understudy.core.ops import Array, Ops
from understudy.games.swarm import tables
from understudy.games.swarm.state import State
from understudy.games.swarm.tables import f32

SCALES = {
    "minerals": 2000.0,
    "vespene": 1000.0,
    "supply_used": 200.0,
    "supply_cap": 200.0,
    "workers": 100.0,
    "units": 100.0,
    "enemy_units": 100.0,
    "townhalls": 10.0,
    "time_s": 1000.0,
    "enemy_bases": 5.0,
    "upgrades": 10.0,
    "larva": 20.0,
    "map_control": 1.0,
    "our_army_hp": 5000.0,
    "enemy_hp": 5000.0,
}
"""Each feature in its order, with what it is divided by."""
FEATURES = tuple(SCALES)
_INVERSE = (np.float32(1) / np.array(list(SCALES.values()), np.float32))[:, None]

_CLAIM, _REACH, _LOSS = f32(0.3), f32(0.7), f32(0.3)
_UNIT_HP, _UPGRADE_HP = f32(tables.UNIT_HP), f32(2)
_SECONDS = f32(tables.SECONDS_PER_FRAME)
_SIGHT, _SIGHT_AFIELD = f32(0.1), f32(0.3)
"""How much of what is hidden one frame of scouting uncovers, and how much more an army afield."""
_HALF, _ZERO, _ONE, _TWO = f32(0.5), f32(0), f32(1), f32(2)


def map_control(ops: Ops, front: Array) -> Array:
    """How much of the map is ours [B], from front [2, B].

    Our army claims it as it goes out; an enemy on our half takes some of it back.
    """
    near = ops.xp.maximum(front[1] * _TWO - _ONE, _ZERO)
    return _CLAIM + front[0] * _REACH - near * _LOSS


def scout(ops: Ops, state: State, look: Array) -> Array:
    """What is known of the enemy [3, B] after this frame's scouting; look [B] in [0, 1).

    Old sightings fade towards the truth, slowly from home and fast where armies are afield.
    """
    army = state.army[1]
    truth = ops.xp.stack([army * state.heads, state.halls[1], army * _UNIT_HP])
    sight = _SIGHT + (state.front[0] + state.front[1]) * _SIGHT_AFIELD
    return state.seen + (truth - state.seen) * (sight * (_HALF + look))


def observe(ops: Ops, state: State) -> Array:
    """The features, float32 [1, 15, B]."""
    xp = ops.xp
    workers, units, upgrades = state.workers[0], state.army[0], state.upgrades[0]
    rows = [
        state.minerals[0],
        state.vespene[0],
        workers + units,
        state.supply_cap[0],
        workers,
        units,
        state.seen[0],
        state.halls[0],
        state.frame.astype(xp.float32) * _SECONDS,
        state.seen[1],
        upgrades,
        state.larva[0],
        map_control(ops, state.front),
        units * (_UNIT_HP + upgrades * _UPGRADE_HP),
        state.seen[2],
    ]
    return (xp.stack(rows) * _INVERSE)[None]
