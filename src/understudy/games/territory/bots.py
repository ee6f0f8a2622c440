"""Scripted queens: the zero line, a wary one, chance, one chunk for ever, and nothing at all.

All of them look at the 28 features alone, so that any of them can stand in for a policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.core import chance
from understudy.core.ops import Array, Ops
from understudy.games.base import Bot
from understudy.games.territory import tables
from understudy.games.territory.observation import (
    FEATURES,
    PARASITES_PER_UNIT,
    SLOT_WIDTH,
    SLOTS,
    WORKERS_PER_UNIT,
)
from understudy.games.territory.tables import f32, i32

_SALT = 91
_DRAWS = np.zeros(1, np.uint32)
_NONE = i32(tables.NO_SPAWN)
_CAPACITY = {kind: FEATURES.index(f"{kind}_capacity") for kind in tables.KINDS}
_PAYABLE, _ZERO, _ONE = f32(0.05), f32(0), f32(1)
_LAST = f32(tables.CHUNKS - 1)
_HELD_UP = f32(tables.HELD * PARASITES_PER_UNIT / WORKERS_PER_UNIT)
"""Worker density that one unit of parasite density holds up."""
_FULL = f32(tables.HELD / WORKERS_PER_UNIT)
"""Worker density that a single parasite holds up."""
_UNEASE, _TINY = f32(0.5), f32(0.01)
"""Of `Queen`: how much a protector puts her off, though never quite."""
_CAUTION, _GUARDED, _LEAST, _GOOD = f32(3), f32(0.4), f32(0.05), f32(0.2)
"""Of `Wary`: how much a protector puts her off, how many make a guard, and from when on a place is
worth an energy parasite, and worth it rather than a fight."""


def _slots(obs: Array) -> tuple[Array, Array, Array, Array, Array]:
    """id, workers, protectors, energy and combat parasites of each slot, [5, B] each."""
    table = obs[: SLOTS * SLOT_WIDTH].reshape(SLOTS, SLOT_WIDTH, -1)
    return table[:, 0], table[:, 1], table[:, 2], table[:, 3], table[:, 4]


def _can(obs: Array, kind: int) -> Array:
    return obs[_CAPACITY[tables.KINDS[kind]]] > _PAYABLE


def _spawn(ops: Ops, name: Array, kind: Array | int) -> Array:
    """The action int32 [B] for a slot's id [B] and a kind."""
    chunk = ops.xp.rint(name * _LAST).astype(ops.xp.int32)
    return tables.action_of(chunk, kind)


def _free(ops: Ops, workers: Array, energy: Array) -> Array:
    """The density of workers [5, B] that energy parasites [5, B] leave."""
    return ops.xp.maximum(workers - energy * _HELD_UP, _ZERO)


def _at(ops: Ops, rows: Array, slot: Array) -> Array:
    """rows [5, B] at slot [B]."""
    return ops.xp.take_along_axis(rows, slot[None], axis=0)[0]


@dataclass(frozen=True)
class Queen:
    """Spawns an energy parasite as soon as she can pay, where most workers are that no parasite
    holds up yet; protectors put her off a little. She never saves and never fights."""

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        """int32 [1, B]."""
        name, workers, protectors, energy, _ = _slots(obs)
        unease = ops.xp.maximum(_ONE - protectors * _UNEASE, _TINY)
        worth = _free(ops, workers, energy) * unease
        most = worth.argmax(axis=0)
        able = _can(obs, tables.ENERGY) & (_at(ops, worth, most) > _ZERO)
        return ops.xp.where(able, _spawn(ops, _at(ops, name, most), tables.ENERGY), _NONE)[None]


@dataclass(frozen=True)
class Wary:
    """Looks where protectors are: an energy parasite where workers are free and unguarded;
    where all are guarded she saves for a combat parasite and sends it to the guards."""

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        """int32 [1, B]."""
        xp = ops.xp
        name, workers, protectors, energy, combat = _slots(obs)
        worth = xp.minimum(_free(ops, workers, energy), _FULL) * xp.maximum(
            _ONE - protectors * _CAUTION, _ZERO
        )
        best = worth.argmax(axis=0)
        worthwhile = _at(ops, worth, best)
        raid = (worthwhile > _LEAST) & _can(obs, tables.ENERGY)
        guards = xp.where((combat > _ZERO) | (name < _ZERO), _ZERO, protectors)
        densest = guards.argmax(axis=0)
        attack = (_at(ops, guards, densest) > _GUARDED) & (worthwhile < _GOOD)
        blow = _spawn(ops, _at(ops, name, densest), tables.COMBAT)
        sting = _spawn(ops, _at(ops, name, best), tables.ENERGY)
        calm = xp.where(raid, sting, _NONE)
        return xp.where(attack, xp.where(_can(obs, tables.COMBAT), blow, _NONE), calm)[None]


@dataclass(frozen=True)
class Single:
    """Spawns at one chunk for ever, whenever she can pay: what a policy that collapsed does."""

    chunk: Array
    """int32 [B], or one for all matches."""
    kind: int = tables.ENERGY

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        """int32 [1, B]."""
        action = tables.action_of(self.chunk, self.kind)
        return ops.xp.where(_can(obs, self.kind), action, _NONE).astype(ops.xp.int32)[None]


@dataclass(frozen=True)
class Uniform:
    """Any legal action, each as likely."""

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        """int32 [1, B]."""
        xp = ops.xp
        key = chance.fold(chance.fold(seeds, _SALT), xp.asarray(frame).astype(xp.uint32))
        draw = chance.uniform(ops, key, _DRAWS)[0]
        # An energy parasite is the cheaper one: energy for the other pays for either.
        energy, both = _can(obs, tables.ENERGY), _can(obs, tables.COMBAT)
        options = xp.where(both, i32(tables.OPTIONS), i32(1 + tables.CHUNKS))
        options = xp.where(energy, options, i32(1))
        pick = (draw * options.astype(xp.float32)).astype(xp.int32)
        cheap = xp.where(pick > _NONE, tables.action_of(pick - i32(1), tables.ENERGY), _NONE)
        return xp.where(both, pick, cheap)[None]


@dataclass(frozen=True)
class Nothing:
    """Never spawns."""

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        """int32 [1, B]."""
        return ops.xp.zeros((1, obs.shape[1]), ops.xp.int32)


BOTS: Mapping[str, Bot] = {
    "queen": Queen(),
    "wary": Wary(),
    "random": Uniform(),
    "nothing": Nothing(),
}
