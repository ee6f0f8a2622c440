"""The promotion of a run as one plain struct: who plays, what is tried, and what is known of it.

`understudy.promotion.report` makes it from the promotion log.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

_MATCH = re.compile(r"(?<![\w/.-])match(es)?\b(?![/-])")
"""The word, but not in a path."""

Stage: TypeAlias = Literal["shadow", "cameos", "practice", "canary", "champion", "pinned", "latest"]


class ArmResult(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one version in assigned matches; version 0 is the rules."""

    version: int
    stratum: str = ""
    """`opponent=Zerg map=Acropolis`; empty: all matches."""
    matches: int = 0
    mean: float = 0.0
    """A win counts 1, a tie one half; or the share of the declared score."""
    low: float = 0.0
    high: float = 1.0
    """The 95% interval, for one look."""


class ExpectedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """When a test ends, and how, under an assumption: what simulated futures of it come to."""

    kind: Literal["better", "worse", "undecided"]
    """How most of them end."""
    matches: int
    """So many more, in half of them."""
    fewest: int = 0
    """One of ten ends before so many more…"""
    most: int = 0
    """…and one of ten after so many."""
    better: float = 0.0
    """Share of them that end with a promotion; of a recheck, as kept by evidence."""
    worse: float = 0.0
    """Share of them that end because the version is worse."""
    assumption: str = ""
    """In words."""
    seconds: float | None = None
    """Of `matches`, at the pace of the last matches; None: it is not known."""
    pace: float | None = None
    """Matches an hour that count for the test; None: not known."""


class TrialStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A test of a version against the incumbent, or a recheck of a champion against the rules."""

    number: int
    """Of the record that opened it."""
    recheck: bool
    simulator: bool = False
    """It is judged by pairs of simulated matches."""
    since: float
    """When it was opened, in seconds since 1970."""
    version: int
    against: int
    canary: ArmResult
    incumbent: ArmResult
    better: float
    """Evidence that the version is better, and how much is enough."""
    better_enough: float
    worse: float
    """Evidence that it is worse, and how much is enough."""
    worse_enough: float
    share: float
    """The probability with which the next match is its own; 0: the test is suspended."""
    short: int
    """Matches after which it ends once `better` is below `hopeless`."""
    hopeless: float
    long: int
    """Matches after which it ends, unless `better` has reached `promising`…"""
    promising: float | None
    """None: it ends then in any case."""
    longest: int
    """…and after which it ends anyway."""
    asks: bool = False
    """It is better by evidence, and waits for a person."""
    interval: tuple[float, float] | None = None
    """Of the difference between both, valid after every match."""
    confidence: float = 0.9
    expected: ExpectedVerdict | None = None
    """None: it waits for a person, or has too few pairs."""

    @property
    def matches(self) -> int:
        """Of both arms; of a simulator pairs."""
        return (
            self.canary.matches if self.simulator else self.canary.matches + self.incumbent.matches
        )


class PracticeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The newest version plays a share of matches to learn; they count for no test."""

    version: int
    """What practised last."""
    share: float
    """The probability with which the next match is practice, given that it is not of the holdout;
    0: there is none now."""
    suspended: int = 0
    """Matches without practice from now on, since it was worse."""
    mean: float = 0.0
    """The mean of recent results, the older the lighter, since practice last began."""
    matches: int = 0
    incumbent_mean: float = 0.0
    """That of the incumbent in matches that might have been practice."""
    incumbent_matches: int = 0
    played: int = 0
    """Matches of practice in all that have a result; they are in no other figure."""
    played_mean: float = 0.0
    """The mean result of all those, each with the same weight."""
    recent: int = 50
    """The means of recent results are of about so many matches."""
    in_a_row: int = 0
    """Suspensions that followed each other."""
    needed: int = 0
    """Matches of each before they are compared."""
    worse: float = 1.0
    """Evidence that practice is worse, and how much suspends it."""
    worse_enough: float = 4.0

    @property
    def missing(self) -> int:
        """Matches of the one that has fewer before both are compared."""
        return max(self.needed - min(self.matches, self.incumbent_matches), 0)

    @property
    def compared(self) -> bool:
        """Whether both have enough matches."""
        return not self.missing

    @property
    def promising(self) -> bool:
        """Whether practice looks better than the incumbent: only then a version is tried."""
        return self.compared and not self.suspended and self.mean > self.incumbent_mean


