"""The records of a run's promotion: what was assigned, how it ended, and what a person said.

They lie in one log (`understudy.promotion.log`), numbered in the order in which they were created;
`roles.fold` turns them into who plays. Nothing else is needed to recompute every verdict. Fields
may be added with a default; none is ever renamed.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import msgspec

Arm: TypeAlias = Literal["canary", "incumbent", "holdout", "practice"]
"""`holdout`: the rules play beside a champion, outside of the test. `practice`: the newest version
plays to learn, outside of the test too."""
PolicyName: TypeAlias = Literal["latest", "auto", "manual", "paused"]
Ending: TypeAlias = Literal["finished", "aborted", "vanished", "fault", "void"]
"""`vanished`: its session ended, or it was open for too long. `fault`: the version failed, and the
rules finished the match. `void`: nothing was decided in it, and it counts for no arm. The others
but `finished` count 0."""
Order: TypeAlias = Literal["approve", "stop", "pause", "resume"]
RULES = 0
"""The version number of the rules."""


class TrialSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one version is judged; kept with its nomination, so that a verdict can be recomputed."""

    alpha: float = 0.05
    spend: Literal["each", "reign"] = "each"
    """`reign`: all tests against one champion together have the chance `reign_alpha` to promote a
    version that is not better."""
    reign_alpha: float = 0.10
    first_share: float = 0.2
    """Of the first `first_canaries` matches of the canary; then `share`."""
    first_canaries: int = 10
    share: float = 0.5
    harm: float = 4.0
    """Evidence against the canary at which it is stopped."""
    harm_spread: float = 0.0
    """Of scores that differ little on their scale: evidence against the canary is judged on a scale
    of so many standard deviations of the results so far to both sides of their mean, and clipped
    there. It is then evidence that clipped scores are worse, and sooner. 0: on the whole scale, as
    evidence for the canary always is."""
    misfit: float = 1000.0
    """Evidence that the arms do not come as often as the coin says, at which the test is closed."""
    short: int = 100
    """Matches after which a test ends once its evidence is below `hopeless`. So tests of versions
    that are not better take half as many matches, and 1 of 150 versions that are better by 20
    points is lost by it."""
    hopeless: float = 0.2
    long: int = 300
    """Matches after which a test ends, unless its evidence has reached `promising`…"""
    promising: float = 2.0
    longest: int = 600
    """…and after which it ends anyway."""
    holdout: float = 0.1
    """Share of matches that the rules play beside a champion."""
    alarm: float = 1000.0
    """Evidence that a champion has fallen below its promise, at which it is rechecked."""
    cool_down: int = 50
    """Matches after a rollback without a test."""

    def __post_init__(self) -> None:
        for name in ("alpha", "reign_alpha", "first_share", "share"):
            if not 0.0 < (value := getattr(self, name)) < 1.0:
                raise ValueError(f"`{name}` is {value}: expected a number between 0 and 1")
        if not 0.0 <= self.holdout < 1.0:
            raise ValueError(f"`holdout` is {self.holdout}: expected at least 0 and below 1")
        for name in ("harm", "misfit", "promising", "alarm"):
            if not (value := getattr(self, name)) > 1.0:
                raise ValueError(f"`{name}` is {value}: expected evidence above 1")
        if not 1 <= self.long <= self.longest:
            raise ValueError(
                f"`long` is {self.long}: expected at least 1 and at most `longest` ({self.longest})"
            )
        if not 0.0 <= self.harm_spread < math.inf:
            raise ValueError(f"`harm_spread` is {self.harm_spread}: expected 0 or more")
        if not 0.0 <= self.hopeless < 1.0:
            raise ValueError(f"`hopeless` is {self.hopeless}: expected at least 0 and below 1")
        for name in ("first_canaries", "short", "cool_down"):
            if (value := getattr(self, name)) < 0:
                raise ValueError(f"`{name}` is {value}: expected 0 or more")


class _Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag=True, gc=False):
    at: float = 0.0
    """By the clock of the machine that wrote it; never compared with another machine's."""
    session: str = ""
    """The bot or command that wrote it: machine/process/random."""
    origin: str = ""
    """Of a record that a relay brought from another machine: machine/number, as the store and the
    log of that machine have it."""


