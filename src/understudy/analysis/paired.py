"""How much one way of playing or reading is better than another on the very same matches.

Differences are taken match by match, so that what makes a match easy or hard cancels out.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from understudy.core.arrays import NDArray

_Z = 1.959964
_PSEUDO_PAIRS = 2.0
_PSEUDO_SQUARES = 1.0


class Effect(msgspec.Struct, frozen=True):
    """A mean difference, and where the true one is with 95% confidence."""

    mean: float
    low: float
    high: float
    pairs: int
    differing: int
    """How many pairs were not equal: all that the effect rests on."""


def effect(ours: NDArray, theirs: NDArray) -> Effect:
    """Mean of ours - theirs, both [N] within 0 to 1, with an interval of differences [N].

    The interval is Agresti and Min's for matched pairs, for any results from 0 to 1: normal, with
    two pairs added of which half a one differs each way. So it never has no width: a hundred pairs
    that are all equal do not show that nothing is ever different.
    """
    gaps = np.asarray(ours, np.float64) - np.asarray(theirs, np.float64)
    pairs = len(gaps)
    if pairs == 0:
        return Effect(0.0, -1.0, 1.0, 0, 0)
    total = pairs + _PSEUDO_PAIRS
    centre = gaps.sum() / total
    spread = math.sqrt(((gaps**2).sum() + _PSEUDO_SQUARES) / total - centre**2)
    reach = _Z * spread / math.sqrt(total)
    return Effect(
        mean=float(gaps.mean()),
        low=max(-1.0, float(centre - reach)),
        high=min(1.0, float(centre + reach)),
        pairs=pairs,
        differing=int((np.abs(gaps) > 1e-12).sum()),
    )
