"""The cost gate of the territory game: what a spawn should bring, by a formula.

    R = COST + exploration + capacity * (w1 * survival + w2 * disruption + w3 * location)

SEND if R exceeds the threshold. `COST` is what the game takes for a spawn far away and without any
impact: it is why R can fall below 0, and so why a threshold of 0 means something. The weights stand
in `WEIGHTS` and nowhere else; the factors, and how they are estimated, in `gates.factors`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.games.territory import rewards, tables
from understudy.gates.decision import NOTHING_TO_BLOCK, Verdict
from understudy.gates.factors import Factors, factors


class Weights(NamedTuple):
    """What each factor can bring, in units of reward."""

    survival: float
    disruption: float
    location: float


WEIGHTS = (
    Weights(survival=0.14, disruption=0.14, location=0.21),
    Weights(survival=0.0, disruption=0.13, location=0.27),
)
"""By kind of parasite: energy parasites live off workers; combat parasites off protectors, so what
threatens them is what they came for. The least squares, rounded, of 12,000 spawns of all sorts in
the built-in game (territory 1): so R is in units of its reward."""
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
        """observations [B, 28] and actions [B, 1]; where nothing is spawned, nothing is blocked."""
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
    """[B, 3]: what survival, disruption and location add, before capacity."""
    added: NDArray = _WEIGHTS[found.kind] * np.stack(
        [found.survival, found.disruption, found.location], axis=1
    )
    return added


def reasons(found: Factors, send: NDArray) -> list[tuple[str, ...]]:
    """The weightiest factor of each of B spawns in words, and the second where it weighs.

    Of what is sent: what adds most. Of what is blocked: what falls shortest of what it could add.
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
        return "nobody seen"
    near = {0: "among workers", 1: "next to workers"}
    return near.get(int(distance), f"{distance:.0f} chunks from workers")
