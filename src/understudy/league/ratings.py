"""Ratings: how strong everyone is and how sure that is, on a scale that scripted bots hold still.

Openskill's Bradley-Terry model: with two players it is Elo's curve with an uncertainty. Its models
for full and partial pairing and Plackett-Luce are the same there; Thurstone-Mosteller foretold
results of brawl's bots hardly better (log loss 0.229, not 0.232), and has draws to be tuned.

Anchors never move. So a number that rises means strength, not a league that rates itself up.
The learner changes with every update: its uncertainty grows by `TAU` an iteration. A snapshot never
changes: it begins with what was known of the learner, and its uncertainty, with it the size of its
moves, only shrinks. Simulated, a learner that stands still is not rated up: after hundreds of
iterations it is within its interval still.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias

import msgspec

from understudy.core import statistics
from understudy.core.errors import MissingDependency

Counts: TypeAlias = tuple[int, int, int]
"""Wins, draws and losses."""

MEAN, BETA = statistics.RATING_MEAN, statistics.RATING_LUCK
"""Where everyone begins; and how much luck one match has, in the same units."""
UNKNOWN = 20.0
"""How uncertain somebody is who never played. Bots that hold the scale can lie 45 from the middle:
with openskill's own 25/3, a newcomer who is as weak as `random` was after 14 matches rated 26 too
high, four times what its uncertainty said; with this it is once that, for weak and strong alike."""
TAU = 0.4
"""Keeps the learner at an uncertainty of about 1.4 with thirty matches an iteration, 0.9 with three
hundred. Simulated climbs of 60 in 200 iterations are followed 3 behind; at 0.2 it was 7."""


class Rating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Strength `mu`, and the standard deviation of what is known of it."""

    mu: float = MEAN
    sigma: float = UNKNOWN

    @property
    def points(self) -> float:
        """For people, as in chess: 1000 is the middle, 400 points more win ten times as often."""
        return statistics.points(self.mu)

    @property
    def floor(self) -> float:
        """In units of `mu`: surely at least this strong. What is not known yet does not count."""
        return self.mu - 2.0 * self.sigma

    @property
    def margin(self) -> float:
        """Points up and down within which the true ones are, with 95% confidence."""
        return statistics.margin(self.sigma)

    def __str__(self) -> str:
        return f"{self.points:.0f} ± {self.margin:.0f}"

    def as_dict(self) -> dict[str, float]:
        """For JSON."""
        return {
            "mu": round(self.mu, 4),
            "sigma": round(self.sigma, 4),
            "points": round(self.points, 1),
            "margin": round(self.margin, 1),
        }


ORIGIN = Rating(MEAN, 0.001)
"""Whoever holds a scale alone: 1000 points by definition, so there is nothing uncertain about it.
With a newcomer's uncertainty, who wins 10:1 against it would be rated 2400, not 1400: results
against somebody unknown say less, so it takes a wider gap to explain them."""


def aged(rating: Rating, tau: float = TAU) -> Rating:
    """The same, after a change that nobody has measured yet; never less known than a newcomer."""
    return Rating(rating.mu, min(math.hypot(rating.sigma, tau), Rating().sigma))


def rated(
    one: Rating,
    others: Mapping[str, Rating],
    results: Mapping[str, Counts],
    *,
    fixed: Collection[str],
) -> tuple[Rating, dict[str, Rating]]:
    """Everyone after `one` met `others` with these results; those that are `fixed` stay."""
    meetings = spread([((name,), counts) for name, counts in results.items()])
    ladder = _Ladder({"": one, **others}, fixed=fixed)
    for (name,), score in meetings:
        ladder.meet("", name, score)
    found = ladder.ratings()
    return found.pop(""), found


def rated_table(
    start: Mapping[str, Rating],
    results: Mapping[tuple[str, str], Counts],
    *,
    fixed: Collection[str] = (),
) -> dict[str, Rating]:
    """Everyone after matches of pairs, counted from the first one's side."""
    ladder = _Ladder(start, fixed=fixed)
    for (one, other), score in spread(list(results.items())):
        ladder.meet(one, other, score)
    return ladder.ratings()


def spread(
    results: Iterable[tuple[tuple[str, ...], Counts]],
) -> list[tuple[tuple[str, ...], int]]:
    """One entry a match with its score (+1, 0, -1), wins and losses evenly among each other.

    What is counted together has no order; all wins before all losses would be the worst one, since
    later matches weigh more. So a win and a loss that fall on one place are two draws, which say
    the same of both players: whichever came second would outweigh the other.
    """
    placed = []
    for who, (wins, draws, losses) in results:
        won, lost = _places(wins), _places(losses)
        both = set(won) & set(lost)
        placed += [(place, who, 0 if place in both else 1) for place in won]
        placed += [(place, who, 0 if place in both else -1) for place in lost]
        placed += [(place, who, 0) for place in _places(draws)]
    return [(who, score) for _, who, score in sorted(placed, key=_by_place)]


def _places(count: int) -> list[float]:
    """So many, evenly over 0 to 1."""
    return [(index + 0.5) / count for index in range(count)]


def _by_place(placed: tuple[float, tuple[str, ...], int]) -> tuple[float, tuple[str, ...], int]:
    """Draws first where places are equal: wins and losses exchanged give the same order."""
    place, who, score = placed
    return place, who, abs(score)


class _Ladder:
    """Ratings in openskill's own objects while matches are counted: making one takes as long as a
    match (17 µs a match; 700 matches a second cost 1.2% of it)."""

    def __init__(self, ratings: Mapping[str, Rating], *, fixed: Collection[str]) -> None:
        self._model = _model()
        self._fixed = frozenset(fixed)
        self._before = dict(ratings)
        self._held: dict[str, Any] = {}

    def meet(self, one: str, other: str, score: int) -> None:
        """One match, as `one` saw it."""
        pair = [[self._get(one)], [self._get(other)]]
        # `ranks`: the lower one won, equal ones drew.
        (mine,), (theirs,) = self._model.rate(pair, ranks=[-score, score])
        for name, after in ((one, mine), (other, theirs)):
            if name not in self._fixed:
                self._held[name] = after

    def ratings(self) -> dict[str, Rating]:
        """All of them, in the order in which they were given."""
        held = {name: Rating(float(one.mu), float(one.sigma)) for name, one in self._held.items()}
        return {
            name: before if name in self._fixed else held.get(name, before)
            for name, before in self._before.items()
        }

    def _get(self, name: str) -> Any:
        if name not in self._held:
            before = self._before[name]
            self._held[name] = self._model.rating(mu=before.mu, sigma=before.sigma)
        return self._held[name]


def check_installed() -> None:
    """Tell what is missing before the first match, not after the last."""
    _model()


@cache
def _model() -> Any:
    try:
        from openskill.models import BradleyTerryFull
    except ImportError as error:
        raise MissingDependency(
            'ratings need openskill: pip install "understudy[learn]"'
        ) from error
    return BradleyTerryFull(mu=MEAN, sigma=UNKNOWN, beta=BETA, tau=0.0)
