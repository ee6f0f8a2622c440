"""Running statistics of observations and returns, and when to fit the normaliser to them.

A normaliser that moved with every batch would change the policy under its own feet. It is fitted
when the number of samples has doubled since the last fit: quickly at first, hardly ever later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from understudy.core.arrays import NDArray

_SMALLEST_SPREAD = 1e-4


@dataclass(frozen=True)
class Statistics:
    """Sums over everything ingested, in float64, and the sample count at the last fit."""

    count: float
    obs_mean: NDArray
    """[F]"""
    obs_spread: NDArray
    """[F], sum of squared differences from the mean"""
    return_squares: float
    fitted_at: float

    @property
    def due(self) -> bool:
        """Whether the normaliser should be fitted now."""
        return self.count >= 2 * self.fitted_at

    def obs_scale(self) -> NDArray:
        """1 / spread of each feature; 1 where a feature never changed. float32 [F]."""
        spread = np.sqrt(self.obs_spread / max(self.count, 1.0))
        alive = spread > _SMALLEST_SPREAD
        return np.where(alive, 1.0 / np.where(alive, spread, 1.0), 1.0).astype(np.float32)

    def return_scale(self) -> np.float32:
        """Root mean square of the returns, 1 where there were none."""
        scale = np.sqrt(self.return_squares / max(self.count, 1.0))
        return np.float32(scale if scale > _SMALLEST_SPREAD else 1.0)


def empty(inputs: int) -> Statistics:
    """Nothing seen yet."""
    return Statistics(0.0, np.zeros(inputs), np.zeros(inputs), 0.0, 0.0)


def absorb(old: Statistics, observations: NDArray, returns: NDArray) -> Statistics:
    """Add observations [N, F] and returns [N] (Chan's parallel update)."""
    fresh = observations.astype(np.float64)
    n = float(len(fresh))
    mean = fresh.mean(0)
    delta = mean - old.obs_mean
    count = old.count + n
    return replace(
        old,
        count=count,
        obs_mean=old.obs_mean + delta * (n / count),
        obs_spread=old.obs_spread
        + np.square(fresh - mean).sum(0)
        + np.square(delta) * (old.count * n / count),
        return_squares=old.return_squares + float(np.square(returns.astype(np.float64)).sum()),
    )


def absorb_returns(old: Statistics, count: int, mean_square: float) -> Statistics:
    """Add returns alone; observations keep the scale of 1 that they were given."""
    return replace(
        old, count=old.count + count, return_squares=old.return_squares + count * mean_square
    )
