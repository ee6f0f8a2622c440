"""The payoff matrix of a round robin: results of every pair, cycles among them, and standings.

The matrix is antisymmetric: what one player won, the other lost, and a draw is a win of neither.
Standings order the players by ratings on the scale of the anchors.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import FileFormatError
from understudy.league.ratings import Counts, Rating, rated_table
from understudy.match.tally import Tally

LONGEST = 4
"""Cycles longer than this are not looked for: nearly all of them contain a shorter one."""


@dataclass(frozen=True)
class Cycle:
    """Each beats the next, and the last one the first: no order of strength fits them all."""

    names: tuple[str, ...]
    """Of its rotations, the one that begins with the first of them in the matrix."""
    surety: float
    """The smallest of the lower bounds of their win rates: above 0.5, or it would be no cycle."""

    def __str__(self) -> str:
        return " > ".join((*self.names, self.names[0]))


@dataclass(frozen=True)
class Payoffs:
    """Results of pairs of players."""

    names: tuple[str, ...]
    wins: NDArray
    """int64 [N, N]: how often the row's player beat the column's."""
    draws: NDArray
    """int64 [N, N], symmetric."""
    distinct: NDArray
    """int64 [N, N], symmetric: different matches among all of a pair. Deterministic players can
    play one match many times."""

    @classmethod
    def of(
        cls,
        names: tuple[str, ...],
        results: Mapping[tuple[str, str], Counts],
        distinct: Mapping[tuple[str, str], int] | None = None,
    ) -> Payoffs:
        """From counts by pair, each pair once, from the first one's side; without `distinct` every
        match was another one."""
        place = {name: index for index, name in enumerate(names)}
        wins = np.zeros((len(names), len(names)), np.int64)
        draws, different = np.zeros_like(wins), np.zeros_like(wins)
        for (one, other), (won, drawn, lost) in results.items():
            i, j = place[one], place[other]
            wins[i, j] += won
            wins[j, i] += lost
            draws[i, j] += drawn
            draws[j, i] += drawn
            paths = won + drawn + lost if distinct is None else distinct[one, other]
            different[i, j] = different[j, i] = paths
        return cls(names, wins, draws, different)

    def tally(self, row: int, column: int) -> Tally:
        """How the row's player did against the column's."""
        return Tally(
            wins=int(self.wins[row, column]),
            draws=int(self.draws[row, column]),
            losses=int(self.wins[column, row]),
        )

    def total(self, row: int) -> Tally:
        """How the row's player did against all others together."""
        return Tally(
            wins=int(self.wins[row].sum()),
            draws=int(self.draws[row].sum()),
            losses=int(self.wins[:, row].sum()),
        )

    def pairs(self) -> dict[tuple[str, str], Counts]:
        """What `of` was given: every pair that met."""
        found = {}
        for i, one in enumerate(self.names):
            for j, other in enumerate(self.names[i + 1 :], i + 1):
                tally = self.tally(i, j)
                if tally.matches:
                    found[one, other] = (tally.wins, tally.draws, tally.losses)
        return found

    def lower_bounds(self) -> NDArray:
        """float64 [N, N]: the row's win rate against the column's is higher (Wilson, 95%)."""
        count = len(self.names)
        bounds = [[self.tally(i, j).interval[0] for j in range(count)] for i in range(count)]
        return np.array(bounds, np.float64).reshape(count, count)

    def cycles(self, *, longest: int = LONGEST) -> list[Cycle]:
        """All cycles of sure wins, the shortest first, of those the surest."""
        bounds = self.lower_bounds()
        found = [
            Cycle(
                names=tuple(self.names[index] for index in path),
                surety=min(
                    float(bounds[i, j]) for i, j in zip(path, (*path[1:], path[0]), strict=True)
                ),
            )
            for path in simple_cycles(bounds > 0.5, longest=longest)
        ]
        return sorted(found, key=lambda cycle: (len(cycle.names), -cycle.surety, cycle.names))


def simple_cycles(beats: NDArray, *, longest: int) -> Iterator[tuple[int, ...]]:
    """Every cycle through at most `longest` of a graph bool [N, N], once: from its lowest index."""
    onward = [np.flatnonzero(row).tolist() for row in beats]

    def extended(path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for index in onward[path[-1]]:
            if index == path[0]:
                yield path
            elif index > path[0] and index not in path and len(path) < longest:
                yield from extended((*path, index))

    for start in range(len(beats)):
        yield from extended((start,))


def read_payoffs(data: bytes, *, what: str) -> Payoffs:
    """From `payoffs.csv`, which has every pair twice, once from each side; `what` names the file.

    Raises:
        FileFormatError: A row that is none of such a file.
    """
    results: dict[tuple[str, str], Counts] = {}
    try:
        for row in csv.DictReader(io.StringIO(data.decode("utf-8"), newline="")):
            one, other = row["player"], row["opponent"]
            if (other, one) not in results:
                results[one, other] = int(row["wins"]), int(row["draws"]), int(row["losses"])
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise FileFormatError(
            f"{what}: expected player, opponent, wins, draws and losses in each row ({error!r})"
        ) from error
    names = tuple(dict.fromkeys(name for pair in results for name in pair))
    return Payoffs.of(names, results)


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
