"""Scripted players of swarm: sensible rules, chance, and each strategy held for a whole match."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.core import chance
from understudy.core.ops import Array, Ops
from understudy.games.base import Bot
from understudy.games.swarm import tables
from understudy.games.swarm.features import FEATURES, SCALES
from understudy.games.swarm.tables import f32

_UNITS = FEATURES.index("units")
_ALL_IN_AT = f32(tables.ALL_IN_UNITS / SCALES["units"] + 1e-4)
"""A hair above the rule, so that rounding never lets a bot choose what is not legal."""
_DRAW = np.zeros(1, np.uint32)
_SALT = 77
_ECONOMY, _AGGRESSIVE, _DEFENSIVE, _TECH, _ALL_IN = (np.array(i, np.int32) for i in range(5))
_UPGRADES, _ARMY, _WORKERS = f32(0.35), f32(0.35), f32(0.35)
_OUTNUMBERED, _SPARE_UNITS, _DOOR, _SLIP = f32(1.8), f32(0.02), f32(0.25), f32(0.1)


def _legal(ops: Ops, choice: Array, obs: Array) -> Array:
    """ALL_IN without an army becomes AGGRESSIVE: [B] -> [1, B]."""
    alone = (choice == _ALL_IN) & (obs[_UNITS] < _ALL_IN_AT)
    return ops.xp.where(alone, _AGGRESSIVE, choice)[None]


def _noise(ops: Ops, seeds: Array, frame: Array) -> Array:
    """One number in [0, 1) for each match, [B]."""
    key = chance.fold(chance.fold(seeds, _SALT), ops.xp.asarray(frame).astype(ops.xp.uint32))
    return chance.uniform(ops, key, _DRAW)[0]


@dataclass(frozen=True)
class Constant:
    """Plays one strategy from the first frame to the last."""

    strategy: str

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        """Always the same, int32 [1, B]."""
        xp = ops.xp
        choice = xp.full(obs.shape[1:], tables.STRATEGIES.index(self.strategy), xp.int32)
        return _legal(ops, choice, obs)


@dataclass(frozen=True)
class Uniform:
    """Plays any legal strategy, each as likely."""

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        """Chosen by chance, int32 [1, B]."""
        xp = ops.xp
        options = xp.where(obs[_UNITS] >= _ALL_IN_AT, f32(5), f32(4))
        return (_noise(ops, seeds, frame) * options).astype(xp.int32)[None]


@dataclass(frozen=True)
class Rules:
    """What a sensible person would write down on the first evening.

    Defend when outnumbered or when the enemy is at the door; else workers first, then upgrades,
    then attack. It slips now and then, never goes all in, and counts heads where it should count
    hit points: about an even match for `hard`.
    """

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        """Chosen by what is seen, int32 [1, B]."""
        where = ops.xp.where
        row = dict(zip(FEATURES, obs, strict=True))
        choice = where(row["upgrades"] < _UPGRADES, _TECH, _AGGRESSIVE)
        choice = where(row["units"] > _ARMY, _AGGRESSIVE, choice)
        choice = where(row["workers"] < _WORKERS, _ECONOMY, choice)
        outnumbered = row["enemy_units"] > row["units"] * _OUTNUMBERED + _SPARE_UNITS
        choice = where(outnumbered | (row["map_control"] < _DOOR), _DEFENSIVE, choice)
        choice = where(_noise(ops, seeds, frame) < _SLIP, _ECONOMY, choice)
        return choice[None]


BOTS: Mapping[str, Bot] = {
    "rules": Rules(),
    "random": Uniform(),
    **{name.lower(): Constant(name) for name in tables.STRATEGIES},
}
