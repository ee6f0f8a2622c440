"""Standings: who came where in a round robin, with ratings on the scale that the anchors hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from understudy.league.payoffs import Payoffs
from understudy.league.ratings import Rating, rated_table
from understudy.match.tally import Tally


@dataclass(frozen=True)
class Standing:
    """One player's place."""

    name: str
    tally: Tally
    """Against all others together."""
    distinct: int
    """Different matches among them."""
    rating: Rating
    fixed: bool
    """An anchor: its rating was known before, and holds the others' in place."""

    @property
    def points(self) -> float:
        """One for a win, half for a draw."""
        return self.tally.wins + 0.5 * self.tally.draws

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "name": self.name,
            "points": self.points,
            **self.tally.as_dict(),
            "distinct": self.distinct,
            "rating": self.rating.as_dict(),
            "fixed": self.fixed,
        }


def standings(payoffs: Payoffs, anchors: Mapping[str, Rating]) -> list[Standing]:
    """Everyone in a round robin, by points, then by rating; anchors that take part stay fixed.

    Without any anchor among them, ratings compare only these players with each other.
    """
    ratings = rated_table(payoffs.pairs(), fixed=anchors)
    places = [
        Standing(
            name,
            payoffs.total(row),
            int(payoffs.distinct[row].sum()),
            ratings[name],
            fixed=name in anchors,
        )
        for row, name in enumerate(payoffs.names)
    ]
    return sorted(places, key=lambda one: (-one.points, -one.rating.mu, one.name))
