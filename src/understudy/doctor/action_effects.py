"""What actions do to the next observation, and which of them cannot be told apart by it.

The change of each feature from a decision to the next is regressed on the observation; what is left
is what chance and the action did. Two actions are as far apart as the feature in which the means of
that rest differ most, in standard errors. Actions that a bot maps to nothing are at no distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from understudy.core.arrays import NDArray
from understudy.experience.episode import Episode

_MOST = 4000
"""Decisions that are looked at: the newest."""
_TIMES = 200
"""How often an action must have been taken."""
_ALIKE = 4.5
"""Standard errors within which the largest of a few dozen differences lies by chance."""
_APART = 20.0
"""Distances of the other actions that show that features tell of actions at all. In swarm all
actions are 55 to 246 apart."""


@dataclass(frozen=True)
class AlikeActions:
    """Two actions that do the same, as far as features show."""

    first: int
    second: int
    times: tuple[int, int]
    distance: float
    others: float
    """The median distance of all pairs."""


def alike_actions(episodes: Sequence[Episode]) -> list[AlikeActions]:
    """Pairs of actions of one part that no feature tells apart, though it does tell others."""
    rest, actions = _unexplained(episodes)
    taken = [one for one in np.unique(actions).tolist() if (actions == one).sum() >= _TIMES]
    if len(taken) < 3:
        return []
    moments = {one: _moments(rest[actions == one]) for one in taken}
    distances = {(a, b): _distance(moments[a], moments[b]) for a, b in combinations(taken, 2)}
    usual = float(np.median(list(distances.values())))
    if usual < _APART:
        return []
    return [
        AlikeActions(a, b, (int((actions == a).sum()), int((actions == b).sum())), far, usual)
        for (a, b), far in distances.items()
        if far < _ALIKE
    ]


def _unexplained(episodes: Sequence[Episode]) -> tuple[NDArray, NDArray]:
    """What the observation does not explain of the change to the next one [N, F], in spreads of
    each feature, and the actions [N]."""
    before, change, actions = [np.empty((0, 0))], [np.empty((0, 0))], [np.empty(0, np.int32)]
    count = 0
    for episode in reversed(episodes):
        seen = episode.observations.astype(np.float64)
        if len(seen) > 1 and count < _MOST:
            before.append(seen[:-1])
            change.append(np.diff(seen, axis=0))
            actions.append(episode.actions[:-1, 0])
            count += len(seen) - 1
    if not count:
        return np.empty((0, 0)), actions[0]
    x, y = np.concatenate(before[1:]), np.concatenate(change[1:])
    spread = x.std(0)
    varies = spread > 1e-9 * (1.0 + np.abs(x).max(0))
    scaled = (x - x.mean(0))[:, varies] / spread[varies]
    design = np.column_stack([np.ones(len(x)), scaled])
    moved = y[:, varies] / spread[varies]
    # Small sums by einsum: a product of matrices would wake the threads of the maths library, which
    # costs a fifth of a second on a busy machine.
    gram = np.einsum("ni,nj->ij", design, design) + 1e-6 * len(x) * np.eye(design.shape[1])
    slopes = np.linalg.solve(gram, np.einsum("ni,nj->ij", design, moved))
    rest: NDArray = moved - np.einsum("ni,ij->nj", design, slopes)
    return rest, np.concatenate(actions)


def _moments(rest: NDArray) -> tuple[NDArray, NDArray]:
    """Mean [F] and its squared error [F]."""
    return rest.mean(0), rest.var(0) / len(rest)


def _distance(a: tuple[NDArray, NDArray], b: tuple[NDArray, NDArray]) -> float:
    error = np.sqrt(a[1] + b[1]) + 1e-9
    return float((np.abs(a[0] - b[0]) / error).max(initial=0.0))
