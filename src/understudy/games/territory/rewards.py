"""What a decision was worth, from what was seen before it and at the next tick.

`reward` is the one formula: the game's own and the live server's. The three drops are signed, so
that what is won by them is paid back when it is lost: they cannot be farmed.
"""

from __future__ import annotations

from typing import NamedTuple

from understudy.core.ops import Array, Ops
from understudy.games.territory import tables
from understudy.games.territory.observation import Seen
from understudy.games.territory.tables import f32

MINING, PROTECTORS, PLAYER_ENERGY = 0.4, 0.3, 0.3
"""Weights of the drops: of the workers who mine, of protectors, of the player's energy."""
CLEARED, KILLED = 0.2, 0.15
"""For each chunk that parasites drove all workers from, and each protector killed."""
NO_IMPACT = -0.1
"""For a spawn after which nothing dropped."""
SKIPPED = -0.1
"""For spawning nothing while all units mine; in proportion while fewer do."""
FAR = -0.2
"""For a spawn as far from the player's people as `tables.SAFE_RANGE`; nothing next to them."""
LIMIT = 1.0
ENERGY_PER_UNIT = 25.0
"""The player's energy that is a whole drop."""

_NEXT_TO = f32(1)
_PER_FAR = f32(1.0 / (tables.SAFE_RANGE - 1))
_PER_ENERGY = f32(1.0 / ENERGY_PER_UNIT)
_NOBODY = f32(99)
_ZERO, _ONE, _LIMIT = f32(0), f32(1), f32(LIMIT)


class Terms(NamedTuple):
    """What a reward is made of, before weights; float32 [B] each."""

    mining: Array
    """Workers who no longer mine, as a share of those who were there; below 0: who do again."""
    protectors: Array
    """Protectors fewer, as a share of the more numerous."""
    player_energy: Array
    cleared: Array
    killed: Array
    no_impact: Array
    skipped: Array
    """The share of workers that mine, where nothing was spawned."""
    far: Array


WEIGHTS = Terms(MINING, PROTECTORS, PLAYER_ENERGY, CLEARED, KILLED, NO_IMPACT, SKIPPED, FAR)
_WEIGHTS = tuple(f32(weight) for weight in WEIGHTS)


def terms(ops: Ops, before: Seen, action: Array, executed: Array, after: Seen) -> Terms:
    """The parts of `reward`."""
    xp = ops.xp
    spawned = executed & (action != tables.NO_SPAWN)
    chunk, kind = tables.spawn_of(action)
    combat = kind == tables.COMBAT

    present = xp.maximum(before.workers.sum(axis=0), _ONE)
    mined, mines = before.mining.sum(axis=0), after.mining.sum(axis=0)
    guarded, guards = before.protectors.sum(axis=0), after.protectors.sum(axis=0)
    mining = _bounded(ops, (mined - mines) / present)
    protectors = (guarded - guards) / xp.maximum(xp.maximum(guarded, guards), _ONE)
    energy = _bounded(ops, (before.player_energy[1] - after.player_energy[1]) * _PER_ENERGY)

    reach = xp.asarray(tables.DISTANCE).take(chunk, axis=1)
    infested = before.energy_parasites + after.energy_parasites > _ZERO
    infested = infested | ((reach == _ZERO) & spawned)
    left = (before.workers > _ZERO) & (after.workers == _ZERO) & infested
    cleared = left.astype(xp.float32).sum(axis=0)
    killed = xp.maximum(guarded - guards, _ZERO)

    prey = (before.workers > _ZERO) | (combat & (before.protectors > _ZERO))
    nearest = xp.where(prey, reach, _NOBODY).min(axis=0)
    far = xp.minimum(xp.maximum(nearest - _NEXT_TO, _ZERO) * _PER_FAR, _ONE)
    impact = (mining > _ZERO) | (energy > _ZERO) | (cleared > _ZERO) | (killed > _ZERO)
    return Terms(
        mining=mining,
        protectors=protectors,
        player_energy=energy,
        cleared=cleared,
        killed=killed,
        no_impact=(spawned & ~impact).astype(xp.float32),
        skipped=xp.where(spawned, _ZERO, xp.minimum(mines / present, _ONE)),
        far=xp.where(spawned & (nearest < _NOBODY), far, _ZERO),
    )


def reward(ops: Ops, before: Seen, action: Array, executed: Array, after: Seen) -> Array:
    """float32 [B] in -1 .. 1: action int32 [B] was proposed, and sent where executed, bool [B].

    An action that was not sent is judged as no spawn: nothing came of it.
    """
    total = _ZERO
    for weight, term in zip(_WEIGHTS, terms(ops, before, action, executed, after), strict=True):
        total = total + weight * term
    return _bounded(ops, total)


def _bounded(ops: Ops, value: Array) -> Array:
    return ops.xp.minimum(ops.xp.maximum(value, -_LIMIT), _LIMIT)
