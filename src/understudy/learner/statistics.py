"""Running statistics of observations, returns and advantages, and when to fit the normaliser.

A normaliser that moved with every batch would change the policy under its own feet. It is fitted
when the number of decisions has doubled since the last fit, and when features leave the range that
it was fitted to. The statistics forget: they describe about the last `HORIZON` decisions. One
absurd number does not count for more than the range of the others allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from understudy.core.arrays import NDArray
from understudy.learner.maths.returns import Moments, pooled
from understudy.learner.value_fit import ValueFit

HORIZON = 100_000.0
"""Decisions after which older ones fade."""
ADVANTAGE_HORIZON = 10_000.0
"""The same for advantages, whose mean follows the error of a value that is still being learned."""
ENOUGH_MATCHES, ENOUGH_DECISIONS = 8.0, 256.0
"""A fit that rests on less may be revised by the next batch."""
_SMALLEST_SPREAD = 1e-4
_TRIMMED = 0.005
"""Share of the numbers of a feature, at each end, that do not say what its range is."""
_FEW = 20
"""Fewer decisions than this do not say which of them is extreme."""
_RANGES = 10.0
"""How many ranges (or spreads, of what was seen before) beyond its range a feature counts."""


@dataclass(frozen=True)
class Statistics:
    """Sums in float64 over about the last `HORIZON` decisions, and when a fit was made."""

    count: float
    """Decisions that the sums stand for."""
    obs_mean: NDArray
    """[F]"""
    obs_spread: NDArray
    """[F], sum of squared differences from the mean"""
    return_squares: float
    fitted_at: float
    """`seen` at the last fit."""
    seen: float = 0.0
    """Decisions, ever."""
    matches: float = 0.0
    """Matches, ever."""
    advantages: Moments = field(default_factory=Moments)
    """In units of reward."""
    value_fit: ValueFit = field(default_factory=ValueFit)

    @property
    def due(self) -> bool:
        """Whether the normaliser should be fitted now: there is twice as much to fit it to, and,
        unless it is the first fit, enough."""
        enough = self.matches >= ENOUGH_MATCHES and self.seen >= ENOUGH_DECISIONS
        return self.seen >= 2 * self.fitted_at and (enough or self.fitted_at == 0.0)

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


def absorb(
    old: Statistics,
    observations: NDArray,
    returns: NDArray,
    *,
    matches: float = 1.0,
    horizon: float = HORIZON,
) -> Statistics:
    """Add observations [N, F] and returns [N] of so many matches (Chan's parallel update).

    A shorter `horizon` forgets more of what was seen before.
    """
    n = float(len(observations))
    fresh = bounded(old, observations.astype(np.float64))
    kept = min(old.count, max(horizon - n, 0.0))
    fade = kept / old.count if old.count else 0.0
    mean = fresh.mean(0)
    delta = mean - old.obs_mean
    count = kept + n
    squares = float(np.square(returns.astype(np.float64)).sum())
    return replace(
        old,
        count=count,
        obs_mean=old.obs_mean + delta * (n / count),
        obs_spread=old.obs_spread * fade
        + np.square(fresh - mean).sum(0)
        + np.square(delta) * (kept * n / count),
        return_squares=old.return_squares * fade + squares,
        seen=old.seen + n,
        matches=old.matches + matches,
    )


def trimmed(decisions: int) -> int:
    """How many numbers of a feature, at each end, do not say what its range is."""
    return max(int(_TRIMMED * decisions), 1) if decisions >= _FEW else 0


def bounded(old: Statistics, fresh: NDArray) -> NDArray:
    """Observations [N, F] within a generous range: ten times that of all but the most extreme of
    them, or ten spreads of what was seen before, whichever is wider."""
    ordered = np.sort(fresh, axis=0)
    cut = trimmed(len(fresh))
    low, high = ordered[cut], ordered[-1 - cut]
    reach = _RANGES * (high - low)
    low, high = low - reach, high + reach
    if old.count:
        reach = _RANGES * np.sqrt(old.obs_spread / old.count)
        low, high = np.minimum(low, old.obs_mean - reach), np.maximum(high, old.obs_mean + reach)
    return np.clip(fresh, low, high)


def absorb_returns(old: Statistics, count: int, mean_square: float) -> Statistics:
    """Add returns alone; observations keep the scale of 1 that they were given."""
    return replace(
        old,
        count=old.count + count,
        return_squares=old.return_squares + count * mean_square,
        seen=old.seen + count,
        matches=old.matches + ENOUGH_MATCHES,
    )


def absorb_advantages(old: Statistics, now: Moments) -> Statistics:
    """Add the advantages of a batch."""
    before = old.advantages
    kept = min(float(before.size), max(ADVANTAGE_HORIZON - float(now.size), 0.0))
    return replace(old, advantages=pooled(before._replace(size=kept), now))
