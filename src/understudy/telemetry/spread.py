"""A weighted median in bounded memory, for numbers that a run has millions of."""

from __future__ import annotations

import math
from collections import Counter

_STEP = math.log(1.05)


class Spread:
    """Weights by logarithmic bucket, 5 % wide."""

    def __init__(self) -> None:
        self._weights: Counter[int] = Counter()

    def add(self, value: float, weight: int) -> None:
        """One value; what is not positive was not measured."""
        if weight > 0 and 0.0 < value < math.inf:
            bounded = min(max(value, 1e-3), 1e12)
            self._weights[round(math.log(bounded) / _STEP)] += weight

    def median(self) -> float | None:
        """The value with half of the weight at or below it."""
        left = self._weights.total() / 2
        for bucket, weight in sorted(self._weights.items()):
            left -= weight
            if left <= 0:
                return math.exp(bucket * _STEP)
        return None
