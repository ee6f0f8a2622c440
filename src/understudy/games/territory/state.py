"""B matches of territory as arrays: every unit has a row, and stands in one chunk.

Places are int32 [2, n, B]: column and row of a chunk. Counts and energies are float32. There are as
many rows as any match may need. Rows without a unit move like the others, so code that reads a
place first asks whether the row is a unit (`at_work`, `on_guard`, `health`): no match depends on
the unused rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from understudy.core.ops import Array, Ops
from understudy.games.territory import tables
from understudy.games.territory.tables import i32

_GRID = i32(tables.GRID)
_WORKERS = np.arange(tables.WORKERS_MOST, dtype=np.int32)[:, None]
_PROTECTORS = np.arange(tables.PROTECTORS_MOST, dtype=np.int32)[:, None]


class State(NamedTuple):
    """B matches side by side."""

    frame: Array
    """int32 [B]"""
    key: Array
    """uint32 [B]: what every draw of this match is folded from."""
    style: Array
    """int32 [B]: which of `tables.STYLES` the player is."""
    base: Array
    """int32 [2, B]: where protectors come from."""
    queen_energy: Array
    """float32 [B]"""
    player_energy: Array
    """float32 [2, B]: when the last tick began and when it ended."""
    minerals: Array
    """float32 [2, B]: all that was mined, when the last tick began and when it ended."""
    vein: Array
    """int32 [2, veins, B]"""
    ore: Array
    """float32 [veins, B]"""
    workers: Array
    """int32 [B]: how many rows of `worker` there are."""
    worker: Array
    """int32 [2, workers, B]"""
    errand: Array
    """int32 [workers, B]: the vein that each works at or walks to."""
    mining: Array
    """bool [workers, B]: who mined in the last tick."""
    protectors: Array
    """int32 [B]: how many rows of `protector` there are."""
    protector: Array
    """int32 [2, protectors, B]"""
    absence: Array
    """int32 [protectors, B]: ticks until one that was killed is back; 0: it is there."""
    parasite: Array
    """int32 [2, lifetime, B]: row t % lifetime is the one that was spawned in tick t."""
    kind: Array
    """int32 [lifetime, B]"""
    health: Array
    """float32 [lifetime, B]: blows that it still takes; 0: there is none."""
    spawned: Array
    """int32 [B]: the action that the last tick executed."""


def at_work(state: State) -> Array:
    """Which rows of `worker` are in use, bool [workers, B]."""
    return state.workers > _WORKERS


def on_guard(state: State) -> Array:
    """Which rows of `protector` are there now, bool [protectors, B]."""
    return (state.protectors > _PROTECTORS) & (state.absence == 0)


def chunk_of(place: Array) -> Array:
    """The number of a chunk from its column and row: int32 [2, ...] to [...]."""
    return place[1] * _GRID + place[0]


def place_of(ops: Ops, chunk: Array) -> Array:
    """Column and row [2, ...] of a chunk int32 [...]."""
    return ops.xp.stack([chunk % _GRID, chunk // _GRID])


def distance(ops: Ops, one: Array, other: Array) -> Array:
    """Chunks between places int32 [2, ...], which broadcast."""
    apart = abs(one - other)
    return ops.xp.maximum(apart[0], apart[1])
