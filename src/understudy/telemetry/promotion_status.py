"""The promotion of a run as one plain struct: who plays, what is tried, and what is known of it.

`understudy.promotion.report` makes it from the promotion log.
"""

from __future__ import annotations

from typing import Literal

import msgspec


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
    """How a test ends if both arms go on as they did so far."""

    kind: Literal["better", "worse", "undecided"]
    matches: int
    """So many more."""
    seconds: float | None = None
    """At the pace of the last matches; None: it is not known."""


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
    """None: too few matches to say."""

    @property
    def matches(self) -> int:
        """Of both arms; of a simulator pairs."""
        return (
            self.canary.matches if self.simulator else self.canary.matches + self.incumbent.matches
        )


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
    def plays(self) -> int | None:
        """The version that plays, beside tests and the holdout; 0: the rules. None: the newest."""
        if self.pinned is not None:
            return self.pinned
        return None if self.policy == "latest" else self.incumbent
