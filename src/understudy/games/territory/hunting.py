"""Protectors and parasites: who goes where, who strikes whom; one tick of it.

Both sides strike from where they stand before the blow: neither is first.
"""

from __future__ import annotations

import numpy as np

from understudy.core.ops import Array, Ops
from understudy.games.territory import tables
from understudy.games.territory.state import State, at_work, distance, on_guard
from understudy.games.territory.tables import f32, i32

_SPEED, _SIGHT, _POST = (
    np.array([getattr(style, field) for style in tables.STYLES], np.int32)
    for field in ("speed", "sight", "post")
)
_PROTECTORS = np.arange(tables.PROTECTORS_MOST, dtype=np.int32)[:, None]
_ROWS = np.arange(tables.LIFETIME, dtype=np.int32)[:, None]
_VEINS = np.arange(tables.VEINS, dtype=np.int32)[:, None]
_LIFETIME, _TOUR, _VEIN_COUNT = i32(tables.LIFETIME), i32(tables.TOUR_TICKS), i32(tables.VEINS)
_STRIDE = i32(3)
"""Protectors on tour begin this many veins apart."""
_REACH, _NEVER, _ABSENCE, _HERE = i32(tables.KILL_RANGE), i32(99), i32(tables.ABSENCE), i32(0)
_COMBAT_FIRST = i32(50)
_ONE_TICK = i32(1)
_STRIKE_LEAST = f32(tables.STRIKE_LEAST)
_STRIKE_GAIN = f32((tables.STRIKE_MOST - tables.STRIKE_LEAST) / tables.PLAYER_ENERGY_MAX)
_BITE, _ZERO = f32(tables.BITE), f32(0)


def march(ops: Ops, state: State) -> State:
    """Protectors go for the nearest parasite in sight, else to their post."""
    xp = ops.xp
    apart = _to_parasites(ops, state)
    prey = _nearest(ops, apart)
    near = _pick(ops, apart, prey)
    target = xp.stack([_rows(ops, axis, prey) for axis in state.parasite])
    sight = xp.asarray(_SIGHT).take(state.style)
    goal = xp.where(near <= sight, target, _posts(ops, state))
    speed = xp.asarray(_SPEED).take(state.style)
    step = xp.minimum(xp.maximum(goal - state.protector, -speed), speed)
    moved = xp.where(on_guard(state), state.protector + step, state.base[:, None])
    absence = xp.maximum(state.absence - _ONE_TICK, _HERE)
    return state._replace(protector=moved, absence=absence)


def fight(ops: Ops, state: State, aim: Array, hunger: Array) -> State:
    """All that are in reach strike once; aim [protectors, B] and hunger [lifetime, B] are luck.

    A protector with a combat parasite in reach must deal with that one first.
    """
    xp = ops.xp
    there = on_guard(state)
    apart = _to_parasites(ops, state)
    reached = apart <= _REACH
    combat = (state.kind == tables.COMBAT)[:, None]
    target = _nearest(ops, xp.where(reached & combat, apart - _COMBAT_FIRST, apart))
    skill = _STRIKE_LEAST + state.player_energy[1] * _STRIKE_GAIN
    hits = there & (aim < skill) & (_pick(ops, apart, target) <= _REACH)
    blows = ((_ROWS[:, None] == target[None]) & hits[None]).astype(xp.float32).sum(axis=1)

    # Victims are the nearest protectors; seen from a parasite the same table, read across.
    victim = xp.where(there[None], apart, _NEVER).argmin(axis=1).astype(xp.int32)
    bites = (hunger < _BITE) & combat[:, 0] & reached.any(axis=1) & (state.health > _ZERO)
    bitten = ((_PROTECTORS[:, None] == victim[None]) & bites[None]).any(axis=1) & there
    return state._replace(
        health=xp.maximum(state.health - blows, _ZERO),
        absence=xp.where(bitten, _ABSENCE, state.absence),
    )


def spawn(ops: Ops, state: State, action: Array, place: Array, kind: Array) -> State:
    """Row frame % lifetime becomes the parasite of this tick, or is emptied: action int32 [B]."""
    xp = ops.xp
    mine = state.frame % _LIFETIME == _ROWS
    health = xp.asarray(np.array(tables.HEALTH, np.float32)).take(kind)
    health = xp.where(action != tables.NO_SPAWN, health, _ZERO)
    return state._replace(
        parasite=xp.where(mine, place[:, None], state.parasite),
        kind=xp.where(mine, kind, state.kind),
        health=xp.where(mine, health, state.health),
    )


def _to_parasites(ops: Ops, state: State) -> Array:
    """Distances int32 [lifetime, protectors, B]; rows that cannot be struck are far."""
    apart = distance(ops, state.parasite[:, :, None], state.protector[:, None])
    gone = (state.health <= _ZERO)[:, None] | ~on_guard(state)[None]
    return ops.xp.where(gone, _NEVER, apart)


def _nearest(ops: Ops, apart: Array) -> Array:
    """The row of the nearest parasite for each protector, int32 [protectors, B]."""
    return apart.argmin(axis=0).astype(ops.xp.int32)


def _pick(ops: Ops, apart: Array, row: Array) -> Array:
    """apart [lifetime, protectors, B] at row [protectors, B]."""
    return ops.xp.take_along_axis(apart, row[None], axis=0)[0]


def _rows(ops: Ops, table: Array, row: Array) -> Array:
    """table [n, B] at row [m, B]: [m, B]."""
    return ops.xp.take_along_axis(table, row, axis=0)


def _posts(ops: Ops, state: State) -> Array:
    """Where protectors wait, int32 [2, protectors, B]: the base, the busiest veins, or a tour."""
    xp = ops.xp
    post = xp.asarray(_POST).take(state.style)
    bound = (state.errand[None] == _VEINS[:, None]) & at_work(state)[None]
    heads = bound.astype(xp.int32).sum(axis=1, dtype=xp.int32)
    order = xp.sort(heads * _VEIN_COUNT + _VEINS, axis=0)[::-1] % _VEIN_COUNT
    busiest = order[: tables.PROTECTORS_MOST]
    tour = (state.frame // _TOUR + _PROTECTORS * _STRIDE) % _VEIN_COUNT
    vein = xp.where(post == tables.TOUR, tour, busiest)
    there = xp.stack([_rows(ops, axis, vein) for axis in state.vein])
    return xp.where(post == tables.BASE, state.base[:, None], there)
