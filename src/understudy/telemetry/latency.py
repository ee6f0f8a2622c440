"""How long answers took: counts in buckets, and quantiles of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

BOUNDS_S = (
    0.0001, 0.0002, 0.0005, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03,
    0.05, 0.075, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
)  # fmt: skip
"""Upper bounds of the buckets; one more bucket is unbounded. Journals have counts by these: a
change would need another field there."""


class Latency:
    """Counts of durations. One thread adds; readers may be a few answers behind."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds


def quantile(counts: Sequence[int], share: float) -> float | None:
    """The duration that this share of answers stayed within, in seconds; None without answers.

    Linear within its bucket; beyond the last bound, the last bound. Counts of the last buckets may
    be left out where they are 0.
    """
    total = sum(counts)
    if total == 0:
        return None
    wanted, before = share * total, 0
    for index, count in enumerate(counts[: len(BOUNDS_S)]):
        if count and before + count >= wanted:
            low = BOUNDS_S[index - 1] if index else 0.0
            return low + (BOUNDS_S[index] - low) * (wanted - before) / count
        before += count
    return BOUNDS_S[-1]
