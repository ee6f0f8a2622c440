"""Still features never change, which is nearly always a bug that something swallowed."""

from __future__ import annotations

import numpy as np

from understudy.core.arrays import NDArray

_ENOUGH = 200
"""Decisions before anything is said: a match may well open the same way for a while."""


class StillFeatures:
    """The lowest and highest value of every feature so far."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._low = np.full(len(names), np.inf, np.float32)
        self._high = np.full(len(names), -np.inf, np.float32)
        self._told: tuple[str, ...] = ()
        self.seen = 0

    def add(self, observations: NDArray) -> tuple[str, ...] | None:
        """The features that have never changed, where that is news; observations are [T, F]."""
        np.minimum(self._low, observations.min(0), out=self._low)
        np.maximum(self._high, observations.max(0), out=self._high)
        self.seen += len(observations)
        still = self._low == self._high
        names = tuple(name for name, same in zip(self._names, still, strict=True) if same)
        if self.seen < _ENOUGH or names == self._told:
            return None
        self._told = names
        return names
