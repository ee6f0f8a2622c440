"""What is seen of a territory, and the 28 numbers and the mask that a policy gets from it.

The game and a live server share this code. A `Seen` is filled by the server from a client's
message, or by `seen` from a state of the game, and from there on all is the same:

    features(ops, seen) -> float32 [28, B]          legal(ops, seen) -> bool [513, B]
    legal_from_features(ops, features) -> bool [513, B], the same mask from the numbers alone
    rewards.reward(ops, before, action, executed, after) -> float32 [B]

Arrays over chunks are float32 [256, B], counts of heads. An action is 1 + chunk * 2 + kind, kinds
being energy and combat, and 0 spawns nothing (`tables.action_of`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from understudy.core.ops import Array, Ops
from understudy.games.territory import tables
from understudy.games.territory.state import State, at_work, chunk_of, on_guard
from understudy.games.territory.tables import f32, i32

SLOTS = 5
"""Chunks that are described, those with most workers; of equal ones the lower number first."""
SLOT_WIDTH = 5
_EACH = ("id", "workers", "protectors", "energy_parasites", "combat_parasites")
FEATURES = (
    *(f"chunk{slot}.{what}" for slot in range(1, SLOTS + 1) for what in _EACH),
    *(f"{kind}_capacity" for kind in tables.KINDS),
    "player_energy_rate",
)
"""`id` is chunk / 255, and -1 / 255 with zeros after it where there are no more chunks with
workers; see docs/territory.md for the others."""

WORKERS_PER_UNIT, PROTECTORS_PER_UNIT, PARASITES_PER_UNIT = 6.0, 3.0, 3.0
"""Heads that make 1 of a density."""
CAPACITY_MOST = 10
"""More parasites than this are not counted."""
RATE_PER_UNIT, RATE_MOST = 10.0, 2.0
"""A player who gains the first in a tick has an energy rate of 1; no rate is beyond the second."""

_IDS = np.arange(tables.CHUNKS, dtype=np.int32)[:, None]
_LAST = i32(tables.CHUNKS - 1)
_CHUNKS = i32(tables.CHUNKS)
_PER_ID = f32(1.0 / (tables.CHUNKS - 1))
_EMPTY = i32(-1)
_STEPS = np.arange(1, CAPACITY_MOST + 1, dtype=np.float32)[:, None]
_PRICES = tuple(_STEPS * f32(cost) for cost in tables.COSTS)
_PER_WORKER, _PER_PROTECTOR = f32(1.0 / WORKERS_PER_UNIT), f32(1.0 / PROTECTORS_PER_UNIT)
_PER_PARASITE, _PER_RATE = f32(1.0 / PARASITES_PER_UNIT), f32(1.0 / RATE_PER_UNIT)
_PER_CAPACITY, _PAYABLE = f32(1.0 / CAPACITY_MOST), f32(0.5 / CAPACITY_MOST)
_CAPACITIES = SLOTS * SLOT_WIDTH
_ZERO, _RATE_MOST = f32(0), f32(RATE_MOST)


class Seen(NamedTuple):
    """What one observation tells of B territories; all float32."""

    workers: Array
    """[256, B]: all units in a chunk, mining ones included."""
    mining: Array
    """[256, B]"""
    protectors: Array
    """[256, B]"""
    energy_parasites: Array
    """[256, B]"""
    combat_parasites: Array
    """[256, B]"""
    queen_energy: Array
    """[B]"""
    queen_energy_max: Array
    """[B]"""
    player_energy: Array
    """[2, B]: when the interval began and when it ended."""
    player_minerals: Array
    """[2, B]: likewise."""


def seen(ops: Ops, state: State) -> Seen:
    """What a client of this match would report."""
    there = at_work(state)
    worker, parasite = chunk_of(state.worker), chunk_of(state.parasite)
    alive = state.health > _ZERO
    energy = state.kind == tables.ENERGY
    return Seen(
        workers=_heads(ops, worker, there),
        mining=_heads(ops, worker, state.mining & there),
        protectors=_heads(ops, chunk_of(state.protector), on_guard(state)),
        energy_parasites=_heads(ops, parasite, alive & energy),
        combat_parasites=_heads(ops, parasite, alive & ~energy),
        queen_energy=state.queen_energy,
        queen_energy_max=ops.xp.full_like(state.queen_energy, tables.QUEEN_ENERGY_MAX),
        player_energy=state.player_energy,
        player_minerals=state.minerals,
    )


def _heads(ops: Ops, chunk: Array, counted: Array) -> Array:
    """How many of chunk int32 [n, B] are in each: float32 [256, B], of those that are counted."""
    xp = ops.xp
    chunk = xp.where(counted, chunk, _EMPTY)
    # For NumPy the chunks are the last axis here, since few matches make short rows (5 times
    # faster), and int8 is summed, not bool (10 times).
    inside = (chunk.T[..., None] == _IDS[:, 0]).astype(xp.int8)
    return inside.sum(axis=1, dtype=xp.int8).T.astype(xp.float32)


def features(ops: Ops, seen: Seen) -> Array:
    """float32 [28, B] in the order of `FEATURES`."""
    xp = ops.xp
    order = seen.workers.astype(xp.int32) * _CHUNKS + (_LAST - _IDS)
    best = xp.sort(order, axis=0)[: -SLOTS - 1 : -1]
    filled = best >= _CHUNKS
    chunk = _LAST - best % _CHUNKS
    threat = xp.asarray(tables.THREAT).take(chunk, axis=1) * seen.protectors[:, None]
    rows = [
        (best // _CHUNKS).astype(xp.float32) * _PER_WORKER,
        threat.sum(axis=0) * _PER_PROTECTOR,
        xp.take_along_axis(seen.energy_parasites, chunk, axis=0) * _PER_PARASITE,
        xp.take_along_axis(seen.combat_parasites, chunk, axis=0) * _PER_PARASITE,
    ]
    rows = [row * filled for row in rows]
    name = xp.where(filled, chunk, _EMPTY).astype(xp.float32) * _PER_ID
    slots = xp.stack([name, *rows], axis=1).reshape(SLOTS * SLOT_WIDTH, -1)
    rate = (seen.player_energy[1] - seen.player_energy[0]) * _PER_RATE
    rate = xp.minimum(xp.maximum(rate, -_RATE_MOST), _RATE_MOST)
    return xp.concatenate([slots, capacities(ops, seen.queen_energy), rate[None]])


def capacities(ops: Ops, energy: Array) -> Array:
    """How many parasites of each kind queen energy [B] pays for, in tenths: float32 [2, B]."""
    xp = ops.xp
    # Counted, not divided: the last digit of a quotient may differ between engines.
    counts = [(energy[None] >= prices).sum(axis=0, dtype=xp.int32) for prices in _PRICES]
    return xp.stack(counts).astype(xp.float32) * _PER_CAPACITY


def legal(ops: Ops, seen: Seen) -> Array:
    """What the queen can pay for, bool [513, B]; to spawn nothing is always legal."""
    return payable(ops, seen.queen_energy)


def payable(ops: Ops, energy: Array) -> Array:
    """The mask for queen energy [B], bool [513, B]."""
    return _mask(ops, capacities(ops, energy))


def legal_from_features(ops: Ops, features: Array) -> Array:
    """`legal` from float32 [28, B] alone."""
    return _mask(ops, features[_CAPACITIES : _CAPACITIES + len(tables.KINDS)])


def _mask(ops: Ops, capacity: Array) -> Array:
    xp = ops.xp
    able = capacity > _PAYABLE
    wide = xp.broadcast_to(able, (tables.CHUNKS, *able.shape)).reshape(-1, able.shape[-1])
    return xp.concatenate([xp.ones_like(able[:1]), wide])
