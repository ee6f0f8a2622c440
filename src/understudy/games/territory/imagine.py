"""A state that would look like this: what a gate plays on from when it knows 28 numbers alone.

Workers, parasites and the queen's means come out as they are seen; protectors are put where they
explain the densities best; what cannot be seen (the player's style, other veins) is drawn. Numbers
that no territory has (a client can send anything) count as the nearest that one could have.
"""

from __future__ import annotations

import numpy as np

from understudy.core import chance
from understudy.core.ops import Array, Ops
from understudy.games.territory import tables, working
from understudy.games.territory.observation import (
    CAPACITY_MOST,
    PARASITES_PER_UNIT,
    PROTECTORS_PER_UNIT,
    RATE_MOST,
    RATE_PER_UNIT,
    SLOT_WIDTH,
    SLOTS,
    WORKERS_PER_UNIT,
)
from understudy.games.territory.rules import Territory
from understudy.games.territory.state import State, place_of
from understudy.games.territory.tables import f32, i32

_SALT = 53
_ROWS = np.arange(tables.LIFETIME, dtype=np.int32)[:, None]
_SCATTER = i32(7)
"""No divisor of the lifetime: parasites of one chunk get ages far apart."""
_WORKERS = np.arange(tables.WORKERS_MOST, dtype=np.int32)[:, None]
_DRAW = np.zeros(1, np.uint32)
_LAST, _ZERO, _ONE, _TWO, _HALF = f32(tables.CHUNKS - 1), f32(0), f32(1), f32(2), f32(0.5)
_LEAST_GAIN = f32(0.02)
"""A protector that explains less than this of the densities' squares is not there."""
_FIRST = i32(0)
_HEADS = (
    tables.WORKERS_MOST / WORKERS_PER_UNIT,
    tables.PROTECTORS_MOST / PROTECTORS_PER_UNIT,
    tables.LIFETIME / PARASITES_PER_UNIT,
    tables.LIFETIME / PARASITES_PER_UNIT,
)
_LOW = np.array([*(-1, 0, 0, 0, 0) * SLOTS, 0, 0, -RATE_MOST], np.float32)[:, None]
_HIGH = np.array([*(1, *_HEADS) * SLOTS, 1, 1, RATE_MOST], np.float32)[:, None]
"""[28, 1]: what each feature can be of this game."""


def imagine(ops: Ops, features: Array, seeds: Array) -> State:
    """States of B matches at their first tick: features float32 [28, B], seeds uint32 [B]."""
    xp = ops.xp
    seeds = chance.fold(xp.asarray(seeds, xp.uint32), _SALT)
    state = Territory().start(ops, seeds)
    features = xp.minimum(xp.maximum(features, _LOW), _HIGH)
    slots = features[: SLOTS * SLOT_WIDTH].reshape(SLOTS, SLOT_WIDTH, -1)
    filled = slots[:, 0] >= _ZERO
    chunk = xp.where(filled, _whole(ops, slots[:, 0] * _LAST), _FIRST)
    place = place_of(ops, chunk)
    vein = xp.concatenate(
        [xp.where(filled, place, state.vein[:, :SLOTS]), state.vein[:, SLOTS:]], 1
    )

    heads = xp.where(filled, _whole(ops, slots[:, 1] * f32(WORKERS_PER_UNIT)), _FIRST)
    errand = _dealt(ops, heads, _WORKERS)
    protector, protectors = _protectors(ops, chunk, slots[:, 2], filled)
    rate = features[-1] * f32(RATE_PER_UNIT)
    state = state._replace(
        queen_energy=_queen_energy(ops, features[SLOTS * SLOT_WIDTH : -1]),
        player_energy=state.player_energy + xp.stack([-rate, rate]) * _HALF,
        vein=vein,
        workers=xp.minimum(heads.sum(axis=0, dtype=xp.int32), i32(tables.WORKERS_MOST)),
        errand=errand,
        worker=xp.stack([xp.take_along_axis(axis, errand, axis=0) for axis in vein]),
        protector=protector,
        protectors=protectors,
    )
    state = _infest(ops, state, place, slots[:, 3:5] * filled[:, None])
    return state._replace(mining=working.busy(ops, state))


def _whole(ops: Ops, value: Array) -> Array:
    return ops.xp.floor(value + _HALF).astype(ops.xp.int32)


def _dealt(ops: Ops, counts: Array, rows: Array) -> Array:
    """The group that each row falls to, int32 [rows, B], groups of counts [n, B] in order; the last
    group for rows that are over."""
    ends = ops.xp.cumsum(counts, axis=0, dtype=ops.xp.int32)[:-1]
    return (rows >= ends[:, None]).sum(axis=0, dtype=ops.xp.int32)


def _queen_energy(ops: Ops, capacity: Array) -> Array:
    """The middle of what pays for capacities [2, B] and no more, float32 [B]."""
    xp = ops.xp
    count = xp.floor(capacity * f32(CAPACITY_MOST) + _HALF)
    cost = xp.asarray(np.array(tables.COSTS, np.float32))[:, None]
    low, high = (count * cost).max(axis=0), ((count + _ONE) * cost).min(axis=0)
    return xp.minimum((low + high) * _HALF, f32(tables.QUEEN_ENERGY_MAX))


def _protectors(ops: Ops, chunk: Array, density: Array, filled: Array) -> tuple[Array, Array]:
    """Places int32 [2, protectors, B] and how many there are [B].

    They are put down one by one, each where it comes closest (in squares) to what is left of the
    density [5, B] at chunks [5, B], of those slots that are filled.
    """
    xp = ops.xp
    left = density * f32(PROTECTORS_PER_UNIT)
    threat = xp.asarray(tables.THREAT).take(chunk, axis=1) * filled
    own = (threat * threat).sum(axis=1)
    places, count = [], xp.zeros_like(chunk[0])
    for _ in range(tables.PROTECTORS_MOST):
        gain = (threat * left).sum(axis=1) * _TWO - own
        spot = gain.argmax(axis=0).astype(xp.int32)
        there = gain.max(axis=0) > _LEAST_GAIN
        felt = xp.take_along_axis(threat, spot[None, None], axis=0)[0]
        left = xp.where(there, left - felt, left)
        # Rows in use come first: once one explains nothing, none after it does.
        places.append(place_of(ops, spot))
        count = count + there
    return xp.stack(places, axis=1), count.astype(xp.int32)


def _infest(ops: Ops, state: State, place: Array, density: Array) -> State:
    """Parasites of both kinds, density [5, 2, B], at places [2, 5, B]; their ages are drawn."""
    xp = ops.xp
    counts = _whole(ops, density * f32(PARASITES_PER_UNIT))
    kinds = len(tables.KINDS)
    groups = counts.reshape(SLOTS * kinds, -1)
    shift = chance.uniform(ops, state.key, _DRAW) * f32(tables.LIFETIME)
    rows = (_ROWS * _SCATTER + shift.astype(xp.int32)) % i32(tables.LIFETIME)
    group = _dealt(ops, groups, rows)
    kind = group % i32(kinds)
    spot = group // i32(kinds)
    alive = rows < groups.sum(axis=0, dtype=xp.int32)
    health = xp.asarray(np.array(tables.HEALTH, np.float32)).take(kind)
    return state._replace(
        parasite=xp.stack([xp.take_along_axis(axis, spot, axis=0) for axis in place]),
        kind=kind,
        health=xp.where(alive, health, _ZERO),
    )
