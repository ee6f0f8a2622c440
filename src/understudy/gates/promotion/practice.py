"""Practice: the newest version plays a share of whole matches, only to learn. Pure.

A match of practice counts for no test, no record, no promise and no alarm, and is never evidence
for a promotion. The coin that gives a match to practice also makes its results comparable with
those of the incumbent, so practice is suspended once the evidence that it is worse is enough: for
50 matches, and twice as long each time while suspensions follow each other, up to 400. Then it
begins anew, with another version and without the old evidence.

The evidence is that of a test (`evidence`), with the bets against practice alone. Where practice
has shown that it is not worse, the evidence begins anew too: a learner that breaks down later need
not lose first what it won before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from understudy.core.statistics import STAKES
from understudy.gates.promotion.records import Assigned
from understudy.gates.promotion.running import ResolvedMatch, name_of

SUSPENSIONS = (50, 100, 200, 400)
"""Matches without practice, after so many suspensions in a row."""
_IN_A_ROW = 100
"""Suspensions follow each other if practice played fewer matches than this in between."""
_RENEWED = 0.1
"""Evidence below it begins anew. So practice that is better by 20 points for 1,000 matches and then
worse by 25 is suspended after 230 more, and equal practice once in 4,000 matches
(`benchmarks/promotion_gate.py`). Without it the first mostly took more than 1,000."""
_KEPT = 0.98
"""What a result of an arm still weighs after the next one of that arm: about 50 of them count."""
RECENT_MATCHES = round(1.0 / (1.0 - _KEPT))
"""A mean with those weights is of about so many matches."""
_PRIOR_WEIGHT = 2.0
"""The forecast begins at one half, counted as so many matches."""
LEARNED_MATCHES = 300
"""A version that has learned from so many practises without agreement: it never agrees with rules
that vary at random."""
UNAGREED_DECISIONS = 12_000
"""Decisions of the rules with which trained versions were compared, after which practice begins
without agreement: rules that vary at random are never agreed with. A minute at 200 decisions a
second, as many as 300 short matches of a bot have. Segments are no measure: they have 128 decisions
in a fast game, and 10 in a slow one."""
FEWEST_COMPARED = 20
"""Matches of each arm before practice is compared with the incumbent."""
_NO_EVIDENCE = (1.0,) * len(STAKES)
PracticeChange: TypeAlias = Literal["suspended", "practising"]


@dataclass(frozen=True)
class RecentResults:
    """Results of one arm, the older the lighter."""

    matches: int = 0
    weight: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    weights_squared: float = 0.0

    @property
    def mean(self) -> float:
        """0 without a match."""
        return self.total / self.weight if self.matches else 0.0

    def with_result(self, result: float) -> RecentResults:
        return RecentResults(
            self.matches + 1,
            _KEPT * self.weight + 1.0,
            _KEPT * self.total + result,
            _KEPT * self.squares + result * result,
            _KEPT * _KEPT * self.weights_squared + 1.0,
        )

    @property
    def error(self) -> float:
        """The standard error of the mean; infinite with fewer than two matches."""
        if self.matches < 2:
            return math.inf
        effective = self.weight**2 / self.weights_squared
        variance = max(self.squares / self.weight - self.mean**2, 0.0)
        return math.sqrt(variance / max(effective - 1.0, 1.0))


@dataclass(frozen=True)
class PracticeArm:
    """What is known of practice."""

    begun: bool = False
    """A match of practice was assigned, ever."""
    version: int = 0
    """What practised last."""
    against: int = 0
    """The incumbent that it is compared with."""
    capital: tuple[float, ...] = _NO_EVIDENCE
    """Of each stake: what a capital of 1 became by bets that practice is worse."""
    recent: RecentResults = RecentResults()
    """Of practice, since it began anew."""
    incumbent: RecentResults = RecentResults()
    """Of the incumbent in matches that might have been practice."""
    suspended: int = 0
    """Matches without practice from now on."""
    in_a_row: int = 0
    """Suspensions that followed each other."""

    @property
    def worse(self) -> float:
        """The evidence that practice is worse than the incumbent."""
        return sum(self.capital) / len(self.capital)

    @property
    def promising(self) -> bool:
        """Whether practice looks better than the incumbent: a reason to test a version, never to
        promote it."""
        enough = min(self.recent.matches, self.incumbent.matches) >= FEWEST_COMPARED
        return enough and not self.suspended and self.recent.mean > self.incumbent.mean

    @property
    def lead(self) -> float:
        """By how many standard errors the mean of practice is above that of the incumbent."""
        error = math.hypot(self.recent.error, self.incumbent.error)
        difference = self.recent.mean - self.incumbent.mean
        if error == 0.0:
            return math.copysign(math.inf, difference) if difference else 0.0
        return difference / error


class PracticeVerdict(NamedTuple):
    """A change of practice, and the number of the match that brought it."""

    sequence: int
    version: int
    kind: PracticeChange
    words: str


def first_match(sequence: int, assigned: Assigned) -> PracticeVerdict:
    """The verdict with which practice begins."""
    words = f"the newest plays {assigned.practice:.0%} of matches to learn; they count for no test"
    return PracticeVerdict(sequence, assigned.version, "practising", words)


def anew(arm: PracticeArm) -> PracticeArm:
    """Practice after its results have lost their meaning: other rules, or another scale."""
    return replace(
        arm, capital=_NO_EVIDENCE, recent=RecentResults(), incumbent=RecentResults(), in_a_row=0
    )


def practised(
    arm: PracticeArm, matches: Sequence[ResolvedMatch], *, harm: float, since: int
) -> tuple[PracticeArm, list[PracticeVerdict]]:
    """Practice after these matches, and what changed on the way.

    `harm`: the evidence at which it is suspended. Matches up to record `since` are compared with
    nothing: other rules played them, or another scale measured them.
    """
    verdicts: list[PracticeVerdict] = []
    for number, assigned, resolved in matches:
        if arm.suspended:
            if assigned.arm != "practice":  # those were assigned before
                arm = replace(arm, suspended=arm.suspended - 1)
                if not arm.suspended:
                    arm = replace(arm, capital=_NO_EVIDENCE, recent=RecentResults())
                    words = "the newest version practises again"
                    verdicts.append(PracticeVerdict(number, arm.version, "practising", words))
        elif assigned.practice and assigned.arm in ("practice", "incumbent") and number > since:
            arm = _after_match(arm, assigned, resolved.result)
            if arm.worse >= harm:
                words = _words(arm, harm)
                arm = _suspended(arm)
                words = f"{words}; no practice for {arm.suspended} matches"
                verdicts.append(PracticeVerdict(number, arm.version, "suspended", words))
    return arm, verdicts


def _after_match(arm: PracticeArm, assigned: Assigned, result: float) -> PracticeArm:
    practises = assigned.arm == "practice"
    if not practises and assigned.version != arm.against:
        arm = replace(
            arm, against=assigned.version, capital=_NO_EVIDENCE, incumbent=RecentResults()
        )
    gain = _gain_against(arm, assigned, result)
    capital = tuple(
        one * (1.0 + stake * gain) for one, stake in zip(arm.capital, STAKES, strict=True)
    )
    if sum(capital) < _RENEWED * len(capital):
        capital = _NO_EVIDENCE
    if practises:
        recent = arm.recent.with_result(result)
        return replace(arm, version=assigned.version, capital=capital, recent=recent)
    return replace(arm, capital=capital, incumbent=arm.incumbent.with_result(result))


def _gain_against(arm: PracticeArm, assigned: Assigned, result: float) -> float:
    """What an even bet on "practice is worse" gains, in [-1, 1]: `evidence.gains` of one match."""
    to_incumbent = (1.0 - assigned.practice) * (1.0 - assigned.share)
    share = assigned.practice / (assigned.practice + to_incumbent)
    recent, incumbent = arm.recent, arm.incumbent
    weight = recent.weight + incumbent.weight + _PRIOR_WEIGHT
    forecast = (recent.total + incumbent.total + 0.5 * _PRIOR_WEIGHT) / weight
    side = (float(assigned.arm == "practice") - share) / max(share, 1.0 - share)
    return -side * (result - forecast) / max(forecast, 1.0 - forecast)


def _suspended(arm: PracticeArm) -> PracticeArm:
    in_a_row = 1 + (arm.in_a_row if arm.recent.matches < _IN_A_ROW else 0)
    length = SUSPENSIONS[min(in_a_row, len(SUSPENSIONS)) - 1]
    return replace(arm, suspended=length, in_a_row=in_a_row)


def _words(arm: PracticeArm, harm: float) -> str:
    return (
        f"worse than {name_of(arm.against)}; practice: {arm.recent.mean:.0%} recently in "
        f"{arm.recent.matches} matches, {name_of(arm.against)}: {arm.incumbent.mean:.0%} in "
        f"{arm.incumbent.matches}; evidence {arm.worse:.1f} (enough: {harm:g})"
    )
