"""How far values foretold the returns that followed, and what they are worth as a baseline.

Where the result of a match is the only reward, values that have seen few matches say more about
those matches than about the next one: subtracting them from a return adds noise, and credit that
passes through them is lost. So returns are regressed on the values that were said while playing,
before anything was learned from the match. The slope is 1 for values that are right on average, how
ever much chance there is in returns, and near 0 for values that know nothing (ADR 0027).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray

HORIZON = 10_000.0
"""Decisions after which older ones fade: values are being learned."""


class ValueFit(NamedTuple):
    """Means, variances and the covariance of values and returns, in units of reward."""

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


def absorb(old: ValueFit, values: Sequence[NDArray], returns: Sequence[NDArray]) -> ValueFit:
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
    kept = min(old.decisions, max(HORIZON - new.decisions, 0.0))
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
