"""Intervals that checks compare: of shares and means over the bins of a trend.

Checks look at a run again and again, and a healthy run must never be accused: so intervals here are
of 99.9 %, not of 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from understudy.core.statistics import wilson
from understudy.telemetry.trends import TrendBin

Z = 3.29
"""Of a two-sided interval of 99.9 %."""


class Interval(NamedTuple):
    """A mean, the interval around it, and of how many values it is."""

    mean: float
    low: float
    high: float
    size: float

    def __str__(self) -> str:
        return f"{self.mean:.3g} ({self.low:.3g} to {self.high:.3g}, of {self.size:,.0f})"

    @property
    def percent(self) -> str:
        """Of a share."""
        return f"{self.mean:.0%} of {self.size:,.0f} ({self.low:.0%} to {self.high:.0%})"


def share_of(bins: Sequence[TrendBin], z: float = Z) -> Interval:
    """Of values that are 0 or 1, or means of such: Wilson's."""
    count = sum(one.weight for one in bins)
    wins = sum(one.total for one in bins)
    return Interval(wins / count if count else 0.0, *wilson(wins, round(count), z), count)


def mean_of(bins: Sequence[TrendBin], z: float = Z) -> Interval:
    """Of any values: normal, from the spread between bins, which also holds where neighbours are
    alike."""
    count = sum(one.weight for one in bins)
    if len(bins) < 2:
        mean = bins[0].mean if bins else 0.0
        return Interval(mean, -math.inf, math.inf, count)
    mean = sum(one.total for one in bins) / count
    squares = sum((one.weight * (one.mean - mean)) ** 2 for one in bins)
    error = math.sqrt(squares * len(bins) / (len(bins) - 1)) / count
    return Interval(mean, mean - z * error, mean + z * error, count)


def gain(before: Interval, after: Interval) -> tuple[float, float]:
    """The interval of `after - before`: Newcombe's, of two intervals that do not depend on each
    other."""
    middle = after.mean - before.mean
    low = math.hypot(after.mean - after.low, before.high - before.mean)
    high = math.hypot(after.high - after.mean, before.mean - before.low)
    return middle - low, middle + high
