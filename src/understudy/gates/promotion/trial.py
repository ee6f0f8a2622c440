"""One test of a version: a canary against the incumbent, judged after every match. Pure.

`advance` takes matches in the order of their assignment and returns what the gate says after each:

    BETTER    the evidence for the canary has reached 1 / alpha
    HARM      the evidence against it has reached `harm`, or its own results have fallen below what
              the incumbent's record promises
    FUTILE    enough matches have been played without either

All numbers are arrays with any trailing shape [...], so that thousands of simulated tests run side
by side in the same gate (`benchmarks/promotion.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.gates.promotion import evidence as maths
from understudy.gates.promotion.records import TrialSettings

CONTINUE, BETTER, HARM, FUTILE = range(4)


class Trial(NamedTuple):
    """What is known of one test."""

    better: NDArray
    """Log capital [L, ...] of bets on the canary."""
    worse: NDArray
    """Log capital [L, ...] of bets against it."""
    below: NDArray
    """Log capital [L, ...] of bets that the canary's mean lies below `promise`, without a coin."""
    promise: NDArray
    """[...] The lower bound of the incumbent's record; 0: too little is known of it."""
    totals: NDArray
    """[S, ...] Sum of results by stratum, both arms."""
    counts: NDArray
    """[S, ...] Matches by stratum."""
    arm_totals: NDArray
    """[2, ...] Sum of results of the incumbent and of the canary."""
    arm_counts: NDArray
    """[2, ...] Matches of the incumbent and of the canary."""

    @property
    def matches(self) -> NDArray:
        total: NDArray = self.arm_counts.sum(0)
        return total


class TrialLooks(NamedTuple):
    """What the gate saw and said after each match, each [N, ...]."""

    better: NDArray
    """Evidence that the canary is better."""
    worse: NDArray
    below: NDArray
    verdict: NDArray
    """CONTINUE, BETTER, HARM or FUTILE."""


def new_trial(
    promise: NDArray | float = 0.0, *, strata: int = 1, shape: tuple[int, ...] = ()
) -> Trial:
    """A test without a match."""
    none = maths.new_capital(shape)
    return Trial(
        none,
        none,
        none,
        np.broadcast_to(np.asarray(promise, np.float64), shape),
        *(np.zeros((strata, *shape)) for _ in range(2)),
        *(np.zeros((2, *shape)) for _ in range(2)),
    )


def with_strata(trial: Trial, strata: int) -> Trial:
    """The same test with room for so many strata."""
    more = ((0, strata - len(trial.totals)), *((0, 0),) * (trial.totals.ndim - 1))
    return trial._replace(totals=np.pad(trial.totals, more), counts=np.pad(trial.counts, more))


def canary_share(trial: Trial, settings: TrialSettings) -> NDArray:
    """The probability [...] with which the next match is the canary's: small until a few of its
    matches have shown that it is not much worse."""
    early = trial.arm_counts[1] < settings.first_canaries
    share: NDArray = np.where(early, settings.first_share, settings.share)
    return share


def advance(
    trial: Trial,
    settings: TrialSettings,
    *,
    alpha: float,
    arms: NDArray,
    shares: NDArray,
    results: NDArray,
    strata: NDArray,
) -> tuple[Trial, TrialLooks]:
    """The test after N more matches, and what the gate says after each of them.

    All arrays are [N, ...], in the order of assignment: `arms` (1: canary), `shares` (the
    probability of the canary when the coin was thrown), `results` in [0, 1], `strata` below S.
    """
    forecasts = maths.forecast(
        maths.sums_before(trial.totals, results, strata),
        maths.sums_before(trial.counts, np.ones_like(results), strata),
        trial.totals.sum(0) + np.cumsum(results, axis=0) - results,
        trial.matches + np.arange(len(results)).reshape(-1, *(1,) * (results.ndim - 1)),
    )
    gained = maths.gains(arms, shares, results, forecasts)
    known = trial.promise > 0.0
    promise = np.where(known, trial.promise, 0.5)
    short = np.where(known & (arms == 1), gains_below(results, promise), 0.0)
    better = maths.grow(trial.better, gained)
    worse = maths.grow(trial.worse, -gained)
    below = maths.grow(trial.below, short)
    of_arm = np.stack((arms == 0, arms == 1), axis=1).astype(np.float64)
    arm_totals = trial.arm_totals + np.cumsum(of_arm * results[:, None], axis=0)
    arm_counts = trial.arm_counts + np.cumsum(of_arm, axis=0)
    for_it, against_it, below_it = (maths.evidence(one, axis=1) for one in (better, worse, below))
    verdict = _verdict(
        for_it, against_it, below_it, arm_counts.sum(1), settings=settings, alpha=alpha
    )
    looks = TrialLooks(for_it, against_it, below_it, verdict)
    here = [strata == stratum for stratum in range(len(trial.totals))]
    after = Trial(
        better[-1],
        worse[-1],
        below[-1],
        trial.promise,
        trial.totals + np.stack([np.where(one, results, 0.0).sum(0) for one in here]),
        trial.counts + np.stack([(one & np.ones_like(results, bool)).sum(0) for one in here]),
        arm_totals[-1],
        arm_counts[-1],
    )
    return after, looks


def gains_below(results: NDArray, bar: NDArray) -> NDArray:
    """What an even bet on "the mean lies below the bar" gains, in [-1, 1]."""
    gained: NDArray = (bar - results) / np.maximum(bar, 1.0 - bar)
    return gained


def _verdict(
    better: NDArray,
    worse: NDArray,
    below: NDArray,
    matches: NDArray,
    *,
    settings: TrialSettings,
    alpha: float,
) -> NDArray:
    """BETTER before HARM before FUTILE."""
    promising = better >= settings.promising
    tired = (matches >= settings.longest) | ((matches >= settings.long) & ~promising)
    harm = (worse >= settings.harm) | (below >= settings.below)
    verdict: NDArray = np.where(
        better >= 1.0 / alpha, BETTER, np.where(harm, HARM, np.where(tired, FUTILE, CONTINUE))
    )
    return verdict
