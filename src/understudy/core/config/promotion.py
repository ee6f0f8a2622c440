"""Settings of promotion: `[promotion]`, how a version earns play and loses it."""

from __future__ import annotations

from typing import Literal

from understudy.core.config.section import Section, at_least_zero, check, positive
from understudy.core.errors import ConfigError


class PromotionConfig(Section, frozen=True, kw_only=True):
    """How a version earns play, in mode `auto` (`[promotion]`)."""

    policy: Literal["latest", "auto", "manual", "paused"] = "auto"
    """`auto`: evidence promotes. `manual`: a person is asked before each promotion. `paused`: no
    tests and no promotions. `latest`: every new version plays, without evidence."""
    evidence: Literal["matches", "simulator"] = "matches"
    """What a version is judged by. `matches`: those that a coin assigns in mode `auto`; training
    has none, so its newest version is the champion. `simulator`: pairs of simulated matches
    against the incumbent, in the background; for `play` and `train` on built-in games."""
    judge: Literal["here", "learner"] = "here"
    """Where matches are judged and versions promoted. `here`: in this run folder. `learner`: on the
    learner's machine, to which `understudy relay` carries the matches of this one."""
    spend: Literal["each", "reign"] = "each"
    """`each`: each test promotes a version that is not better with a chance of `alpha` at most.
    `reign`: all tests against one champion together, with `reign_alpha`; they take longer."""
    alpha: float = 0.05
    """Chance that a test promotes a version that is not better."""
    reign_alpha: float = 0.10
    """The same for all tests against one champion together (`spend = "reign"`)."""
    first_share: float = 0.2
    """Share of matches that a new canary plays at first…"""
    first_canaries: int = 10
    """…until it has played so many."""
    share: float = 0.5
    """Share of matches that it plays afterwards."""
    harm: float = 4.0
    """Evidence that a canary, or practice, is worse at which it is stopped."""
    long: int = 300
    """Matches after which a test ends without a verdict, unless the canary looks promising…"""
    longest: int = 600
    """…and after which it ends anyway."""
    holdout: float = 0.1
    """Share of matches that the rules play beside a champion."""
    alarm: float = 1000.0
    """Evidence at which a champion whose results have fallen is tested again, against the rules; a
    champion that has not changed raises a false alarm once in this many matches at most."""
    cool_down: int = 50
    """Matches after a rollback before another version is tested."""
    first_matches: int = 50
    """Matches that a version must have learned from before the first test."""
    growth: float = 1.2
    """A version is tested if it has learned from so many times the matches of the last one…"""
    least_kl: float = 0.05
    """…or if its decisions differ from that one's by so many nats on recent matches."""
    practice_share: float = 0.2
    """Share of matches that the newest version plays to learn, once it decides as the rules do;
    they count for no test. 0: none."""
    practice_agreement: float = 0.9
    """Practice begins where the newest version agrees with the rules in so many of their recent
    decisions, or has learned from 300 matches."""
    cameo_share: float = 0.05
    """Share of decisions, in matches that the rules play outside of a test, that the newest version
    may take over for a few at a time, to learn. 0: none."""
    slow_ms: float = 50.0
    """A version whose decisions take longer, three times in a row, gives its match to the rules."""
    match_timeout_s: float = 7200.0
    """A match that has no result after this time counts as lost for who played it."""
    strata: tuple[str, ...] = ("opponent", "map", "race", "difficulty", "shard")
    """Tags by which results are compared like with like. `shard`: which of several servers it was
    (`serve --shard`)."""
    simulator_share: float = 0.25
    """With evidence of a simulator: share of one core that its matches may take."""

    def __post_init__(self) -> None:
        for name in ("alpha", "reign_alpha", "first_share", "share"):
            check(self, "promotion", [name], "a share between 0 and 1", lambda one: 0 < one < 1)
        for name in ("holdout", "practice_share", "cameo_share"):
            check(self, "promotion", [name], "0 or more, and below 1", lambda one: 0 <= one < 1)
        check(self, "promotion", ["harm", "alarm", "growth"], "above 1", lambda one: one > 1)
        positive(self, "promotion", "long", "longest", "slow_ms", "match_timeout_s")
        at_least_zero(self, "promotion", "first_canaries", "cool_down", "first_matches", "least_kl")
        check(
            self,
            "promotion",
            ["simulator_share", "practice_agreement"],
            "a share above 0, and at most 1",
            lambda one: 0 < one <= 1,
        )
        if self.judge == "learner" and self.evidence == "simulator":
            raise ConfigError(
                "promotion.judge: expected 'here' with promotion.evidence = 'simulator', got "
                "'learner': a relay carries no simulated matches"
            )
        if self.longest < self.long:
            raise ConfigError(
                f"promotion.longest: expected at least promotion.long = {self.long}, "
                f"got {self.longest}"
            )
