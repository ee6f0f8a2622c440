"""Paired differences: how much one way of playing or reading is better than another.

Differences are taken match by match, so that the difficulty of a match cancels out. Matches that
share something drawn at random, such as the donor of their latents, are not independent: the
interval then rests on the number of donors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np

from understudy.core.arrays import NDArray

_Z = 1.959964
_PSEUDO_PAIRS = 2.0
_PSEUDO_SQUARES = 1.0


class Effect(msgspec.Struct, frozen=True, omit_defaults=True):
    """A mean difference with its 95% confidence interval."""

    mean: float
    low: float
    high: float
    pairs: int
    differing: int
    """Pairs that are not equal: all that the effect rests on"""
    donors: int = 0
    """Recorded matches that the pairs share; 0: the pairs are independent"""


class SharedMatches(NamedTuple):
    """What N pairs share."""

    donors: NDArray
    """int [K, N]: the recorded matches, drawn at random, in each pair"""
    labels: NDArray
    """int [N]: the opponents, which are fixed: pairs are compared within an opponent"""


def effect(ours: NDArray, theirs: NDArray, shared: SharedMatches | None = None) -> Effect:
    """Mean of ours - theirs, both [N] within 0 to 1, with an interval of differences [N].

    The interval is that of Agresti and Min for matched pairs, for results from 0 to 1: normal, with
    two pairs added, of which half a pair differs each way. So its width is never 0: a hundred equal
    pairs do not show that no pair differs. For pairs that share donors it is Student's over donors,
    and never narrower than for independent pairs.
    """
    gaps = np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)
    pairs = len(gaps)
    if pairs == 0:
        return Effect(0.0, -1.0, 1.0, 0, 0)
    total = pairs + _PSEUDO_PAIRS
    centre = gaps.sum() / total
    variance = (gaps**2).sum() + _PSEUDO_SQUARES - total * centre**2  # of their sum
    if shared is None:
        reach = _Z * math.sqrt(variance)
    else:
        reach = _reach_by_donor(gaps, shared, least=variance)
    return Effect(
        mean=float(gaps.mean()),
        low=max(-1.0, float(centre - reach / total)),
        high=min(1.0, float(centre + reach / total)),
        pairs=pairs,
        differing=int((np.abs(gaps) > 1e-12).sum()),
        donors=0 if shared is None else len(np.unique(shared.donors)),
    )


def _reach_by_donor(gaps: NDArray, shared: SharedMatches, *, least: float) -> float:
    """The half-width of the interval of the sum of gaps [N], where pairs share donors.

    The variance is that of sums by donor. A pair with two donors is in the sums of both, so sums of
    pairs with the same two donors are subtracted once (Cameron, Gelbach and Miller 2011). It is
    never less than `least`, the variance of independent pairs.
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    donors, labels = shared
    opponents = len(np.unique(labels))
    free = min(len(np.unique(row)) for row in donors) - opponents
    if free < 1:
        return math.inf  # one donor tells nothing about others
    rest = gaps - _sums(labels, gaps)[labels] / np.bincount(labels)[labels]
    variance = (_sums(donors.reshape(-1), np.tile(rest, len(donors))) ** 2).sum()
    if len(donors) > 1:
        _, both = np.unique(donors, axis=1, return_inverse=True)
        variance -= (_sums(both.reshape(-1), rest) ** 2).sum()
    variance *= 1 + opponents / free  # the means come from the same pairs
    return float(stdtrit(free, 0.975)) * math.sqrt(max(variance, least))


def _sums(groups: NDArray, values: NDArray) -> NDArray:
    """Sums of values [N] by group [N]."""
    sums: NDArray = np.bincount(groups, values)
    return sums
