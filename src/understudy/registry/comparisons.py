"""What the reward of a served policy is measured against: random actions, and each fixed action.

Off-policy estimates from the policy's own decisions (docs/adr/0025). A decision that the policy
drew with probability p counts for an alternative with weight q / p, where q is the alternative's
probability of that action; the estimate is the weighted mean of the rewards. It answers what *one
decision* of the alternative would have earned in the situations that the policy met, not where a
whole game of it would have led. Segments, whose decisions depend on each other, are the unit of the
interval; where the weight lies on too few of them, there is no estimate. All functions are pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from understudy.core.statistics import one_sided
from understudy.registry.scores import ENOUGH, ScoreInterval

WINDOW = 20_000
"""Decisions of one comparison; two are kept, so that a report covers the last 20,000 to 40,000:
in the same situations as the reward of the newest versions."""
_KEPT = 2


class WeightedMean(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A weighted mean of rewards, as sums over groups of decisions that depend on each other."""

    weight: float = 0.0
    """Sum of the weights W of the groups."""
    total: float = 0.0
    """Sum of R, each the weighted sum of the rewards of a group."""
    weight_squares: float = 0.0
    """Sum of W * W"""
    total_squares: float = 0.0
    """Sum of R * R"""
    products: float = 0.0
    """Sum of W * R"""

    def __add__(self, other: WeightedMean) -> WeightedMean:
        """Of the groups of both."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return WeightedMean(*(one + more for one, more in pairs))

    @property
    def effective_groups(self) -> float:
        """How many groups of equal weight would tell as much: 1 if one group has all the weight."""
        return self.weight**2 / self.weight_squares if self.weight_squares > 0.0 else 0.0

    def interval(self, *, confidence: float = 0.95) -> ScoreInterval | None:
        """The mean, and by the variance of a ratio of sums its interval; None: too few groups."""
        groups = self.effective_groups
        if groups < ENOUGH:
            return None
        mean = self.total / self.weight
        squares = self.total_squares - 2 * mean * self.products + mean**2 * self.weight_squares
        variance = max(squares, 0.0) / self.weight**2 * groups / (groups - 1.0)
        margin = one_sided(0.5 + confidence / 2) * math.sqrt(variance)
        return ScoreInterval(mean, mean - margin, mean + margin)


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The same decisions under the policy that made them and under each alternative."""

    decisions: int = 0
    segments: int = 0
    policy: WeightedMean = WeightedMean()
    random: WeightedMean = WeightedMean()
    fixed: tuple[WeightedMean, ...] = ()
    """By the number of the action; empty where there are too many."""

    def __add__(self, other: Comparison) -> Comparison:
        """Of the decisions of both, which are of one run."""
        fixed = zip(self.fixed, other.fixed, strict=True) if self.fixed and other.fixed else ()
        return Comparison(
            decisions=self.decisions + other.decisions,
            segments=self.segments + other.segments,
            policy=self.policy + other.policy,
            random=self.random + other.random,
            fixed=tuple(one + more for one, more in fixed) or self.fixed or other.fixed,
        )


def with_comparison(
    comparisons: Sequence[Comparison], more: Comparison, *, window: int = WINDOW
) -> tuple[Comparison, ...]:
    """The comparisons after one more segment, oldest first; all but the last two are forgotten."""
    if not more.decisions:
        return tuple(comparisons)
    if comparisons and comparisons[-1].decisions < window:
        return (*comparisons[:-1], comparisons[-1] + more)
    return (*comparisons, more)[-_KEPT:]


def best_fixed(comparison: Comparison) -> tuple[int, ScoreInterval, int] | None:
    """The action that is best where it is always taken, its interval, and of how many it is the
    best; None: unknown.

    The best of many looks better than it is. So the intervals hold for all actions together, with
    95% confidence (Bonferroni).
    """
    count = len(comparison.fixed)
    confidence = 1.0 - 0.05 / max(count, 1)
    known = [
        (action, interval)
        for action, one in enumerate(comparison.fixed)
        if (interval := one.interval(confidence=confidence)) is not None
    ]
    if not known:
        return None
    action, interval = max(known, key=lambda one: one[1].mean)
    return action, interval, len(known)