class Declared(_Record, frozen=True, kw_only=True):
    """A bot opened the run. Other rules or another scale close the running test."""

    rules: str = ""
    score: tuple[float, float] | None = None
    policy: PolicyName = "auto"
    harm: float = 4.0
    """Evidence that practice is worse at which it is suspended (`promotion.harm`)."""

    def __post_init__(self) -> None:
        if not self.harm > 1.0:
            raise ValueError(f"`harm` is {self.harm}: expected evidence above 1")


class Nominated(_Record, frozen=True, kw_only=True):
    """A version is to be tested. Its test has the number of this record."""

    version: int
    experience: int = 0
    """Episodes that the version had learned from."""
    reason: str = ""
    settings: TrialSettings = TrialSettings()
    simulator: bool = False
    """It is judged by pairs of simulated matches (`Paired`), not by assigned ones."""


class Assigned(_Record, frozen=True, kw_only=True):
    """A match is about to begin, and this is who plays it. Durable before its first decision."""

    match: str
    arm: Arm
    version: int
    """Who plays; 0: the rules."""
    test: int = 0
    """The number of the test or recheck it counts for; 0: none."""
    share: float = 0.0
    """The probability of the canary, given neither the holdout nor practice."""
    holdout: float = 0.0
    practice: float = 0.0
    """The probability of practice, given that the match is not of the holdout."""
    uniform: float = 0.0
    """The coin: below `holdout` the rules play; `coin.draw` says the rest."""
    stratum: str = ""
    forced: bool = False
    """No coin decided it: a person pinned the version, or it is the newest by policy `latest`. The
    match is no evidence, for or against."""
    seen: int = 0
    """Where the matches are judged on another machine: the last record of its log that was known
    here."""

    def __post_init__(self) -> None:
        if not (  # without a loop: a log of a year has half a million of these
            0.0 <= self.share < 1.0
            and 0.0 <= self.holdout < 1.0
            and 0.0 <= self.practice < 1.0
            and 0.0 <= self.uniform < 1.0
        ):
            for name in ("share", "holdout", "practice", "uniform"):
                if not 0.0 <= (value := getattr(self, name)) < 1.0:
                    raise ValueError(f"`{name}` is {value}: expected at least 0 and below 1")
        if self.arm == "practice" and (self.test or not self.practice):
            raise ValueError(
                f"a match of practice has `test` {self.test} and `practice` {self.practice}: "
                "expected no test and the probability of practice"
            )
        if self.test and self.arm != "holdout" and not self.share:
            raise ValueError("`share` is 0: a match of a test needs the probability of the canary")


class Resolved(_Record, frozen=True, kw_only=True):
    """An assigned match is over."""

    order: int
    """The number of its `Assigned`."""
    result: float = 0.0
    """In [0, 1]; 0 unless the ending is `finished`."""
    ending: Ending = "finished"
    words: str = ""
    """Of a fault: what happened."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.result <= 1.0:
            raise ValueError(f"`result` is {self.result}: expected a number from 0 to 1")
        if self.result and self.ending != "finished":
            raise ValueError(
                f"`result` is {self.result}: expected 0, since the ending is {self.ending!r}"
            )


class Paired(_Record, frozen=True, kw_only=True):
    """Simulated matches of canary and incumbent on the same fresh seeds."""

    test: int
    canary: tuple[float, ...]
    incumbent: tuple[float, ...]
    seed: int = 0
    """Of the first pair; the others follow."""

    def __post_init__(self) -> None:
        if len(self.canary) != len(self.incumbent):
            raise ValueError(
                f"{len(self.canary)} results of the canary and {len(self.incumbent)} of the "
                "incumbent: expected as many of each"
            )
        for result in (*self.canary, *self.incumbent):
            if not 0.0 <= result <= 1.0:
                raise ValueError(f"a result of a pair is {result}: expected a number from 0 to 1")


class Ordered(_Record, frozen=True, kw_only=True):
    """A person's word."""

    order: Order
    version: int = 0
    """Of `approve`: what is promoted; of `stop`: what is stopped (0: what is tested)."""
    words: str = ""


Record: TypeAlias = Declared | Nominated | Assigned | Resolved | Paired | Ordered
