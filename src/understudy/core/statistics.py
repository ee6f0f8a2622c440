"""How sure a share of so many matches is, and how people read a rating.

Wilson's score interval, two-sided and one-sided, is honest for few matches and near 0 and 1, where
a normal interval is not.
"""

from __future__ import annotations

import math


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


RATING_MEAN, RATING_LUCK = 25.0, 25.0 / 6.0
"""Where everyone begins to be rated; and how much luck one match has, in the same units."""
_POINTS = 400.0 / (math.log(10.0) * math.sqrt(2.0) * RATING_LUCK)


def points(mu: float) -> float:
    """A rating for people, as in chess: 1000 is the middle, 400 more win ten times as often."""
    return 1000.0 + _POINTS * (mu - RATING_MEAN)


def margin(sigma: float) -> float:
    """Points up and down within which the true ones are, with 95% confidence."""
    return _POINTS * 2.0 * sigma
