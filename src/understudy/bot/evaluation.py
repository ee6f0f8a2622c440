"""Evaluation in a bot's own simulator: rules against a version on the same seeds.

Nothing is recorded, learned or counted as evidence. The interval of the difference holds for one
look and for many: it is a confidence sequence by betting (Waudby-Smith and Ramdas,
arXiv:2010.09686).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from understudy.bot.actions import Codec
from understudy.bot.match import Match, MatchPlayer
from understudy.core.arrays import NDArray
from understudy.core.errors import InputError
from understudy.core.statistics import STAKES, gains
from understudy.policy.policy import Policy

if TYPE_CHECKING:
    from understudy.bot.understudy import Understudy

PairedPlay: TypeAlias = Callable[[Match, int], object]
"""Plays one match from a seed; returns the outcome, (outcome, score), or None after `finish`."""
CONFIDENCE = 0.95
_HALVINGS = 20
"""Of the range in which a bound of the interval lies."""


@dataclass(frozen=True, kw_only=True)
class RulesComparison:
    """How a version does against the rules, on the same seeds. Results lie in [0, 1]."""

    version: int
    pairs: int
    rules: float
    """The mean result of the rules: of victories 1, of ties 1/2, or of scores."""
    policy: float
    """The mean result of the version."""
    low: float
    high: float
    """The 95% interval of the difference, version less rules."""
    faults: int = 0
    """Matches that the version lost because it failed in them."""

    @property
    def difference(self) -> float:
        """The mean result of the version less that of the rules."""
        return self.policy - self.rules

    def as_dict(self) -> dict[str, float | int]:
        """For JSON."""
        return {
            "version": self.version,
            "pairs": self.pairs,
            "rules": self.rules,
            "policy": self.policy,
            "difference": self.difference,
            "low": self.low,
            "high": self.high,
            "faults": self.faults,
        }

    def __str__(self) -> str:
        verdict = "no difference is shown"
        if self.low > 0.0 or self.high < 0.0:
            verdict = f"version {self.version} is {'better' if self.low > 0.0 else 'worse'}"
        faults = f"; it failed in {self.faults} matches" if self.faults else ""
        return (
            f"{self.pairs} seeds: rules {self.rules:.1%}, version {self.version} "
            f"{self.policy:.1%}; difference {100 * self.difference:+.1f} points "
            f"(95% interval {100 * self.low:+.1f} to {100 * self.high:+.1f}): {verdict}{faults}"
        )


class EvaluationMatch(Match):
    """A match that is judged and not kept."""

    def reward(self, amount: float) -> None:
        """Does nothing: nothing is learned from this match."""

    def _keep(self) -> bool:
        self.kept = True
        self._close()
        return True

    def _wait(self) -> None:
        """Nothing is handed to a learner, so there is none to wait for."""


def evaluation_seeds(matches: int, seeds: Iterable[int] | None) -> list[int]:
    """As many seeds as there are matches."""
    if not isinstance(matches, int) or matches < 1:
        raise InputError(f"evaluate: matches: expected a whole number above 0, got {matches!r}")
    if seeds is None:
        fresh: list[int] = np.random.default_rng().integers(0, 2**31, matches).tolist()
        return fresh
    taken = list(islice(seeds, matches))
    if len(taken) < matches:
        raise InputError(f"evaluate: seeds: expected {matches} seeds, got {len(taken)}")
    wrong = [one for one in taken if not isinstance(one, int | np.integer) or one < 0]
    if wrong:
        raise InputError(f"evaluate: seeds: expected whole numbers, 0 or more, got {wrong[0]!r}")
    if len(set(taken)) < matches:
        raise InputError("evaluate: seeds: each may appear once: equal matches are no evidence")
    return [int(one) for one in taken]


def compare(
    mind: Understudy, play: PairedPlay, policy: Policy, seeds: Sequence[int], *, codec: Codec
) -> RulesComparison:
    """Plays each seed twice, and compares the results."""
    results = np.zeros((len(seeds), 2))
    faults = 0
    players = (MatchPlayer("rules"), MatchPlayer("canary", policy.version, policy))
    for row, seed in enumerate(seeds):
        for column, player in enumerate(players):
            rng = np.random.default_rng([seed, column])
            match = EvaluationMatch(mind, tags={}, player=player, codec=codec, rng=rng)
            with match:
                _finish(match, play(match, seed))
            faults += bool(match.fault)
            results[row, column] = 0.0 if match.fault else match.result
    rules, policy_mean = results.mean(0)
    low, high = paired_interval(results[:, 1] - results[:, 0], confidence=CONFIDENCE)
    return RulesComparison(
        version=policy.version,
        pairs=len(seeds),
        rules=float(rules),
        policy=float(policy_mean),
        low=low,
        high=high,
        faults=faults,
    )


def _finish(match: Match, returned: object) -> None:
    """Ends a match with what `play` returned, unless it called `finish`."""
    if match.outcome is not None:
        return
    outcome, score = returned if isinstance(returned, tuple) else (returned, None)
    if not isinstance(outcome, str):
        raise InputError(
            "evaluate: expected play(match, seed) to return an outcome such as 'victory' or "
            f"(outcome, score), or to call match.finish; it returned {returned!r}"
        )
    match.finish(outcome, score=score)


def paired_interval(differences: NDArray, *, confidence: float) -> tuple[float, float]:
    """The interval of the mean of `differences` [N] in [-1, 1], valid after every look.

    Against each possible mean two bets are made, that the true one is above and that it is below;
    the interval holds the means against which neither has won enough.
    """
    enough = math.log(2.0 / (1.0 - confidence))
    results = (np.asarray(differences, np.float64) + 1.0) / 2.0
    return 2.0 * _bound(results, enough) - 1.0, 1.0 - 2.0 * _bound(1.0 - results, enough)


def _bound(results: NDArray, enough: float) -> float:
    """The highest mean in [0, 1] against which the bet that the true one is above has won."""
    if _log_capital(gains(results, above=0.0)) < enough:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):  # the capital falls as the mean rises
        middle = (low + high) / 2.0
        won = _log_capital(gains(results, above=middle)) >= enough
        low, high = (middle, high) if won else (low, middle)
    return low


def _log_capital(gained: NDArray) -> float:
    """The logarithm of the mean capital over the stakes after these gains [N]."""
    logs = np.log1p(np.asarray(STAKES)[:, None] * gained).sum(1)
    return float(np.logaddexp.reduce(logs) - np.log(len(STAKES)))
