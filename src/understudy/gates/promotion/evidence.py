"""Evidence from matches that a recorded coin assigned to two arms. Pure, over arrays.

Before each match a coin with probability q (`share`) gives it to the canary (arm 1), else to the
incumbent (arm 0). The result y lies in [0, 1], and m (`forecast`) is known before it. Then

    g = (arm - q) (y - m) / (max(q, 1 - q) max(m, 1 - m))        in [-1, 1]

is on average at most 0 where the canary is not better, whatever the opponents do: the coin is the
only assumption. A stake s turns a capital of 1 into the product of 1 + s g. The evidence is the
mean capital over the stakes: a supermartingale, so it reaches 1 / alpha with probability alpha at
most, however often one looks (Turner, Ly and Grünwald, arXiv:2106.02693; Waudby-Smith and Ramdas,
arXiv:2010.09686).

Arrays have any trailing shape [...]: () for one test, (runs,) for simulated ones side by side.
Sums run from one match to the next, so that many matches at once give the same bits as one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.statistics import STAKES

COIN_STAKES = (-0.5, -0.2, 0.2, 0.5)
"""Of the bets that the arms come more rarely or more often than the coin says."""
_STRATUM_WEIGHT = 10.0
"""The forecast of a stratum counts the mean of all strata as so many matches."""
_PRIOR_WEIGHT = 2.0
"""The mean of all strata begins at one half, counted as so many matches."""
_KEPT_ERRORS = 0.98
"""What an earlier error of the forecast counts in the spread, match by match: about 50 count."""
_FIRST_ERRORS = 8.0
"""Matches before the spread of scores is known well enough to bet on its scale."""
_MOST = 600.0
"""Log capital above it counts as this: the exponential does not overflow."""
_CHUNK = 256
"""Matches of an interval that are computed at once: bounds the memory."""


def new_capital(shape: tuple[int, ...] = (), *, stakes: Sequence[float] = STAKES) -> NDArray:
    """The logarithm of a capital of 1 for each stake: float64 [L, ...]."""
    return np.zeros((len(stakes), *shape))


def grow(capital: NDArray, gains: NDArray, *, stakes: Sequence[float] = STAKES) -> NDArray:
    """Log capital [N, L, ...] after each of `gains` [N, ...], from log capital [L, ...]."""
    share = np.reshape(stakes, (len(stakes), *(1,) * (np.ndim(capital) - 1)))
    return running(capital, np.log1p(share * np.asarray(gains)[:, None]))[1:]


def running(start: NDArray, added: NDArray) -> NDArray:
    """The sums [N + 1, ...] from `start` [...] on, one more of `added` [N, ...] at a time."""
    sums: NDArray = np.cumsum(np.concatenate((np.asarray(start)[None], added)), axis=0)
    return sums


def evidence(capital: NDArray, *, axis: int = 0) -> NDArray:
    """The mean capital over the stakes, from log capital with the stakes on `axis`."""
    mean: NDArray = np.exp(np.minimum(capital, _MOST)).mean(axis)
    return mean


def forecast(total: NDArray, count: NDArray, all_total: NDArray, all_count: NDArray) -> NDArray:
    """The mean result of a stratum so far, shrunk towards the mean of all strata."""
    everywhere = (all_total + 0.5 * _PRIOR_WEIGHT) / (all_count + _PRIOR_WEIGHT)
    mean: NDArray = (total + _STRATUM_WEIGHT * everywhere) / (count + _STRATUM_WEIGHT)
    return mean


def gains(arms: NDArray, shares: NDArray, results: NDArray, forecasts: NDArray) -> NDArray:
    """What an even bet on "the canary is better" gains, in [-1, 1]; all arrays alike."""
    scale = np.maximum(forecasts, 1.0 - forecasts)
    gained: NDArray = coin_gains(arms, shares) * ((results - forecasts) / scale)
    return gained


def coin_gains(arms: NDArray, shares: NDArray) -> NDArray:
    """What an even bet on "the canary comes more often than its share" gains, in [-1, 1]."""
    gained: NDArray = (arms - shares) / np.maximum(shares, 1.0 - shares)
    return gained


def losses(
    whole: NDArray, *, coins: NDArray, errors: NDArray, spread: NDArray, deviations: float
) -> tuple[NDArray, NDArray]:
    """What an even bet on "the canary is worse" gains, in [-1, 1], on the scale of the spread.

    Scores that lie close together on their scale move a bet on the whole scale by little. Here the
    error of the forecast counts in units of `deviations` standard deviations, as the matches before
    it say, and is clipped to one such unit. So the bet is on clipped errors, and still gains
    nothing on average between versions that are equal: the coin is thrown before the error, and the
    unit is known before it. Until a few matches are known it is the bet on the whole scale.

    `whole`: the gains [N, ...] there. `coins`, `errors`: [N, ...], of `coin_gains` and of the
    forecast. `spread`: [2, ...] of `PromotionTrial`; its next value is the second result. A loop:
    a closed form would round differently in other pieces of the same matches.
    """
    total, number = spread
    gained = []
    for loss, coin, error in zip(whole, coins, errors, strict=True):
        unit = deviations * np.sqrt(total / np.maximum(number, 1.0))
        known = (number >= _FIRST_ERRORS) & (unit > 0.0)
        share = np.clip(error / np.where(known, unit, 1.0), -1.0, 1.0)
        gained.append(np.where(known, -coin * share, loss))
        total, number = _KEPT_ERRORS * total + error * error, _KEPT_ERRORS * number + 1.0
    return np.array(gained).reshape(np.shape(whole)), np.array((total, number))


def gains_below(results: NDArray, bar: NDArray | float) -> NDArray:
    """What an even bet on "the mean lies below the bar" gains, in [-1, 1]."""
    gained: NDArray = (bar - results) / np.maximum(bar, np.subtract(1.0, bar))
    return gained


def stratum_sums(
    totals: NDArray, counts: NDArray, results: NDArray, strata: NDArray
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Sum and number of the results of the same stratum before each match, and of all in the end.

    `totals` and `counts` [S, ...] are those before the first match; `results` and `strata`, numbers
    below S, are [N, ...]. Returns two arrays [N, ...] and two [S, ...].
    """
    totals, counts = totals.copy(), counts.copy()
    before_total, before_count = np.zeros((2, *results.shape))
    for stratum in np.unique(strata):
        here = strata == stratum
        sums = running(totals[stratum], np.where(here, results, 0.0))
        numbers = running(counts[stratum], here.astype(np.float64))
        before_total = np.where(here, sums[:-1], before_total)
        before_count = np.where(here, numbers[:-1], before_count)
        totals[stratum], counts[stratum] = sums[-1], numbers[-1]
    return before_total, before_count, totals, counts


