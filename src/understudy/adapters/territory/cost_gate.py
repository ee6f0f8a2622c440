"""The cost gate of the territory game: what a spawn should bring, by a formula.

    R = COST + exploration + capacity * (w1 * survival + w2 * disruption + w3 * location)

SEND if R exceeds the threshold. `COST` is what the game takes for a spawn far away without any
impact: because of it R can fall below 0, and a threshold of 0 has a meaning. The weights are in
`WEIGHTS`.

`factors` estimates capacity, survival, disruption and location from the 28 features. They describe
five chunks only, so the factors of other chunks are estimates. Constants of the rules, of the grid
and of the layout of features are those of the game.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.games.territory import observation, rewards, tables
from understudy.gates.decision import NOTHING_TO_BLOCK, Verdict

NEAR = 0.25
"""The share that a worker in reach counts, of one in the chunk itself: it may come by."""
MANY = 2.0
"""Protectors in reach at which the disruption of a combat parasite is 1."""
POOR = 0.8
"""The capacity where energy suffices for this spawn alone; it rises to 1 with more energy."""
_OWN = 0.25
"""Chunks: how much nearer than its neighbour a chunk is to itself, when threats are estimated."""
_MOST = 100.0
"""The limit for densities: a client's numbers can be anything."""
_HEALTH, _LAST = np.array(tables.HEALTH), tables.CHUNKS - 1


class Factors(NamedTuple):
    """The factors of B spawns: float [B] each, from 0 to 1 unless stated otherwise."""

    kind: NDArray
    """int [B]: an index into `tables.KINDS`"""
    capacity: NDArray
    """0: there is not enough energy"""
    threat: NDArray
    """From 0, unbounded: the threat of all protectors together at the chunk"""
    survival: NDArray
    workers: NDArray
    """From 0, unbounded: free workers in the chunk, plus `NEAR` times those in reach"""
    disruption: NDArray
    distance: NDArray
    """Chunks to the nearest workers; `tables.GRID` where none are seen"""
    location: NDArray


def factors(observations: NDArray, actions: NDArray) -> Factors:
    """Of spawns `actions` int [B], proposed on `observations` float32 [B, 28]."""
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
    """From the number of spawns that the energy suffices for [B]."""
    return np.where(payable < 1, 0.0, 1.0 - (1.0 - POOR) / np.maximum(payable, 1.0))


def _threat(there: NDArray, away: NDArray) -> NDArray:
    """The threat at a chunk [B] from that at five others [B, 5], `away` [B, 5] chunks from it.

    Threats change slowly from chunk to chunk, so the estimate is a mean, weighted by the inverse
    square of the distance; a chunk that is described itself has its own threat.
    """
    nearness = np.where(away < tables.GRID, 1.0 / (away + _OWN) ** 2, 0.0)
    total = nearness.sum(axis=1)
    near: NDArray = (nearness * there).sum(axis=1) / np.where(total > 0, total, 1.0)
    return near


def _survival(threat: NDArray, blows: NDArray) -> NDArray:
    """The product of 1 - threat over protectors, for a parasite that takes so many blows; all [B].

    Features have the sum of the threats, not the number of protectors; the more there are, the
    nearer the product is to exp(-sum), which is also above 0 beside a single one.
    """
    survives: NDArray = 1.0 - (1.0 - np.exp(-threat)) ** blows
    return survives


def _workers(slots: NDArray, away: NDArray) -> NDArray:
    """See `Factors.workers`."""
    heads = slots[:, :, 1] * observation.WORKERS_PER_UNIT
    held = slots[:, :, 3].clip(0.0) * observation.PARASITES_PER_UNIT * tables.HELD
    counts = np.where(away == 0, 1.0, np.where(away <= tables.KILL_RANGE, NEAR, 0.0))
    free: NDArray = (counts * np.maximum(heads - held, 0.0)).sum(axis=1)
    return free


class CostWeights(NamedTuple):
    """The most that each factor can add, in units of reward."""

    survival: float
    disruption: float
    location: float


