"""How long answers took: counts by bucket, from which Prometheus and a person's p99 are made."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

BOUNDS_S = (
    0.0001, 0.0002, 0.0005, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03,
    0.05, 0.075, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
)  # fmt: skip
"""Upper bounds; what took longer is in one more bucket."""


class Latency:
    """Counts of durations. One thread adds; readers may be a few answers behind."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        """One answer."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds


def quantile(counts: Sequence[int], share: float) -> float | None:
    """The duration that this share of answers stayed within, in seconds; None without answers.

    Linear within its bucket; beyond the last bound, the last bound.
    """
    total = sum(counts)
    if total == 0:
        return None
    wanted, before = share * total, 0
    for index, count in enumerate(counts[:-1]):
        if count and before + count >= wanted:
            low = BOUNDS_S[index - 1] if index else 0.0
            return low + (BOUNDS_S[index] - low) * (wanted - before) / count
        before += count
    return BOUNDS_S[-1]