def difference_interval(
    arms: NDArray,
    shares: NDArray,
    results: NDArray,
    strata: NDArray,
    *,
    confidence: float = 0.90,
    step: float = 0.01,
) -> tuple[float, float]:
    """An interval of the canary's mean result less the incumbent's, valid after every match.

    All arrays are [N], in the order of assignment; `strata` are numbers from 0. For each difference
    d on a grid the results are shifted so that d becomes no difference, and the two tests "more"
    and "less" are made. From each end the interval loses the differences that are refused, up to
    the first that is not. It holds the true difference after all matches together with this
    confidence. At 0.90 it lies above 0 exactly where a test with alpha 0.05 promotes.
    """
    if not len(arms):
        return -1.0, 1.0
    differences = np.linspace(-1.0, 1.0, 2 * round(1.0 / step) + 1)
    more, less = _evidence_of_differences(arms, shares, results, strata, differences)
    bound = 2.0 / (1.0 - confidence)
    low = int(np.argmin(np.append(more >= bound, False)))  # so many are refused from below
    high = int(np.argmin(np.append(less[::-1] >= bound, False)))
    last = len(differences) - 1
    return float(differences[max(low - 1, 0)]), float(differences[min(last + 1 - high, last)])


def _evidence_of_differences(
    arms: NDArray, shares: NDArray, results: NDArray, strata: NDArray, differences: NDArray
) -> tuple[NDArray, NDArray]:
    """The evidence for "more" and for "less" than each of the differences [D]."""
    size = (len(differences),)
    totals, counts = np.zeros((2, int(strata.max()) + 1, *size))
    total, count = np.zeros(size), 0
    more = less = new_capital(size)
    for first in range(0, len(arms), _CHUNK):
        part = slice(first, first + _CHUNK)
        arm, share = arms[part, None], shares[part, None]
        # The incumbent's results are raised by d > 0, the canary's by -d > 0; then back to [0, 1].
        raised = np.where(arm == 0, np.maximum(differences, 0.0), np.maximum(-differences, 0.0))
        shifted = (results[part, None] + raised) / (1.0 + np.abs(differences))
        strata_here = np.broadcast_to(strata[part, None], shifted.shape)
        before, numbers, totals, counts = stratum_sums(totals, counts, shifted, strata_here)
        sums = running(total, shifted)
        places = count + np.arange(len(arm))[:, None]
        gained = gains(arm, share, shifted, forecast(before, numbers, sums[:-1], places))
        more, less = grow(more, gained)[-1], grow(less, -gained)[-1]
        total, count = sums[-1], count + len(arm)
    return evidence(more), evidence(less)
