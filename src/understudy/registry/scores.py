"""Scores: how well versions played, pooled over neighbours until there are enough matches.

A version may last half a second and play one match, which says nothing about it. So the results of
consecutive versions are added up until `ENOUGH` matches (or segments of an endless match) are in;
then the next version begins the next score. All functions are pure. A manifest holds the scores of
the versions that are still there.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from understudy.core.statistics import wilson

ENOUGH = 40
"""Results in a finished score: at 40 matches a 95% interval is about 30 points wide."""
UNTRAINED = 0
"""The number of the policy before the first version. Its results are a score of their own: the
start that versions are compared with."""
_Z = 1.959964


class ScoreInterval(NamedTuple):
    """A mean and the 95% interval around it."""

    mean: float
    low: float
    high: float


class Score(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The results of the versions `first` to `last`."""

    first: int
    last: int
    matches: int = 0
    """Matches that ended with a result."""
    wins: int = 0
    """Of these; a draw is no win, here as in every win rate."""
    episodes: int = 0
    """Episodes without a result: segments of endless matches, or whole matches of environments."""
    reward: float = 0.0
    """Sum over those of the mean reward a decision (of environments: of the return)."""
    squares: float = 0.0
    """The same sum of squares."""
    rewarded: int = 0
    """Matches with a result whose reward is known; those of older runs are not."""
    returns: float = 0.0
    """Sum over those of the reward of the whole match."""
    return_squares: float = 0.0
    """The same sum of squares."""
    closed: bool = False
    """No later version is added, however few results there are: another line begins after it."""

    @property
    def full(self) -> bool:
        """Whether there are enough results to judge by."""
        return self.matches >= ENOUGH or self.episodes >= ENOUGH

    @property
    def win_rate(self) -> ScoreInterval | None:
        """With Wilson's interval; None where there are too few matches."""
        if self.matches < ENOUGH:
            return None
        return ScoreInterval(self.wins / self.matches, *wilson(self.wins, self.matches))

    @property
    def mean_reward(self) -> ScoreInterval | None:
        """With a normal interval over episodes; None where there are too few."""
        return _mean(self.episodes, self.reward, self.squares)

    @property
    def mean_return(self) -> ScoreInterval | None:
        """Of whole matches with a result, with a normal interval; None where there are too few."""
        return _mean(self.rewarded, self.returns, self.return_squares)


def with_match(
    scores: Sequence[Score], version: int, *, won: bool, reward: float
) -> tuple[Score, ...]:
    """The scores after a match of `version` that ended with a result and this reward in all."""
    more = Score(
        first=version,
        last=version,
        matches=1,
        wins=int(won),
        rewarded=1,
        returns=reward,
        return_squares=reward * reward,
        closed=version == UNTRAINED,
    )
    return _added(scores, version, more)


def with_rewards(
    scores: Sequence[Score], version: int, rewards: Sequence[float]
) -> tuple[Score, ...]:
    """The scores after episodes of `version` without a result, each with its mean reward."""
    more = Score(
        first=version,
        last=version,
        episodes=len(rewards),
        reward=math.fsum(rewards),
        squares=math.fsum(reward * reward for reward in rewards),
        closed=version == UNTRAINED,
    )
    return _added(scores, version, more) if rewards else tuple(scores)


def closed(scores: Sequence[Score]) -> tuple[Score, ...]:
    """The same scores, none of which a later version is added to."""
    return tuple(msgspec.structs.replace(one, closed=True) for one in scores)


def thinned(scores: Sequence[Score], versions: Collection[int]) -> tuple[Score, ...]:
    """The scores that are of a version that is still there; the newest stays in any case, and so
    does that of the start: later ones are compared with it."""
    always = (scores[-1], start(scores)) if scores else ()
    return tuple(one for one in scores if one in always or newest_within(one, versions) is not None)


def start(scores: Sequence[Score]) -> Score | None:
    """The first score with enough results; None: there is none yet."""
    return next((one for one in scores if one.full), None)


def score_of(scores: Sequence[Score], version: int) -> Score | None:
    """The score that a version is part of, finished or not."""
    return next((one for one in scores if one.first <= version <= one.last), None)


def judged(scores: Sequence[Score]) -> list[tuple[Score, ScoreInterval]]:
    """The scores that can be compared, in their order.

    By win rate, where any score has one: a reward says less, and the two do not compare. The
    untrained policy is no version that can be gone back to.
    """
    scores = [one for one in scores if one.last > UNTRAINED]
    rates = [(one, rate) for one in scores if (rate := one.win_rate) is not None]
    if rates:
        return rates
    return [(one, mean) for one in scores if (mean := one.mean_reward) is not None]


def best_versions(scores: Sequence[Score], versions: Collection[int]) -> list[int]:
    """The newest version of each score, by how good that score is *at least*, best first.

    The lower end of the interval, so that a lucky streak does not win over a long good record.
    """
    ranked = sorted(judged(scores), key=lambda one: (one[1].low, one[0].last), reverse=True)
    found = (newest_within(score, versions) for score, _ in ranked)
    return [version for version in found if version is not None]


def last_good(
    scores: Sequence[Score], versions: Collection[int], *, before: int
) -> tuple[int, Score] | None:
    """The last version that played well before `before` and its own score; None: none is known.

    *Well* is a mean that is no worse than the lower end of the best score's interval.
    """
    known = judged(scores)
    if not known:
        return None
    bar = max(interval.low for _, interval in known)
    for score, interval in sorted(known, key=lambda one: one[0].last, reverse=True):
        version = newest_within(score, versions)
        if score.last < before and version is not None and interval.mean >= bar:
            return version, score
    return None


def newest_within(score: Score, versions: Collection[int]) -> int | None:
    """The newest of these versions that the score is of."""
    return max((n for n in versions if score.first <= n <= score.last), default=None)


def _added(scores: Sequence[Score], version: int, more: Score) -> tuple[Score, ...]:
    """In the order of versions. A version that has a score adds to it, also to a finished one: it
    plays again after a rollback. A newer one adds to the last score until that is full."""
    ordered = sorted((*scores, more), key=lambda one: (one.first, one.last))
    for index, one in enumerate(scores):
        newest = index == len(scores) - 1 and one.last < version
        if one.first <= version <= one.last or (newest and not one.full and not one.closed):
            return (*scores[:index], _sum(one, more), *scores[index + 1 :])
    return tuple(ordered)


def _sum(one: Score, more: Score) -> Score:
    return Score(
        first=one.first,
        last=max(one.last, more.last),
        matches=one.matches + more.matches,
        wins=one.wins + more.wins,
        episodes=one.episodes + more.episodes,
        reward=one.reward + more.reward,
        squares=one.squares + more.squares,
        rewarded=one.rewarded + more.rewarded,
        returns=one.returns + more.returns,
        return_squares=one.return_squares + more.return_squares,
        closed=one.closed,
    )


def _mean(count: int, total: float, squares: float) -> ScoreInterval | None:
    if count < ENOUGH:
        return None
    mean = total / count
    spread = math.sqrt(max(0.0, squares / count - mean * mean))
    margin = _Z * spread / math.sqrt(count)
    return ScoreInterval(mean, mean - margin, mean + margin)
