"""What the 28 features of a territory tell of a spawn: capacity, survival, disruption, location.

Only five chunks are described, so whatever is asked of another is an estimate. Every constant of
the rules, of the grid and of the layout of features is the game's own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.games.territory import observation, tables

NEAR = 0.25
"""A worker in reach of the chunk counts this much of one who is in it: it may come by."""
MANY = 2.0
"""Protectors in reach that are all the prey a combat parasite can wish for."""
POOR = 0.8
"""The capacity of a queen who can pay for this one and no second; it rises to 1 with her wealth."""
_OWN = 0.25
"""Chunks: how much nearer than its neighbour a chunk is to itself, when threats are estimated."""
_MOST = 100.0
"""No density is more: a client's numbers can be anything."""
_HEALTH, _LAST = np.array(tables.HEALTH), tables.CHUNKS - 1


class Factors(NamedTuple):
    """Of B spawns: float [B] each, 0 to 1 where nothing else is said."""

    kind: NDArray
    """int [B]: an index into `tables.KINDS`"""
    capacity: NDArray
    """0: she cannot pay"""
    threat: NDArray
    """From 0, no bound: what all protectors together mean at the chunk"""
    survival: NDArray
    workers: NDArray
    """From 0, no bound: workers in the chunk, and `NEAR` of those in reach, whom none holds yet"""
    disruption: NDArray
    distance: NDArray
    """Chunks to the nearest workers; `tables.GRID` where none are seen"""
    location: NDArray


def factors(observations: NDArray, actions: NDArray) -> Factors:
    """Of spawns int [B] that were proposed on observations float32 [B, 28]."""
    chunk, kind = tables.spawn_of(actions)
    width = observation.SLOTS * observation.SLOT_WIDTH
    slots = observations[:, :width].reshape(-1, observation.SLOTS, observation.SLOT_WIDTH)
    slots = slots.clip(-_MOST, _MOST).astype(np.float64)
    number = np.rint(slots[:, :, 0] * _LAST).astype(np.int64).clip(-1, _LAST)
    away = np.where(number < 0, tables.GRID, tables.DISTANCE[chunk[:, None], number])
    many = observations[:, width : width + len(tables.KINDS)][np.arange(len(kind)), kind]
    threat = _threat(slots[:, :, 2].clip(0.0) * observation.PROTECTORS_PER_UNIT, away)
    workers = _workers(slots, away)
    distance = away.min(axis=1)
    prey = np.where(kind == tables.ENERGY, workers / tables.HELD, threat / MANY)
    return Factors(
        kind=kind,
        capacity=_capacity(np.rint(many.clip(0.0, _MOST) * observation.CAPACITY_MOST)),
        threat=threat,
        survival=_survival(threat, _HEALTH[kind]),
        workers=workers,
        disruption=np.minimum(prey, 1.0),
        distance=distance,
        location=1.0 - ((distance - 1.0) / (tables.SAFE_RANGE - 1.0)).clip(0.0, 1.0),
    )


def _capacity(payable: NDArray) -> NDArray:
    """From how many she could pay for [B]."""
    return np.where(payable < 1, 0.0, 1.0 - (1.0 - POOR) / np.maximum(payable, 1.0))


def _threat(there: NDArray, away: NDArray) -> NDArray:
    """The threat at a chunk [B] from that at five others [B, 5], `away` [B, 5] chunks from it.

    Threats change slowly from chunk to chunk, so those near by count, by the square of nearness; a
    chunk that is described itself has its own.
    """
    nearness = np.where(away < tables.GRID, 1.0 / (away + _OWN) ** 2, 0.0)
    total = nearness.sum(axis=1)
    near: NDArray = (nearness * there).sum(axis=1) / np.where(total > 0, total, 1.0)
    return near


def _survival(threat: NDArray, blows: NDArray) -> NDArray:
    """The product of 1 - threat over protectors, for a parasite that takes so many blows; all [B].

    Features tell the sum of the threats, not how many protectors share in it; the more they are,
    the nearer the product comes to exp(-sum), which also leaves a hope beside a single one.
    """
    survives: NDArray = 1.0 - (1.0 - np.exp(-threat)) ** blows
    return survives


def _workers(slots: NDArray, away: NDArray) -> NDArray:
    """[B]: see `Factors.workers`."""
    heads = slots[:, :, 1] * observation.WORKERS_PER_UNIT
    held = slots[:, :, 3].clip(0.0) * observation.PARASITES_PER_UNIT * tables.HELD
    counts = np.where(away == 0, 1.0, np.where(away <= tables.KILL_RANGE, NEAR, 0.0))
    free: NDArray = (counts * np.maximum(heads - held, 0.0)).sum(axis=1)
    return free