WEIGHTS = (
    CostWeights(survival=0.14, disruption=0.14, location=0.21),
    CostWeights(survival=0.0, disruption=0.13, location=0.27),
)
"""By kind of parasite: energy parasites live off workers, combat parasites off protectors, which
threaten them as well. Rounded least squares over 12,000 varied spawns in the built-in game
(territory 1), so R is in units of its reward."""
COST = rewards.NO_IMPACT + rewards.FAR

_WEIGHTS = np.array(WEIGHTS)
_SURVIVAL, _DISRUPTION, _LOCATION = range(3)
_WEIGHS = 0.25
"""A second reason is given if it weighs more than this share of the first."""
_NUMBERS = ("no", "one", "two", "three", "four", "five")


class CostGate:
    """The gate of the formula above; `exploration` is added to everything."""

    name = "cost"

    def __init__(self, *, threshold: float, exploration: float = 0.0) -> None:
        self._threshold = threshold
        self._exploration = exploration

    def evaluate(self, observation: NDArray, action: NDArray) -> Verdict:
        """observation float32 [28] and action int32 [1]."""
        return self.evaluate_all(observation[None], np.asarray(action)[None])[0]

    def evaluate_all(self, observations: NDArray, actions: NDArray) -> list[Verdict]:
        """observations float32 [B, 28], actions int32 [B, 1]; "spawn nothing" is never blocked."""
        chosen = np.asarray(actions)[:, 0]
        found = factors(observations, chosen)
        expected = COST + self._exploration + found.capacity * shares(found).sum(axis=1)
        send = expected > self._threshold
        words = reasons(found, send)
        return [
            NOTHING_TO_BLOCK if action == tables.NO_SPAWN else Verdict(sends, value, why)
            for action, sends, value, why in zip(
                chosen.tolist(), send.tolist(), expected.tolist(), words, strict=True
            )
        ]


def shares(found: Factors) -> NDArray:
    """[B, 3]: what survival, disruption and location add, before the capacity."""
    added: NDArray = _WEIGHTS[found.kind] * np.stack(
        [found.survival, found.disruption, found.location], axis=1
    )
    return added


def reasons(found: Factors, send: NDArray) -> list[tuple[str, ...]]:
    """For each of B spawns, the factor that weighs most, and the second if it weighs enough.

    For a spawn that is sent: what adds most. For one that is blocked: what is missing most.
    """
    added = shares(found)
    weight = np.where(send[:, None], added, _WEIGHTS[found.kind] - added)
    order = np.argsort(-weight, axis=1, kind="stable")[:, :2]
    both = np.take_along_axis(weight, order, axis=1)
    rows = zip(
        order.tolist(),
        (both[:, 1] > _WEIGHS * both[:, 0]).tolist(),
        found.kind.tolist(),
        found.capacity.tolist(),
        found.threat.tolist(),
        found.workers.tolist(),
        found.distance.tolist(),
        strict=True,
    )
    return [_words(*row) for row in rows]


def _words(
    order: list[int],
    second: bool,
    kind: int,
    capacity: float,
    threat: float,
    workers: float,
    distance: float,
) -> tuple[str, ...]:
    if capacity == 0.0:
        return ("cannot pay",)
    said = []
    for factor in order if second else order[:1]:
        if factor == _SURVIVAL:
            said.append(f"{_count(threat, 'protector')} in reach")
        elif factor == _DISRUPTION and kind == tables.COMBAT:
            said.append(f"{_count(threat, 'protector')} to bite")
        elif factor == _DISRUPTION:
            said.append(
                f"{_count(workers, 'worker')} to hold" if workers > 0 else "no workers near"
            )
        else:
            said.append(_where(distance))
    return tuple(said)


def _count(heads: float, noun: str) -> str:
    whole = round(heads)
    number = _NUMBERS[whole] if whole < len(_NUMBERS) else str(whole)
    return f"{number} {noun}{'' if whole == 1 else 's'}"


def _where(distance: float) -> str:
    if distance >= tables.GRID:
        return "no unit seen"
    near = {0: "among workers", 1: "next to workers"}
    return near.get(int(distance), f"{distance:.0f} chunks from workers")
