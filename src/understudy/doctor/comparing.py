"""Comparisons of stretches of a trend, with the error of sampling. Pure.

A stretch is a list of neighbouring bins; of a win rate, the total of a bin are its wins and its
weight its matches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from understudy.telemetry.trends import Trend, TrendBin

_ROUNDING = 1e-12
"""Means of equal values differ by this share at most, with the order of their sums."""


class WindowMean(NamedTuple):
    """The mean over some bins, its standard error, and what it is of."""

    mean: float
    error: float
    weight: float
    t: float
    """Of the last value."""
    version: int
    """The newest version then."""


def first(trend: Trend, weight: float) -> list[TrendBin]:
    """The oldest bins that together weigh `weight` at least, or all."""
    taken = 0.0
    for count, one in enumerate(trend.bins, 1):
        taken += one.weight
        if taken >= weight:
            return trend.bins[:count]
    return list(trend.bins)


def mean_of(bins: Sequence[TrendBin], *, share: bool = False) -> WindowMean:
    """The mean of bins that are not empty. The error: of a share that of wins and losses, else by
    how far the bins lie apart."""
    weight = sum(one.weight for one in bins)
    mean = sum(one.total for one in bins) / weight
    if share:
        guarded = (mean * weight + 1.0) / (weight + 2.0)  # 0 of few is not surely 0
        error = math.sqrt(guarded * (1.0 - guarded) / weight)
    elif len(bins) > 1:
        spread = sum(one.weight * (one.mean - mean) ** 2 for one in bins) / weight
        error = math.sqrt(spread / (len(bins) - 1))
    else:
        error = math.inf
    return WindowMean(mean, error, weight, bins[-1].t, bins[-1].version)


def windows(trend: Trend, *, count: int, least: float, share: bool = False) -> list[WindowMean]:
    """At most `count` windows of about equal weight, each of `least` at least; oldest first."""
    size = max(trend.weight / count, least)
    found: list[WindowMean] = []
    pending: list[TrendBin] = []
    taken = 0.0
    for one in trend.bins:
        pending.append(one)
        taken += one.weight
        if taken >= size:
            found.append(mean_of(pending, share=share))
            pending, taken = [], 0.0
    return found


def deviations(a: WindowMean, b: WindowMean) -> float:
    """By how many standard errors `a` lies above `b`; 0 where none is known, or they are equal."""
    error, apart = math.hypot(a.error, b.error), a.mean - b.mean
    if not math.isfinite(error) or math.isclose(a.mean, b.mean, rel_tol=_ROUNDING):
        return 0.0
    return apart / error if error else math.copysign(math.inf, apart)


def fallen(
    bins: Sequence[TrendBin], *, least: float, errors: float, last: int = 4
) -> tuple[WindowMean, WindowMean] | None:
    """The best bin of a share and the last ones together, which came after it, if they lie below it
    by `least` at least and beyond chance. None: they do not.

    The best of many bins is high by chance alone, the more so the more there are, by about
    sqrt(2 ln n) errors: so many more than `errors` are asked for.
    """
    best = max(range(len(bins)), key=lambda at: bins[at].mean, default=0)
    if len(bins) - 1 - best < last:
        return None
    then, now = mean_of([bins[best]], share=True), mean_of(bins[-last:], share=True)
    asked = errors + math.sqrt(2.0 * math.log(len(bins)))
    if then.mean - now.mean < least or deviations(then, now) < asked:
        return None
    return then, now


def swings(values: Sequence[WindowMean], *, least: float, errors: float = 4.0) -> list[WindowMean]:
    """The turning points of a series: where it turned by `least` at least, and by so many standard
    errors. Smaller movements between two of them are passed over."""
    if not values:
        return []
    turning, extreme, rising = [values[0]], values[0], 0

    def beyond(a: WindowMean, b: WindowMean) -> bool:
        return abs(a.mean - b.mean) >= least and abs(deviations(a, b)) >= errors

    for one in values[1:]:
        up = one.mean > extreme.mean
        if rising == 0:
            if beyond(one, extreme):
                rising, extreme = (1 if up else -1), one
        elif up == (rising > 0):
            extreme = one
        elif beyond(one, extreme):
            turning.append(extreme)
            rising, extreme = -rising, one
    return [*turning, extreme]
