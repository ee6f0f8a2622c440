"""Wilson intervals of win rates, an anytime-valid e-detector, and rating points.

Wilson's score interval, two-sided and one-sided, is honest for few matches and near 0 and 1, where
a normal interval is not. It holds for one look. The e-detector holds for a look after every match.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from understudy.core.arrays import NDArray


def wilson(wins: float, matches: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval of a share: honest for few matches and near 0 and 1.

    `wins` may count draws by half: results that lie between 0 and 1 vary less than wins and losses
    of the same mean do, so the interval is then wider than it need be, never too narrow.
    """
    if matches == 0:
        return 0.0, 1.0
    share = wins / matches
    centre = share + z * z / (2 * matches)
    spread = z * math.sqrt(share * (1 - share) / matches + z * z / (4 * matches * matches))
    scale = 1 + z * z / matches
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def one_sided(confidence: float) -> float:
    """The `z` with which *one* bound of an interval holds with this confidence (0.95: 1.645)."""
    from statistics import NormalDist  # 10 ms that only runs with a curriculum need

    return NormalDist().inv_cdf(confidence)


STAKES = (0.05, 0.1, 0.2, 0.3, 0.45, 0.65, 0.9)
"""Shares of the capital that the e-detector bets. For a bar t of one half or more, a stake s is the
best bet where the true mean is t + s (1 - t); all of them together lose little to the best."""
_CEILING = 1e12
"""Evidence grows no further: less evidence is still valid, and nothing overflows."""


def gains(results: NDArray, *, above: float) -> NDArray:
    """What an even bet on "the mean lies above" gains, in [-1, 1]; on average at most 0 if it does
    not. `results` lie in [0, 1]: losses and wins, draws as a half, any bounded score."""
    gained: NDArray = (np.asarray(results, np.float64) - above) / max(above, 1.0 - above)
    return gained


def detect(evidence: NDArray, gains: NDArray, *, stakes: Sequence[float] = STAKES) -> NDArray:
    """The Shiryaev-Roberts e-detector: evidence [S, ...] after so many `gains` [N, ...].

    Each stake s has R <- (1 + R)(1 + s g); R begins with 0. It is the sum of one test for each
    moment at which a change may have happened: what a learner lost before it became good enough is
    not held against it. The evidence is the mean of R over the stakes. While no gain is above 0 on
    average, R less the number of gains is a supermartingale: a stop at `mean >= A` comes after A
    gains or more on average, however often one looks (Shin, Ramdas and Rinaldo, arXiv:2203.03532).
    """
    share = np.asarray(stakes, np.float64).reshape(-1, *(1,) * (evidence.ndim - 1))
    for gain in gains:
        evidence = np.minimum((1.0 + evidence) * (1.0 + share * gain), _CEILING)
    return evidence


def detect_until(
    evidence: Sequence[float],
    gains: Sequence[float],
    *,
    bound: float,
    stakes: Sequence[float] = STAKES,
) -> tuple[list[float], int | None]:
    """`detect` of one detector, up to the first gain after which the mean evidence reaches `bound`.

    Returns the evidence [S] there and the place of that gain; None: none did. The recursion cannot
    be split without rounding differently, and seven plain numbers are faster than an array of
    seven: 1 µs a gain instead of 5.
    """
    factors = (1.0 + np.multiply.outer(np.asarray(gains, np.float64), stakes)).tolist()
    now, enough = list(evidence), bound * len(stakes)
    for place, row in enumerate(factors):
        now = [(1.0 + one) * factor for one, factor in zip(now, row, strict=True)]
        if sum(now) >= enough:
            return now, place
    return now, None


RATING_MEAN, RATING_LUCK = 25.0, 25.0 / 6.0
"""Where everyone begins to be rated; and how much luck one match has, in the same units."""
_POINTS = 400.0 / (math.log(10.0) * math.sqrt(2.0) * RATING_LUCK)


def points(mu: float) -> float:
    """A rating for people, as in chess: 1000 is the middle, 400 more win ten times as often."""
    return 1000.0 + _POINTS * (mu - RATING_MEAN)


def margin(sigma: float) -> float:
    """Points up and down within which the true ones are, with 95% confidence."""
    return _POINTS * 2.0 * sigma
