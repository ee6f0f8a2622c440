"""Income, larvae, supply and spending of one frame, for both sides at once.

A strategy's shares were turned into units for each mineral by `tables.ORDERS_TABLE`, so that what a
side wants is one product; larvae, supply, gas and room then say what it gets.
"""

from __future__ import annotations

from typing import NamedTuple

from understudy.core.ops import Array, Ops
from understudy.games.swarm import tables
from understudy.games.swarm.state import State
from understudy.games.swarm.tables import f32

MINERALS = f32(1.8)
"""What one worker brings home in a frame."""
VESPENE = f32(0.5)
SATURATION = f32(20)
"""Workers that one townhall keeps busy."""
LARVA = f32(0.5)
"""Larvae that one townhall hatches in a frame, and (below) how many wait at it at most."""
LARVA_ROOM = f32(4)
SUPPLY_MAX, WORKERS_MAX, DEFENCE_MAX = f32(200), f32(75), f32(14)
UPGRADES_MAX, HALLS_MAX = f32(10), f32(6)
ARMY_GAS, UPGRADE_GAS = f32(18), f32(150)
SUPPLY_COST = f32(100 / 8)
"""An overlord is 100 minerals for 8 supply; overlords are built by themselves."""
SUPPLY_PACE = f32(3)
_AHEAD, _SPARE = f32(1.15), f32(4)
HOME_GUARD = f32(12)
"""Workers that are never pulled into the army."""
PULLED_WORTH = f32(0.5)
"""What a pulled worker is worth as a soldier."""
_DRONE, _UNIT, _DEFENCE, _UPGRADE, _HALL = (f32(cost) for cost in tables.COSTS)
_ZERO, _ONE, _TINY = f32(0), f32(1), f32(1e-3)


class Growth(NamedTuple):
    """The fields of a state that the economy moves, each [2, B]."""

    minerals: Array
    vespene: Array
    workers: Array
    army: Array
    defence: Array
    upgrades: Array
    halls: Array
    larva: Array
    supply_cap: Array
    front: Array


def grow(ops: Ops, state: State, orders: Array) -> Growth:
    """Mine, hatch and spend by orders [orders, 2, B]."""
    low, high = ops.xp.minimum, ops.xp.maximum
    busy = state.halls * SATURATION
    mined = low(state.workers, busy) * state.income
    minerals = state.minerals + mined * MINERALS
    vespene = state.vespene + mined * VESPENE
    larva = low(state.larva + state.halls * LARVA, state.halls * LARVA_ROOM)

    used = state.workers + state.army
    short = used * _AHEAD + _SPARE - state.supply_cap
    supply = high(low(low(short, state.halls * SUPPLY_PACE), minerals / SUPPLY_COST), _ZERO)
    supply_cap = low(state.supply_cap + supply, SUPPLY_MAX)
    minerals = minerals - supply * SUPPLY_COST

    wanted = orders[:5] * minerals
    drones = low(wanted[0], high(low(busy, WORKERS_MAX) - state.workers, _ZERO))
    army = wanted[1]
    defence = low(wanted[2], high(DEFENCE_MAX - state.defence, _ZERO))
    upgrades = low(wanted[3], high(UPGRADES_MAX - state.upgrades, _ZERO))
    halls = low(wanted[4], high(HALLS_MAX - state.halls, _ZERO))

    gas = low(vespene / (army * ARMY_GAS + upgrades * UPGRADE_GAS + _TINY), _ONE)
    army, upgrades = army * gas, upgrades * gas
    room = high(low(larva, supply_cap - used), _ZERO)
    hatched = low(room / (drones + army + _TINY), _ONE)
    drones, army = drones * hatched, army * hatched
    spent = (
        drones * _DRONE + army * _UNIT + defence * _DEFENCE + upgrades * _UPGRADE + halls * _HALL
    )

    pulled = high(state.workers - HOME_GUARD, _ZERO) * orders[tables.PULL]
    recruits = army + pulled * PULLED_WORTH
    together = state.army + recruits
    return Growth(
        minerals=minerals - spent,
        vespene=vespene - army * ARMY_GAS - upgrades * UPGRADE_GAS,
        workers=state.workers + drones - pulled,
        army=together,
        defence=state.defence + defence,
        upgrades=state.upgrades + upgrades,
        halls=state.halls + halls,
        larva=larva - drones - army,
        supply_cap=supply_cap,
        # Recruits start at home, so the middle of the army falls back: attackers far away are
        # reinforced late, defenders at once.
        front=state.front * (state.army + _ONE) / (together + _ONE),
    )
