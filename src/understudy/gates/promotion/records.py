"""The records of a run's promotion: what was assigned, how it ended, and what a person said.

They lie in one log (`understudy.promotion.log`), numbered in the order in which they were created;
`roles.fold` turns them into who plays. Nothing else is needed to recompute every verdict. Fields
may be added with a default; none is ever renamed.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Arm: TypeAlias = Literal["canary", "incumbent", "holdout"]
"""`holdout`: the rules play beside a champion, outside of the test."""
PolicyName: TypeAlias = Literal["latest", "auto", "manual", "paused"]
Ending: TypeAlias = Literal["finished", "aborted", "vanished", "fault", "void"]
"""`vanished`: its process ended, or it was open for too long. `fault`: the version failed, and the
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
    below: float = 20.0
    """Evidence that its mean is below the incumbent's record, at which it is stopped."""
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


class _Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag=True):
    at: float = 0.0
    """By the clock of the machine that wrote it; never compared with another machine's."""
    session: str = ""
    """The process that wrote it: machine/process/random."""


class Declared(_Record, frozen=True, kw_only=True):
    """A bot opened the run. Other rules or another scale close the running test."""

    rules: str = ""
    score: tuple[float, float] | None = None
    policy: PolicyName = "auto"


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
    """The probability of the canary, given that the match is not of the holdout."""
    holdout: float = 0.0
    uniform: float = 0.0
    """The coin: below `holdout` the rules play; `roles.draw` says the rest."""
    stratum: str = ""


class Resolved(_Record, frozen=True, kw_only=True):
    """An assigned match is over."""

    order: int
    """The number of its `Assigned`."""
    result: float = 0.0
    """In [0, 1]; 0 unless the ending is `finished`."""
    ending: Ending = "finished"
    words: str = ""
    """Of a fault: what happened."""


class Paired(_Record, frozen=True, kw_only=True):
    """Simulated matches of canary and incumbent on the same fresh seeds."""

    test: int
    canary: tuple[float, ...]
    incumbent: tuple[float, ...]
    seed: int = 0
    """Of the first pair; the others follow."""


class Ordered(_Record, frozen=True, kw_only=True):
    """A person's word."""

    order: Order
    version: int = 0
    """Of `approve`: what is promoted; of `stop`: what is stopped."""
    words: str = ""


Record: TypeAlias = Declared | Nominated | Assigned | Resolved | Paired | Ordered
