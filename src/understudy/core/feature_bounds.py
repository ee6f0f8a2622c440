"""The lowest and the highest value of features that mean something, where they are declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray


class Bounds(NamedTuple):
    """float64 [F] each, NaN where nothing is declared."""

    low: NDArray
    high: NDArray

    def within(self, observations: NDArray) -> NDArray:
        """Observations [..., F] cut off at what is declared."""
        return np.fmax(np.fmin(observations, self.high), self.low)


def bounds_of(features: Sequence[str], declared: Mapping[str, tuple[float, float]]) -> Bounds:
    """What is declared by name, for these features."""
    none = (np.nan, np.nan)
    low, high = np.array([declared.get(name, none) for name in features], np.float64).T
    return Bounds(low, high)