class VerdictNote(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict of the promotion gate or of a person."""

    number: int
    """Of the record at which it fell."""
    at: float
    version: int
    kind: str
    words: str


class PromotionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Who plays the matches of mode `auto`, and what is known of the versions that were tried."""

    incumbent: int
    """The champion by evidence; 0: the rules."""
    served: bool = False
    """A server assigns segments of its clients' decisions: the words say segments for matches."""
    stage: Stage = "shadow"
    line: str = ""
    """Who plays, why, and what would change it, in one line (`promotion_stage`)."""
    why: str = ""
    pinned: int | None = None
    """The version that a person pinned as champion: it plays every match."""
    policy: str = "auto"
    paused: bool = False
    """By a person, or by `promotion.policy`."""
    holdout: float = 0.0
    """Share of matches that the rules play beside a champion."""
    tests: tuple[TrialStatus, ...] = ()
    """The recheck of the champion, if there is one, and the test of a version."""
    promise: float = 0.0
    """The mean result that the champion is held to; 0: not known yet."""
    practice: PracticeStatus | None = None
    """None: no version has practised yet."""
    practice_share: float = 0.0
    """`promotion.practice_share`."""
    newest: int | None = None
    """The newest version; 0: none is published yet. None: not known."""
    agreement: float | None = None
    """Share of the rules' decisions that the newest version agrees with, in their last matches;
    None: not known."""
    agreement_enough: float = 0.9
    """The agreement at which practice begins."""
    learned: int | None = None
    """Matches that the newest version has learned from; None: not known, or practice has begun."""
    learned_enough: int = 300
    """Practice begins with so many too, whatever the agreement. 0: no number of them is enough."""
    compared_enough: int = 0
    """Of a server: practice begins once so many decisions of the rules were compared with those of
    trained versions, whatever the agreement."""
    cameo_share: float = 0.0
    """`promotion.cameo_share`."""
    never: str = ""
    """Why no verdict is due as things are; empty: one is."""
    next_test: ExpectedVerdict | None = None
    """Of a test that would begin now, where none runs."""
    waits: str = ""
    """Why no version is tried, in a few words; empty: not known. Only a bot knows it."""
    cool_down: int = 0
    """Matches after a rollback before another version is tested."""
    open: int = 0
    """Matches that were assigned and have no result yet."""
    waiting: int = 0
    """Matches that have one and wait for an earlier one, since they count in their order."""
    matches: int = 0
    """Matches that were assigned."""
    matches_per_hour: float | None = None
    results: tuple[ArmResult, ...] = ()
    """By version, then by version and stratum; the most played."""
    verdicts: tuple[VerdictNote, ...] = ()
    """The last few, oldest first."""

    @property
    def practice_now(self) -> float:
        """The probability of practice in the next match, given that it is not of the holdout."""
        return 0.0 if self.practice is None else self.practice.share

    def in_units(self, text: str) -> str:
        """Words about matches, with what this run has instead: segments, if it is served."""
        return in_units(text, served=self.served)

    @property
    def plays(self) -> int | None:
        """The version that plays, beside tests and the holdout; 0: the rules. None: the newest."""
        if self.pinned is not None:
            return self.pinned
        return None if self.policy == "latest" else self.incumbent


def in_units(text: str, *, served: bool) -> str:
    """Words about matches; of a run that is `served`, about segments of its clients' decisions."""
    if not served:
        return text
    return _MATCH.sub(lambda found: "segments" if found[1] else "segment", text)
