"""How well expectations foretold what followed: reliability, bias, correlation and their words.

Everything here is weighted, since a few observed outcomes may stand for many unseen ones. A finding
is named only where its interval lies wholly beyond a tolerance: many decisions make any trifle
significant, and few make anything possible.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from understudy.core.arrays import NDArray

Interval: TypeAlias = tuple[float, float]

FEWEST = 30
"""With fewer outcomes nothing is judged."""
BIAS_TOLERATED = 0.02
"""Expecting so much too much or too little, in units of reward, is no finding."""
SLOPE_TOLERATED = 1.25
"""Expectations that differ so many times more, or less, than what follows are no finding."""
_Z = 1.959964
_SAME, _SURE, _LEAST = 1e-12, 1.0 - 1e-9, 3.5
"""A variance that is none; a correlation that Fisher's formula can still take; and outcomes below
which there is no line."""

CALIBRATED, BLIND, INVERTED = "calibrated", "blind", "inverted"
OVERCONFIDENT, UNDERCONFIDENT = "overconfident", "underconfident"
OPTIMISTIC, PESSIMISTIC = "optimistic", "pessimistic"


@dataclass(frozen=True)
class ForesightRow:
    """Decisions of one verdict whose expectations lie close together."""

    verdict: str
    low: float
    high: float
    """The least and the most that was expected of any of them"""
    count: int
    expected: float
    actual: float
    """Means"""
    interval: Interval | None
    """95%, of the actual mean"""


@dataclass(frozen=True)
class Foresight:
    """Expected against actual, over every outcome that was seen."""

    count: int
    findings: tuple[str, ...]
    """One word each, or none where there is too little data"""
    words: str
    expected: float | None = None
    actual: float | None = None
    bias: float | None = None
    """Mean of expected less actual; above 0 it expects too much"""
    bias_interval: Interval | None = None
    mean_absolute_error: float | None = None
    correlation: float | None = None
    correlation_interval: Interval | None = None
    slope: float | None = None
    """How much more follows where 1 more is expected; 1 is calibrated"""
    slope_interval: Interval | None = None


def judge(expected: NDArray, actual: NDArray, weights: NDArray) -> Foresight:
    """expected, actual and weights float [N]; a weight is how many proposals an outcome is for."""
    count = len(actual)
    if count == 0:
        return Foresight(0, (), "no outcome yet: no verdict")
    share = weights / weights.sum()
    # Kish: unequal weights make a sample worth fewer outcomes than it has.
    worth = float(1.0 / (share @ share))
    mean_e, mean_a = float(share @ expected), float(share @ actual)
    error, bias = expected - actual, mean_e - mean_a
    unsure = _Z * math.sqrt(float(share @ (error - bias) ** 2) / max(worth - 1.0, 1.0))
    bias_interval = (bias - unsure, bias + unsure)
    line = _line(expected - mean_e, actual - mean_a, share, worth)
    findings, words = _findings(count, bias_interval, line)
    return Foresight(
        count=count,
        findings=findings,
        words=words,
        expected=mean_e,
        actual=mean_a,
        bias=bias,
        bias_interval=bias_interval,
        mean_absolute_error=float(share @ np.abs(error)),
        correlation=line.correlation if line else None,
        correlation_interval=line.correlation_interval if line else None,
        slope=line.slope if line else None,
        slope_interval=line.slope_interval if line else None,
    )


class _Line(NamedTuple):
    slope: float
    slope_interval: Interval
    correlation: float
    correlation_interval: Interval


def _line(expected: NDArray, actual: NDArray, share: NDArray, worth: float) -> _Line | None:
    """Of centred values [N] with shares [N] that are `worth` so many equal ones; None where one of
    them never differs, or where there are too few."""
    spread_e, spread_a = float(share @ expected**2), float(share @ actual**2)
    if spread_e < _SAME or spread_a < _SAME or worth <= _LEAST:
        return None
    together = float(share @ (expected * actual))
    slope = together / spread_e
    left_over = max(spread_a - slope * together, 0.0)
    unsure = _Z * math.sqrt(left_over / spread_e / (worth - 2.0))
    correlation = min(max(together / math.sqrt(spread_e * spread_a), -_SURE), _SURE)
    middle, around = math.atanh(correlation), _Z / math.sqrt(worth - 3.0)  # Fisher's
    return _Line(
        slope=slope,
        slope_interval=(slope - unsure, slope + unsure),
        correlation=correlation,
        correlation_interval=(math.tanh(middle - around), math.tanh(middle + around)),
    )


def table(
    expected: NDArray, actual: NDArray, groups: Mapping[str, NDArray], *, most: int
) -> tuple[ForesightRow, ...]:
    """Rows of about equal count, by what was expected; each group (a mask bool [N]) has its own.

    Verdicts are never mixed in a row: explored outcomes are rare, and would drown.
    """
    rows: list[ForesightRow] = []
    each = max(most // max(len(groups), 1), 1)
    for verdict, mask in groups.items():
        own_e, own_a = expected[mask], actual[mask]
        if not len(own_e):
            continue
        # Equal expectations stay together, however many there are.
        edges = np.unique(np.quantile(own_e, np.linspace(0, 1, each + 1)[1:-1], method="lower"))
        places = np.searchsorted(edges, own_e, side="left")
        for place in np.unique(places):
            row_e, row_a = own_e[places == place], own_a[places == place]
            rows.append(
                ForesightRow(
                    verdict=verdict,
                    low=float(row_e.min()),
                    high=float(row_e.max()),
                    count=len(row_e),
                    expected=float(row_e.mean()),
                    actual=float(row_a.mean()),
                    interval=mean_interval(row_a),
                )
            )
    return tuple(rows)


def mean_interval(values: NDArray) -> Interval | None:
    """95%, of the mean of values [N]; None for fewer than two."""
    if len(values) < 2:
        return None
    mean, spread = float(values.mean()), _Z * float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean - spread, mean + spread


def _findings(count: int, bias: Interval, line: _Line | None) -> tuple[tuple[str, ...], str]:
    if count < FEWEST:
        return (), f"fewer than {FEWEST} outcomes: no verdict"
    found: dict[str, str] = {}
    if line is None:
        found[BLIND] = "it expects the same of everything, or the same followed everything"
    elif line.correlation_interval[1] < 0:
        found[INVERTED] = "where it expects more, less follows"
    elif line.correlation_interval[0] <= 0:
        found[BLIND] = "what it expects cannot be seen to foretell what follows"
    elif line.slope_interval[1] < 1 / SLOPE_TOLERATED:
        found[OVERCONFIDENT] = f"where it expects 1 more, only {line.slope:.2f} more follows"
    elif line.slope_interval[0] > SLOPE_TOLERATED:
        found[UNDERCONFIDENT] = f"where it expects 1 more, {line.slope:.2f} more follows"
    middle = (bias[0] + bias[1]) / 2
    if bias[0] > BIAS_TOLERATED:
        found[OPTIMISTIC] = f"it expects {middle:.3f} more than follows"
    elif bias[1] < -BIAS_TOLERATED:
        found[PESSIMISTIC] = f"it expects {-middle:.3f} less than follows"
    if not found:
        found[CALIBRATED] = f"within what {count:,} outcomes can tell"
    return tuple(found), "; ".join(f"{word}: {why}" for word, why in found.items())
