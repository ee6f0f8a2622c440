"""Ratings: how strong all players are, estimated together, and how sure that is.

Bradley and Terry's model: the odds of a win are exp(difference / (sqrt(2) BETA)), a draw is half a
win. What is known of all players is one normal distribution, a mean and a *covariance* (`Joint`).
Anchors are exact, so they hold the scale.

    joint = grown(joint, LEARNER, TREND)               # an iteration: the learner may have changed
    joint = observed(joint, results, fixed=anchors)    # its results
    joint = copied(joint, LEARNER, "step-65536")       # a snapshot *is* the learner of this moment

The covariance is what makes intervals true once the learner has outgrown the anchors. From there on
strength is known through a chain: the learner beats a snapshot, which beat an older one, down to
one that still lost to an anchor. Errors along the chain add up, and the covariance carries them. A
snapshot with an uncertainty of its own, independent of the learner's, makes each link look certain.

The learner's change per iteration is estimated with it (`TREND`). Without it a steady climb looks
like noise around a standstill, and each link of the chain is rated a little too short: simulated,
with 30 matches an iteration, that was 300 points after a climb of 2,500, at a stated +- 124.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec
import numpy as np

from understudy.core import statistics
from understudy.core.arrays import NDArray

Counts: TypeAlias = tuple[int, int, int]
"""Wins, draws and losses."""

MEAN, BETA = statistics.RATING_MEAN, statistics.RATING_LUCK
"""Where everyone begins; and how much luck one match has, in the same units."""
_SCALE = math.sqrt(2.0) * BETA
UNKNOWN = 40.0
"""The standard deviation of a player that never played: 1,180 points. Bots lie up to 60 apart, and
a learner can climb as far above them. Where results say little, intervals are as wide as this."""
TAU = 0.4
"""How much the learner changes by chance in an iteration, a standard deviation."""
TREND_SPREAD = 1.0
"""What its steady change per iteration may be at first, a standard deviation."""
TREND_STEP = 0.1
"""How much that may itself change in an iteration; simulated climbs, standstills and falls of 12 to
300 matches an iteration were all followed with it (tests/league/test_coverage.py)."""
TREND_DECAY = 0.5 ** (1.0 / 50.0)
"""A change that no result confirms is halved in fifty iterations: who wins every match against
every anchor is not rated up for ever."""
_STEPS, _CLOSE = 60, 1e-9


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
"""A player that holds a scale alone: 1000 points by definition."""


@dataclass(frozen=True)
class Joint:
    """What is known of N players together: a normal distribution."""

    names: tuple[str, ...]
    mean: NDArray
    """float64 [N]."""
    covariance: NDArray
    """float64 [N, N]."""

    @classmethod
    def of(cls, ratings: Mapping[str, Rating]) -> Joint:
        """Players whose ratings have nothing to do with each other."""
        return cls(
            tuple(ratings),
            np.array([one.mu for one in ratings.values()], np.float64),
            np.diag([one.sigma**2 for one in ratings.values()]),
        )

    def ratings(self) -> dict[str, Rating]:
        """Each one's own."""
        # Rounding can leave a variance that is known to be almost nothing just below it.
        sigma = np.sqrt(np.maximum(np.diag(self.covariance), 1e-12))
        pairs = zip(self.mean.tolist(), sigma.tolist(), strict=True)
        return dict(zip(self.names, (Rating(*pair) for pair in pairs), strict=True))


def grown(joint: Joint, one: str, trend: str) -> Joint:
    """After an iteration in which `one` may have changed, by `trend` per iteration and by chance.

    Never less known than a player that never played: more spread than that is taken back, as if the
    player had been seen where it is thought to be.
    """
    player, change = joint.names.index(one), joint.names.index(trend)
    mean, spread = joint.mean.copy(), joint.covariance.copy()
    mean[change] *= TREND_DECAY
    spread[change] *= TREND_DECAY
    spread[:, change] *= TREND_DECAY
    spread[change, change] += TREND_STEP**2
    mean[player] += mean[change]
    spread[player] += spread[change]
    spread[:, player] += spread[:, change]
    spread[player, player] += TAU**2
    known = spread[player, player]
    if known > UNKNOWN**2:
        shared = spread[:, player].copy()
        spread -= np.outer(shared, shared) * (1.0 - UNKNOWN**2 / known) / known
    return replace(joint, mean=mean, covariance=spread)


def copied(joint: Joint, one: str, name: str) -> Joint:
    """With a player more, which is as strong as `one` is now, whatever that turns out to be."""
    order = [*range(len(joint.names)), joint.names.index(one)]
    return Joint((*joint.names, name), joint.mean[order], joint.covariance[np.ix_(order, order)])


