"""How much one way of playing or reading is better than another on the very same matches.

Differences are taken match by match, so that what makes a match easy or hard cancels out. Where
matches have something in common that was drawn by chance, such as a recorded match whose latents
they were all told, they are not as many as they seem: the interval then rests on those draws.
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
    """A mean difference, and where the true one is with 95% confidence."""

    mean: float
    low: float
    high: float
    pairs: int
    differing: int
    """How many pairs were not equal: all that the effect rests on."""
    donors: int = 0
    """How many recorded matches the pairs share; 0 where every pair is by itself."""


class SharedMatches(NamedTuple):
    """What N pairs have in common."""

    donors: NDArray
    """int [K, N]: the recorded matches, drawn by chance, that had a part in each pair."""
    labels: NDArray
    """int [N]: opponents, which are who they are: a pair is compared with others of its own."""


def effect(ours: NDArray, theirs: NDArray, shared: SharedMatches | None = None) -> Effect:
    """Mean of ours - theirs, both [N] within 0 to 1, with an interval of differences [N].

    The interval is Agresti and Min's for matched pairs, for any results from 0 to 1: normal, with
    two pairs added of which half a one differs each way. So it never has no width: a hundred pairs
    that are all equal do not show that nothing is ever different. Of pairs that share donors it is
    Student's over donors, and never narrower than that of pairs by themselves.
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
    """How far the sum of gaps [N] may be from the truth, if pairs with a donor in common are alike.

    The variance is that of sums by donor. A pair with two donors is in the sums of both, so what
    pairs of the very same two have is taken off once (Cameron, Gelbach and Miller 2011). It is
    never less than `least`, that of pairs by themselves.
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    donors, labels = shared
    opponents = len(np.unique(labels))
    free = min(len(np.unique(row)) for row in donors) - opponents
    if free < 1:
        return math.inf  # one donor says nothing about others
    rest = gaps - _sums(labels, gaps)[labels] / np.bincount(labels)[labels]
    variance = (_sums(donors.reshape(-1), np.tile(rest, len(donors))) ** 2).sum()
    if len(donors) > 1:
        _, both = np.unique(donors, axis=1, return_inverse=True)
        variance -= (_sums(both.reshape(-1), rest) ** 2).sum()
    variance *= 1 + opponents / free  # their means were taken from the same pairs
    return float(stdtrit(free, 0.975)) * math.sqrt(max(variance, least))


def _sums(groups: NDArray, values: NDArray) -> NDArray:
    """Of values [N] by group [N]."""
    sums: NDArray = np.bincount(groups, values)
    return sums
