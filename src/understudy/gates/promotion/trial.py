"""One test of a version: a canary against the incumbent, judged after every match. Pure.

`advance` takes matches in the order of their assignment and returns what the gate says after each:

    BETTER    the evidence for the canary has reached 1 / alpha
    HARM      the evidence against it has reached `harm`
    MISFIT    the arms do not come as often as the recorded coin says: the test proves nothing
    HOPELESS  the evidence for it has fallen so low that it will hardly be promoted
    FUTILE    enough matches have been played without any of these

`advance_pairs` does the same with pairs of simulated matches. All numbers are arrays with any
trailing shape [...], so that thousands of simulated tests run side by side in the same gate
(`benchmarks/promotion_gate.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.gates.promotion import evidence as maths
from understudy.gates.promotion.records import TrialSettings

CONTINUE, BETTER, HARM, MISFIT, HOPELESS, FUTILE = range(6)


class PromotionTrial(NamedTuple):
    """What is known of one test."""

    better: NDArray
    """Log capital [L, ...] of bets on the canary."""
    worse: NDArray
    """Log capital [L, ...] of bets against it."""
    coin: NDArray
    """Log capital [K, ...] of bets against the coin, on both sides."""
    totals: NDArray
    """[S, ...] Sum of results by stratum, both arms."""
    counts: NDArray
    """[S, ...] Matches by stratum."""
    arm_totals: NDArray
    """[2, ...] Sum of results of the incumbent and of the canary."""
    arm_counts: NDArray
    """[2, ...] Matches of the incumbent and of the canary."""
    spread: NDArray
    """[2, ...] Discounted sum and number of squared errors of the forecast."""

    @property
    def matches(self) -> NDArray:
        """Of both arms, [...]."""
        total: NDArray = self.arm_counts.sum(0)
        return total

    @property
    def means(self) -> NDArray:
        """[2, ...] Mean results of the incumbent and of the canary; 0 without a match."""
        mean: NDArray = self.arm_totals / np.maximum(self.arm_counts, 1.0)
        return mean


class TrialLooks(NamedTuple):
    """What the gate saw and said after each match, each [N, ...]."""

    better: NDArray
    """Evidence that the canary is better."""
    worse: NDArray
    coin: NDArray
    """Evidence that the arms do not come as often as the coin says."""
    verdict: NDArray
    """CONTINUE, BETTER, HARM, MISFIT, HOPELESS or FUTILE."""
    against: NDArray
    """What an even bet against the canary gained."""


def new_trial(*, strata: int = 1, shape: tuple[int, ...] = ()) -> PromotionTrial:
    """A test without a match."""
    return PromotionTrial(
        maths.new_capital(shape),
        maths.new_capital(shape),
        maths.new_capital(shape, stakes=maths.COIN_STAKES),
        *np.zeros((2, strata, *shape)),
        *np.zeros((3, 2, *shape)),
    )


def with_strata(trial: PromotionTrial, strata: int) -> PromotionTrial:
    """The same test with room for so many strata."""
    if strata == len(trial.totals):
        return trial
    more = ((0, strata - len(trial.totals)), *((0, 0),) * (trial.totals.ndim - 1))
    return trial._replace(totals=np.pad(trial.totals, more), counts=np.pad(trial.counts, more))


def canary_share(trial: PromotionTrial, settings: TrialSettings) -> NDArray:
    """The probability [...] with which the next match is the canary's: small until a few of its
    matches have shown that it is not much worse."""
    early = trial.arm_counts[1] < settings.first_canaries
    share: NDArray = np.where(early, settings.first_share, settings.share)
    return share


def advance(
    trial: PromotionTrial,
    settings: TrialSettings,
    *,
    alpha: float,
    arms: NDArray,
    shares: NDArray,
    results: NDArray,
    strata: NDArray,
) -> tuple[PromotionTrial, TrialLooks]:
    """The test after N more matches, and what the gate says after each of them.

    All arrays are [N, ...], in the order of assignment: `arms` (1: canary), `shares` (the
    probability of the canary when the coin was thrown), `results` in [0, 1], `strata` below S.
    """
    is_canary = arms == 1
    arm_totals = maths.running(
        trial.arm_totals, np.stack((np.where(is_canary, 0.0, results), is_canary * results), axis=1)
    )
    arm_counts = maths.running(
        trial.arm_counts, np.stack((~is_canary, is_canary), axis=1).astype(np.float64)
    )
    before_total, before_count, totals, counts = maths.stratum_sums(
        trial.totals, trial.counts, results, strata
    )
    forecasts = maths.forecast(
        before_total, before_count, arm_totals[:-1].sum(1), arm_counts[:-1].sum(1)
    )
    gained = maths.gains(arms, shares, results, forecasts)
    better = maths.grow(trial.better, gained)
    against, spread = -gained, trial.spread
    if settings.harm_spread:
        against, spread = maths.losses(
            against,
            coins=maths.coin_gains(arms, shares),
            errors=results - forecasts,
            spread=spread,
            deviations=settings.harm_spread,
        )
    worse = maths.grow(trial.worse, against)
    coin = maths.grow(trial.coin, maths.coin_gains(arms, shares), stakes=maths.COIN_STAKES)
    for_it, against_it, misfit = (maths.evidence(one, axis=1) for one in (better, worse, coin))
    matches = arm_counts[1:].sum(1)
    verdict = _verdict(for_it, against_it, misfit, matches, settings=settings, alpha=alpha)
    after = PromotionTrial(
        better[-1], worse[-1], coin[-1], totals, counts, arm_totals[-1], arm_counts[-1], spread
    )
    return after, TrialLooks(for_it, against_it, misfit, verdict, against)


def advance_pairs(
    trial: PromotionTrial,
    settings: TrialSettings,
    *,
    alpha: float,
    canary: NDArray,
    incumbent: NDArray,
) -> tuple[PromotionTrial, TrialLooks]:
    """The same of N pairs: results [N, ...] of both on the same fresh seeds, as many of each.

    The gain of a bet on the canary is its result less the incumbent's. `long` and `longest` count
    pairs, and there is no coin.
    """
    gained = canary - incumbent
    better, worse = maths.grow(trial.better, gained), maths.grow(trial.worse, -gained)
    totals = maths.running(trial.arm_totals, np.stack((incumbent, canary), axis=1))
    counts = maths.running(trial.arm_counts, np.ones((len(canary), *trial.arm_counts.shape)))
    for_it, against_it = (maths.evidence(one, axis=1) for one in (better, worse))
    none = np.ones_like(for_it)
    verdict = _verdict(for_it, against_it, none, counts[1:, 1], settings=settings, alpha=alpha)
    after = trial._replace(
        better=better[-1], worse=worse[-1], arm_totals=totals[-1], arm_counts=counts[-1]
    )
    return after, TrialLooks(for_it, against_it, none, verdict, -gained)


def _verdict(
    better: NDArray,
    worse: NDArray,
    coin: NDArray,
    matches: NDArray,
    *,
    settings: TrialSettings,
    alpha: float,
) -> NDArray:
    """MISFIT before BETTER before HARM before HOPELESS before FUTILE."""
    promising = better >= settings.promising
    hopeless = (matches >= settings.short) & (better < settings.hopeless)
    tired = (matches >= settings.longest) | ((matches >= settings.long) & ~promising)
    verdict: NDArray = np.select(
        [coin >= settings.misfit, better >= 1.0 / alpha, worse >= settings.harm, hopeless, tired],
        [MISFIT, BETTER, HARM, HOPELESS, FUTILE],
        CONTINUE,
    )
    return verdict
