"""Workers: they walk to veins, mine, are held up, take fright and find other veins."""

from __future__ import annotations

import numpy as np

from understudy.core.ops import Array, Ops
from understudy.games.territory import tables
from understudy.games.territory.state import State, at_work, chunk_of, distance, place_of
from understudy.games.territory.tables import f32, i32

_FRIGHT = np.array([style.fright for style in tables.STYLES], np.float32)
_VEINS = np.arange(tables.VEINS, dtype=np.int32)[:, None, None]
_EARLIER = np.tri(tables.WORKERS_MOST, k=-1, dtype=np.bool_)[:, :, None]
"""[one, other, 1]: whether the other stands before one in a chunk."""
_SPEED, _HELD = i32(tables.WORKER_SPEED), f32(tables.HELD)
_CHUNKS, _LAST = f32(tables.CHUNKS), i32(tables.CHUNKS - 1)
_ORE_LEAST, _ORE_RANGE = f32(tables.ORE_LEAST), f32(tables.ORE_MOST - tables.ORE_LEAST)
_CROWD, _FEAR, _WHIM, _HERE = f32(1.5), f32(5), f32(8), f32(1000)
"""What a worker holds against a vein, in chunks of walking: each other worker bound for it, each
parasite there, a mood of its own, and being the one that it wants to leave."""
_ZERO = f32(0)


def work(ops: Ops, state: State, fright: Array, whim: Array, find: Array) -> State:
    """One tick of all workers; luck: fright [workers, B], whim [veins, workers, B], find
    [2, veins, B] for where the next vein is found and how much is in it."""
    xp = ops.xp
    pests = _energy_parasites(ops, state, chunk_of(state.worker))
    chance = xp.asarray(_FRIGHT).take(state.style)
    leaves = fright < pests * chance
    errand = xp.where(leaves, _other_vein(ops, state, whim), state.errand)
    goal = xp.stack([xp.take_along_axis(axis, errand, axis=0) for axis in state.vein])
    step = xp.minimum(xp.maximum(goal - state.worker, -_SPEED), _SPEED)
    state = state._replace(errand=errand, worker=state.worker + step)

    mining = busy(ops, state)
    digging = ((errand[None] == _VEINS) & mining[None]).astype(xp.float32)
    ore = state.ore - digging.sum(axis=1)
    return _renew(ops, state._replace(mining=mining, ore=ore), whim, find)


def busy(ops: Ops, state: State) -> Array:
    """Which workers mine, bool [workers, B]: they have arrived and no parasite holds them up."""
    goal = ops.xp.stack([ops.xp.take_along_axis(axis, state.errand, axis=0) for axis in state.vein])
    arrived = (distance(ops, state.worker, goal) == 0) & at_work(state)
    held = _energy_parasites(ops, state, chunk_of(state.worker)) * _HELD
    return arrived & (_rank(ops, state, arrived) >= held)


def _energy_parasites(ops: Ops, state: State, chunk: Array) -> Array:
    """How many share a chunk int32 [n, B]: float32 [n, B]."""
    alive = (state.health > _ZERO) & (state.kind == tables.ENERGY)
    here = (chunk_of(state.parasite)[:, None] == chunk[None]) & alive[:, None]
    return here.astype(ops.xp.int8).sum(axis=0, dtype=ops.xp.int8).astype(ops.xp.float32)


def _rank(ops: Ops, state: State, arrived: Array) -> Array:
    """How many workers of the same chunk come before each, float32 [workers, B]."""
    chunk = chunk_of(state.worker)
    before = (chunk[:, None] == chunk[None]) & _EARLIER & arrived[None]
    return before.astype(ops.xp.int8).sum(axis=1, dtype=ops.xp.int8).astype(ops.xp.float32)


def _other_vein(ops: Ops, state: State, whim: Array) -> Array:
    """Where each worker would go if it left, int32 [workers, B]."""
    xp = ops.xp
    bound = (state.errand[None] == _VEINS) & at_work(state)[None]
    crowd = bound.astype(xp.float32).sum(axis=1)
    pests = _energy_parasites(ops, state, chunk_of(state.vein))
    walk = distance(ops, state.vein[:, :, None], state.worker[:, None]).astype(xp.float32)
    against = walk + (crowd * _CROWD + pests * _FEAR)[:, None] + whim * _WHIM
    against = against + xp.where(state.errand[None] == _VEINS, _HERE, _ZERO)
    return against.argmin(axis=0).astype(xp.int32)


def _renew(ops: Ops, state: State, whim: Array, find: Array) -> State:
    """A vein without ore is found anew somewhere else; its workers look for one each."""
    xp = ops.xp
    spent = state.ore <= _ZERO
    dry = xp.take_along_axis(spent, state.errand, axis=0)
    errand = xp.where(dry, _other_vein(ops, state, whim), state.errand)
    chunk = xp.minimum((find[0] * _CHUNKS).astype(xp.int32), _LAST)
    return state._replace(
        errand=errand,
        vein=xp.where(spent, place_of(ops, chunk), state.vein),
        ore=xp.where(spent, _ORE_LEAST + find[1] * _ORE_RANGE, state.ore),
    )
