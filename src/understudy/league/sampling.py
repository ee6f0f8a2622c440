"""Which snapshot is met: samplers over a pool, as probabilities and as a draw from them.

Pure. Every sampler gives numbers that are never negative and sum to 1, and every snapshot can be
met under each of them, except under `latest`, which knows one alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from understudy.core.arrays import NDArray

Sampler: TypeAlias = Literal["random", "recent", "latest", "prioritised"]

EVERYONE = 0.05
"""Share of `prioritised` that goes to all alike: what was forgotten shows only where one looks."""

PRIOR_MATCHES = 2.0
"""An opponent is taken as if so many matches had been played before, half of them won: one that was
not met yet weighs more than most that were, and one won match does not make it go away."""


def expected_win_rate(wins: float, matches: float) -> float:
    """Our share of wins against an opponent, between 0 and 1 however few matches there were."""
    return (wins + 0.5 * PRIOR_MATCHES) / (matches + PRIOR_MATCHES)


def probabilities(
    sampler: Sampler,
    win_rates: Sequence[float],
    *,
    recent: int,
    recent_share: float,
    power: float,
) -> NDArray:
    """float64 [N]: how likely each snapshot is met, of `win_rates` [N], oldest to newest.

    random: all alike. recent: the newest `recent` share `recent_share`, the older ones the rest.
    latest: the newest. prioritised: by (1 - our win rate) ** power, those we lose to above all.
    """
    count = len(win_rates)
    if count == 0:
        raise ValueError("no snapshot to draw from")
    uniform: NDArray = np.full(count, 1.0 / count)
    if sampler == "latest":
        newest: NDArray = np.eye(count)[-1]
        return newest
    if sampler == "recent" and recent < count:
        shares = np.full(count, (1.0 - recent_share) / (count - recent))
        shares[-recent:] = recent_share / recent
        return shares
    if sampler == "prioritised":
        weights = (1.0 - np.asarray(win_rates, np.float64)) ** power
        total = float(weights.sum())
        if total > 0.0:
            mixed: NDArray = (1.0 - EVERYONE) * (weights / total) + EVERYONE * uniform
            return mixed
    return uniform


def draw(shares: NDArray, uniform: float) -> int:
    """The index that a number in [0, 1) falls on, of probabilities [N]."""
    edges = np.cumsum(shares)
    # Sums of floats can end just below 1: the last one that can be drawn takes the rest.
    last = int(np.flatnonzero(shares)[-1])
    return min(int(np.searchsorted(edges, uniform, side="right")), last)
