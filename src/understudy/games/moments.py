"""A frame as rewards see it, and weighted terms that add up without error.

A term counts what happened from each player's side; the sign of its weight says whether that is
good. What a term adds to a frame's reward (its *part*) is a multiple of `QUANTUM`, and float32
holds every such multiple up to `LIMIT`. So as long as no sum leaves that range, adding parts up is
exact in any order: a match's sums by term add up to its return, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from understudy.core.ops import Array, Ops
from understudy.games.base import Game, State
from understudy.games.delay import Delayed, undelayed

QUANTUM = 2.0**-16
"""The smallest difference between two rewards."""
LIMIT = 2.0**24 * QUANTUM
"""256: float32 has 24 bits, so multiples of `QUANTUM` are exact as far as this from 0."""
_QUANTUM, _PER_QUANTUM = np.array(QUANTUM, np.float32), np.array(1 / QUANTUM, np.float32)
_ZERO = np.array(0, np.float32)


class Moment(NamedTuple):
    """One frame of B matches: where it began, where it led, and what the players chose."""

    game: Game
    before: State
    after: State
    actions: Array
    """int32 [players, parts, B]"""

    def undelayed(self) -> Moment:
        """The same moment of the game itself, for a game that is seen late (`games.delay`)."""
        game = self.game.game if isinstance(self.game, Delayed) else self.game
        return Moment(game, undelayed(self.before), undelayed(self.after), self.actions)


Term: TypeAlias = Callable[[Ops, Moment], Array]
"""float32 [players, B]: what happened in a frame, from each player's side."""

Potential: TypeAlias = Callable[[Ops, State], Array]
"""float32 [players, B]: how promising a state is for each player, whatever led there."""


@dataclass(frozen=True)
class RewardSet:
    """Terms by name. It can be hashed, since compiled programs are made for one; the weights are
    numbers that such a program is given, and may change from frame to frame."""

    names: tuple[str, ...]
    terms: tuple[Term, ...]

    @classmethod
    def of(cls, terms: Mapping[str, Term]) -> RewardSet:
        """The terms of a mapping, in its order."""
        return cls(tuple(terms), tuple(terms.values()))

    def values(self, ops: Ops, moment: Moment) -> Array:
        """Every term without its weight, float32 [K, players, B]."""
        if not self.terms:
            players, _, matches = moment.actions.shape
            return ops.xp.zeros((0, players, matches), ops.xp.float32)
        plain = moment.undelayed()
        return ops.xp.stack([term(ops, plain) for term in self.terms])

    def parts(self, ops: Ops, moment: Moment, weights: Array) -> Array:
        """What each term adds to the frame's reward, float32 [K, players, B], for weights float32
        [K]. The reward is `parts.sum(0)`.

        The barrier is what makes the sums exact under a compiler: without it, a part may be
        computed once for the reward and once for its own sum, in two ways that round differently.
        """
        weighted = self.values(ops, moment) * weights[:, None, None]
        return ops.barrier(quantised(ops, weighted))


class MeasureColumn(NamedTuple):
    """A column that the tables of training and `eval` have for a game's measures."""

    name: str
    """A measure; or the name of a ratio."""
    ratio: tuple[str, str] | None = None
    """The measures that a ratio divides: damage dealt by damage taken."""
    heading: str = ""
    """In the table that `eval` prints; empty: not printed there."""

    def value(self, measures: Mapping[str, float]) -> float | None:
        """From sums or means; None where a measure is missing or the ratio would divide by 0."""
        if self.ratio is None:
            return measures.get(self.name)
        upper, lower = (measures.get(name) for name in self.ratio)
        return upper / lower if upper is not None and lower else None


def quantised(ops: Ops, values: Array) -> Array:
    """The nearest multiples of `QUANTUM`; of two that are as near, the even one."""
    return ops.xp.rint(values * _PER_QUANTUM) * _QUANTUM


def blended(
    one: NDArray[np.float32], two: NDArray[np.float32], share: float
) -> NDArray[np.float32]:
    """Weights [K] on the way from one set (share 0) to another (share 1), both ends exact."""
    start = one.astype(np.float64)
    return (start + share * (two.astype(np.float64) - start)).astype(np.float32)


@dataclass(frozen=True)
class Shaped:
    """The term gamma * phi(after) - phi(before), with phi = 0 once a match is over.

    Discounted by the same gamma, a match of it adds up to -phi(start), whatever is played: it says
    early what is promising and leaves the best play what it was (Ng, Harada and Russell 1999).
    """

    potential: Potential
    gamma: float

    def __call__(self, ops: Ops, moment: Moment) -> Array:
        """float32 [players, B]"""
        after = self.potential(ops, moment.after)
        after = ops.xp.where(moment.game.over(ops, moment.after), _ZERO, after)
        return after * np.array(self.gamma, np.float32) - self.potential(ops, moment.before)


def own_reward(ops: Ops, moment: Moment) -> Array:
    """The game's own reward as one term: what a game without terms of its own is trained on."""
    return moment.game.reward(ops, moment.before, moment.after)