def joined(joint: Joint, newcomers: Mapping[str, Rating]) -> Joint:
    """With players more, of whom nothing has to do with the others yet."""
    added = Joint.of(newcomers)
    both, old = (*joint.names, *added.names), len(joint.names)
    spread = np.zeros((len(both), len(both)))
    spread[:old, :old], spread[old:, old:] = joint.covariance, added.covariance
    return Joint(both, np.concatenate([joint.mean, added.mean]), spread)


def without(joint: Joint, names: Collection[str]) -> Joint:
    """Fewer players; what their results said about the others stays known."""
    order = [place for place, name in enumerate(joint.names) if name not in names]
    kept = tuple(joint.names[place] for place in order)
    return Joint(kept, joint.mean[order], joint.covariance[np.ix_(order, order)])


def observed(
    joint: Joint, results: Mapping[tuple[str, str], Counts], *, fixed: Mapping[str, Rating]
) -> Joint:
    """After matches of pairs, counted from the first one's side; `fixed` players are exact.

    Laplace's approximation: the most likely strengths given all results and what was known, and a
    normal distribution around them as sharp as the likelihood is there. Against a much weaker
    player that is hardly sharp at all, so wins that were certain say little. Newton's method works
    in the space of the M pairs (Rasmussen and Williams, Gaussian Processes for Machine Learning,
    algorithm 3.1), which is far smaller than that of the N players.
    """
    met = {pair: counts for pair, counts in results.items() if any(counts)}
    if not met:
        return joint
    place = {name: index for index, name in enumerate(joint.names)}
    sides = np.zeros((len(met), len(place)))  # [M, N]: who is compared with whom
    offset = np.zeros(len(met))
    for row, pair in enumerate(met):
        for name, sign in zip(pair, (1.0, -1.0), strict=True):
            if name in fixed:
                offset[row] += sign * fixed[name].mu
            else:
                sides[row, place[name]] += sign
    counted = np.array(list(met.values()), np.float64)
    matches, score = counted.sum(1), counted[:, 0] + 0.5 * counted[:, 1]
    reach = joint.covariance @ sides.T  # [N, M]
    prior = sides @ reach  # [M, M]
    pull, sharp = _most_likely(sides @ joint.mean + offset, prior, matches, score)
    root = np.sqrt(sharp)
    lower = np.linalg.cholesky(np.eye(len(met)) + root[:, None] * prior * root)
    known = np.linalg.solve(lower, root[:, None] * reach.T)  # [M, N]
    spread = joint.covariance - known.T @ known
    return replace(joint, mean=joint.mean + reach @ pull, covariance=0.5 * (spread + spread.T))


def _most_likely(
    expected: NDArray, prior: NDArray, matches: NDArray, score: NDArray
) -> tuple[NDArray, NDArray]:
    """The mode of M differences with mean `expected` [M] and covariance `prior` [M, M]: the pull of
    the results, `prior^-1 (mode - expected)` [M], and the likelihood's curvature [M] there."""

    def height(pull: NDArray) -> float:
        away = prior @ pull
        odds = (expected + away) / _SCALE
        return float(np.sum(score * odds - matches * np.logaddexp(0.0, odds)) - 0.5 * pull @ away)

    def curved(pull: NDArray) -> tuple[NDArray, NDArray]:
        chance = 0.5 * (1.0 + np.tanh(0.5 * (expected + prior @ pull) / _SCALE))
        return (score - matches * chance) / _SCALE, matches * chance * (1.0 - chance) / _SCALE**2

    pull = np.zeros_like(expected)
    for _ in range(_STEPS):
        slope, sharp = curved(pull)
        root = np.sqrt(sharp)
        wanted = sharp * (prior @ pull) + slope
        inner = np.eye(len(pull)) + root[:, None] * prior * root
        step = wanted - root * np.linalg.solve(inner, root * (prior @ wanted)) - pull
        # Concave: a step that is short enough gains. A whole one can overshoot.
        while height(pull + step) < height(pull) - _CLOSE:
            step = 0.5 * step
        pull = pull + step
        if np.max(np.abs(prior @ step)) < _CLOSE:
            break
    return pull, curved(pull)[1]


def rated_table(
    results: Mapping[tuple[str, str], Counts], *, fixed: Mapping[str, Rating]
) -> dict[str, Rating]:
    """Everyone in a table of pairs. Where none of them is fixed, their mean is the origin, and
    intervals are those of the distance to it."""
    names = list(dict.fromkeys(name for pair in results for name in pair))
    free = {name: Rating() for name in names if name not in fixed}
    joint = observed(Joint.of(free), results, fixed=fixed)
    if len(free) == len(names):
        centre = np.eye(len(names)) - 1.0 / len(names)
        mean = MEAN + centre @ joint.mean
        joint = replace(joint, mean=mean, covariance=centre @ joint.covariance @ centre)
    found = joint.ratings() | {name: fixed[name] for name in names if name in fixed}
    return {name: found[name] for name in names}
