"""Running statistics of observations, returns, advantages and values, and when to fit the
normaliser.

A normaliser that moved with every batch would change the policy under its own feet. It is fitted
when the number of decisions has doubled since the last fit, and when features leave the range that
it was fitted to. The statistics forget: they describe about the last `HORIZON` decisions. One
absurd number does not count for more than the range of the others allows, or than the bounds that
were declared for its feature (`features.bounds`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.feature_bounds import Bounds
from understudy.learner.maths.returns import Moments, pooled

HORIZON = 100_000.0
"""Decisions after which older ones fade."""
VALUE_HORIZON = 10_000.0
"""The same for values and advantages, which change as the value is learned."""
ENOUGH_MATCHES, ENOUGH_DECISIONS = 8.0, 256.0
"""A fit that rests on less may be revised by the next batch."""
_SMALLEST_SPREAD = 1e-4
_TRIMMED = 0.005
"""Share of the numbers of a feature, at each end, that do not say what its range is."""
_FEW = 20
"""Fewer decisions than this do not say which of them is extreme."""
_ROUNDING = 1e-6
_RANGES = 10.0
"""How many ranges (or spreads, of what was seen before) beyond its range a feature counts."""


class ValueFit(NamedTuple):
    """How far values foretold the returns that followed, and what they are worth as a baseline:
    means, variances and the covariance of values and returns, in units of reward.

    Where the result of a match is the only reward, values that have seen few matches say more about
    those matches than about the next one: subtracting them from a return adds noise, and credit
    that passes through them is lost. So returns are regressed on the values that were recorded in
    play, before anything was learned from the match. The slope is 1 for values that are right on
    average, however much chance there is in returns, and near 0 for values that know nothing
    (ADR 0027).
    """

    matches: float = 0.0
    decisions: float = 0.0
    value_mean: float = 0.0
    return_mean: float = 0.0
    value_variance: float = 0.0
    return_variance: float = 0.0
    covariance: float = 0.0

    @property
    def slope(self) -> float:
        """How much of a value to believe, from 0 to 1; 1 where nothing is known.

        The decisions of a match have one result in common, so a slope rests on the matches. With
        few of them, or values that hardly differ, it is drawn towards 0.
        """
        if not self.matches:
            return 1.0
        variance = self.value_variance + self.return_variance / self.matches
        return float(np.clip(self.covariance / variance, 0.0, 1.0)) if variance > 0.0 else 1.0

    @property
    def explained(self) -> float:
        """The share of the variance of returns that values explain, used like this: 0 to 1."""
        if not self.matches or self.return_variance <= 0.0:
            return 1.0
        return float(np.clip(self.slope * self.covariance / self.return_variance, 0.0, 1.0))

    @property
    def intercept(self) -> float:
        """The return that is to be expected where the value is 0."""
        return self.return_mean - self.slope * self.value_mean if self.matches else 0.0


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
    declared: Bounds | None = None,
) -> Statistics:
    """Add observations [N, F] and returns [N] of so many matches (Chan's parallel update).

    A shorter `horizon` forgets more of what was seen before.
    """
    n = float(len(observations))
    fresh = bounded(old, observations.astype(np.float64), declared)
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


def bounded(old: Statistics, fresh: NDArray, declared: Bounds | None = None) -> NDArray:
    """Observations [N, F] within their declared bounds; else within a generous range: ten times
    that of all but the most extreme of them, or ten spreads of what was seen before, whichever is
    wider."""
    ordered = np.sort(fresh, axis=0)
    cut = trimmed(len(fresh))
    low, high = ordered[cut], ordered[-1 - cut]
    reach = _RANGES * (high - low)
    low, high = low - reach, high + reach
    if old.count:
        reach = _RANGES * np.sqrt(old.obs_spread / old.count)
        low, high = np.minimum(low, old.obs_mean - reach), np.maximum(high, old.obs_mean + reach)
    if declared is not None:
        known = np.isfinite(declared.low)
        low, high = np.where(known, declared.low, low), np.where(known, declared.high, high)
    return np.clip(fresh, low, high)


def within_bounds(old: Statistics, declared: Bounds) -> Statistics:
    """What was counted before bounds were declared: a feature whose mean lies beyond them, or whose
    spread is larger than that of any values within them, is taken to fill them. Where there is one,
    a fit is due."""
    middle, half = (declared.low + declared.high) / 2.0, (declared.high - declared.low) / 2.0
    away = np.abs(old.obs_mean - middle)
    most = old.count * (half - away) * (half + away)  # of values at either bound alone
    slack = _ROUNDING * half
    wrong = (away > half + slack) | (old.obs_spread > most + old.count * half * slack)
    if not wrong.any():
        return old
    return replace(
        old,
        obs_mean=np.where(wrong, middle, old.obs_mean),
        obs_spread=np.where(wrong, old.count * half**2, old.obs_spread),
        fitted_at=min(old.fitted_at, old.seen / 2.0),
    )


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
    kept = min(float(before.size), max(VALUE_HORIZON - float(now.size), 0.0))
    return replace(old, advantages=pooled(before._replace(size=kept), now))


def absorb_values(old: ValueFit, values: Sequence[NDArray], returns: Sequence[NDArray]) -> ValueFit:
    """Add matches, each with the values and the returns of its decisions."""
    if not values:
        return old
    value = np.concatenate(values).astype(np.float64)
    after = np.concatenate(returns).astype(np.float64)
    new = ValueFit(
        float(len(values)),
        float(len(value)),
        float(value.mean()),
        float(after.mean()),
        float(value.var()),
        float(after.var()),
        float(np.mean((value - value.mean()) * (after - after.mean()))),
    )
    kept = min(old.decisions, max(VALUE_HORIZON - new.decisions, 0.0))
    total = kept + new.decisions
    mine, theirs = new.decisions / total, kept / total
    between = mine * theirs
    apart = new.value_mean - old.value_mean, new.return_mean - old.return_mean
    return ValueFit(
        new.matches + (old.matches * kept / old.decisions if old.decisions else 0.0),
        total,
        mine * new.value_mean + theirs * old.value_mean,
        mine * new.return_mean + theirs * old.return_mean,
        mine * new.value_variance + theirs * old.value_variance + between * apart[0] ** 2,
        mine * new.return_variance + theirs * old.return_variance + between * apart[1] ** 2,
        mine * new.covariance + theirs * old.covariance + between * apart[0] * apart[1],
    )


def to_arrays(s: Statistics) -> dict[str, NDArray]:
    """As a version keeps them, by name."""
    sums = [s.count, s.return_squares, s.fitted_at, s.seen, s.matches, *s.advantages]
    return {
        "statistics.sums": np.array(sums),
        "statistics.mean": s.obs_mean,
        "statistics.spread": s.obs_spread,
        "statistics.value_fit": np.array(s.value_fit),
    }


def from_arrays(arrays: Mapping[str, NDArray]) -> Statistics:
    """As a version has them; older ones know of fewer sums. KeyError: what is missing."""
    sums = [float(number) for number in arrays["statistics.sums"]]
    count, squares, fitted = sums[:3]
    seen, matches, *advantages = sums[3:] or [count, ENOUGH_MATCHES, 0.0, 0.0, 0.0]
    return Statistics(
        count,
        arrays["statistics.mean"],
        arrays["statistics.spread"],
        squares,
        fitted,
        seen,
        matches,
        Moments(*advantages),
        ValueFit(*(float(number) for number in arrays.get("statistics.value_fit", ()))),
    )
