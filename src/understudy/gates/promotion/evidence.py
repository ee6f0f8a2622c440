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
"""

from __future__ import annotations

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.statistics import STAKES

_STRATUM_WEIGHT = 10.0
"""The forecast of a stratum counts the mean of all strata as so many matches."""
_PRIOR_WEIGHT = 2.0
"""The mean of all strata begins at one half, counted as so many matches."""
_MOST = 600.0
"""Bound of log capital on both sides: nothing overflows, and capital can be regained."""


def new_capital(shape: tuple[int, ...] = ()) -> NDArray:
    """The logarithm of a capital of 1 for each stake: float64 [L, ...]."""
    return np.zeros((len(STAKES), *shape))


def grow(capital: NDArray, gains: NDArray) -> NDArray:
    """Log capital [N, L, ...] after each of `gains` [N, ...], from log capital [L, ...]."""
    stakes = np.reshape(STAKES, (len(STAKES), *(1,) * (np.ndim(capital) - 1)))
    grown = capital + np.cumsum(np.log1p(stakes * np.asarray(gains)[:, None]), axis=0)
    bounded: NDArray = np.clip(grown, -_MOST, _MOST)
    return bounded


def evidence(capital: NDArray, *, axis: int = 0) -> NDArray:
    """The mean capital over the stakes, from log capital with the stakes on `axis`."""
    mean: NDArray = np.exp(capital).mean(axis)
    return mean


def forecast(total: NDArray, count: NDArray, all_total: NDArray, all_count: NDArray) -> NDArray:
    """The mean result of a stratum so far, shrunk towards the mean of all strata."""
    everywhere = (all_total + 0.5 * _PRIOR_WEIGHT) / (all_count + _PRIOR_WEIGHT)
    mean: NDArray = (total + _STRATUM_WEIGHT * everywhere) / (count + _STRATUM_WEIGHT)
    return mean


def gains(arms: NDArray, shares: NDArray, results: NDArray, forecasts: NDArray) -> NDArray:
    """What an even bet on "the canary is better" gains, in [-1, 1]; all arrays alike."""
    scale = np.maximum(shares, 1.0 - shares) * np.maximum(forecasts, 1.0 - forecasts)
    gained: NDArray = (arms - shares) * (results - forecasts) / scale
    return gained


def difference_interval(
    arms: NDArray,
    shares: NDArray,
    results: NDArray,
    strata: NDArray,
    *,
    confidence: float = 0.95,
    step: float = 0.01,
) -> tuple[float, float]:
    """An interval of the canary's mean result less the incumbent's, valid after every match.

    All arrays are [N], `strata` are numbers from 0. For each difference d on a grid the results are
    shifted so that d becomes no difference, and the two tests "better" and "worse" are made; the
    interval holds the differences that neither refuses.
    """
    if not len(arms):
        return -1.0, 1.0
    differences = np.arange(-1.0, 1.0 + step / 2, step)
    # The incumbent's results are raised by d > 0, the canary's by -d > 0; then back into [0, 1].
    raised = np.where(
        arms[:, None] == 0, np.maximum(differences, 0.0), np.maximum(-differences, 0.0)
    )
    shifted = (results[:, None] + raised) / (1.0 + np.abs(differences))
    none = np.zeros((int(strata.max()) + 1, len(differences)))
    forecasts = forecast(
        sums_before(none, shifted, strata[:, None]),
        sums_before(none, np.ones_like(shifted), strata[:, None]),
        np.cumsum(shifted, axis=0) - shifted,
        np.arange(len(arms))[:, None],
    )
    gained = gains(arms[:, None], shares[:, None], shifted, forecasts)
    start = new_capital((len(differences),))
    bound = 2.0 / (1.0 - confidence)
    better = evidence(grow(start, gained)[-1]) >= bound
    worse = evidence(grow(start, -gained)[-1]) >= bound
    low = differences[better].max(initial=-1.0)
    high = differences[worse].min(initial=1.0)
    return float(low), float(high)


def sums_before(totals: NDArray, values: NDArray, strata: NDArray) -> NDArray:
    """For each of `values` [N, ...] the sum of its stratum before it: [N, ...].

    `totals` [S, ...] are the sums before the first; `strata` [N, ...] are numbers below S.
    """
    before = np.zeros(np.broadcast_shapes(values.shape, strata.shape))
    for stratum in np.unique(strata):
        here = strata == stratum
        added = np.where(here, values, 0.0)
        before = np.where(here, totals[stratum] + np.cumsum(added, axis=0) - added, before)
    return before
