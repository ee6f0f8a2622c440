"""A test of a version that runs, and a champion that is watched: what matches do to them. Pure.

`look` and `look_at_pairs` count matches for a test, `watch` for a champion. Each returns the test
or the reign after them and the place of the first match that decides something. What follows from
that for the roles of versions is in `roles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.statistics import STAKES, detect, detect_until, wilson
from understudy.gates.promotion import trial as gate
from understudy.gates.promotion.evidence import evidence, gains_below, grow, new_capital
from understudy.gates.promotion.records import RULES, Assigned, Paired, Resolved, TrialSettings
from understudy.gates.promotion.trial import PromotionTrial, TrialLooks

_REIGN_SUM = 5.6
"""Sum of k ** -1.2 over all k: what the tests of a reign spend adds up to `reign_alpha`."""
_KEPT_GAIN = 1.0 / 3.0
"""The share of the gain in its test that a champion is held to. Gains of tests that promote are too
large on average: held to half of it, 21% of good champions raise an alarm in 6,000 matches, held to
a third 6% (`benchmarks/promotion_gate.py`)."""
ResolvedMatch: TypeAlias = tuple[int, Assigned, Resolved]
"""The number of an assignment, the assignment, and how the match ended."""
_FIRST_MATCHES = 30
"""Matches from which the promise of a champion without a test is learned."""


@dataclass(frozen=True)
class VersionRecord:
    """Results that were counted for one version, against any opponent."""

    matches: int = 0
    total: float = 0.0

    @property
    def mean(self) -> float:
        return self.total / max(self.matches, 1)

    def with_result(self, result: float) -> VersionRecord:
        return VersionRecord(self.matches + 1, self.total + result)


@dataclass(frozen=True)
class RunningTest:
    """A test of a canary against the incumbent, or a recheck of a champion against the rules."""

    number: int
    version: int
    against: int
    alpha: float
    settings: TrialSettings
    trial: PromotionTrial
    strata: dict[str, int] = field(default_factory=dict)
    simulator: bool = False
    """Judged by pairs of simulated matches, not by assigned ones."""
    asks: bool = False
    """Better by evidence, and a person is asked. Only harm, a misfit or a person's word ends it."""
    fall: NDArray = field(default_factory=lambda: np.zeros(len(STAKES)))
    """While a person is asked: evidence of each stake that the canary has become worse, at any
    moment since. A canary that breaks down need not lose first what it won while it waited."""

    @property
    def harm(self) -> float:
        """Evidence against the canary at which it is stopped. A canary may wait for a person for
        thousands of matches: at `alarm`, 1 of 30 that win 70% against 50% is stopped in 3,000, and
        one that falls to 30% after 120 matches, to 10% after 50 (`benchmarks/promotion_gate.py`).
        """
        return self.settings.alarm if self.asks else self.settings.harm

    @property
    def pairs(self) -> NDArray | None:
        """Log capital [L] of pairs; None: judged by assigned matches."""
        return self.trial.better if self.simulator else None

    @property
    def paired(self) -> int:
        """Pairs that were counted."""
        return int(self.trial.arm_counts[1]) if self.simulator else 0


@dataclass(frozen=True)
class Reign:
    """A champion, and what it promised."""

    version: int
    settings: TrialSettings
    promise: float = 0.0
    """The mean result below which it raises an alarm; 0: learned from its first matches."""
    tests: int = 0
    """Tests of canaries against it so far."""
    alarm: NDArray = field(default_factory=lambda: np.zeros(len(STAKES)))
    """Evidence of each stake that it has fallen below its promise."""
    first: VersionRecord = VersionRecord()
    """Its matches while the promise is learned."""


def alpha_of(settings: TrialSettings, test: int) -> float:
    """The chance that test number `test` of a reign may spend."""
    if settings.spend == "each":
        return settings.alpha
    return float(settings.reign_alpha * test**-1.2 / _REIGN_SUM)


def look(
    running: RunningTest, matches: Sequence[ResolvedMatch]
) -> tuple[RunningTest, int, int | None]:
    """A test after these matches, its first verdict, and the place of the match that brought it."""
    rows = [
        row
        for row, (_, assigned, _) in enumerate(matches)
        if assigned.test == running.number and assigned.arm != "holdout"
    ]
    if not rows:
        return running, gate.CONTINUE, None
    coins, results = zip(*(matches[row][1:] for row in rows), strict=True)
    strata = running.strata
    if any(coin.stratum not in strata for coin in coins):
        strata = dict(strata)
        for coin in coins:
            strata.setdefault(coin.stratum, len(strata))
    trial, looks = gate.advance(
        gate.with_strata(running.trial, len(strata)),
        running.settings,
        alpha=running.alpha,
        arms=np.array([float(coin.arm == "canary") for coin in coins]),
        shares=np.array([coin.share for coin in coins]),
        results=np.array([one.result for one in results]),
        strata=np.array([strata[coin.stratum] for coin in coins]),
    )
    after, verdict, hit = _decided(replace(running, trial=trial, strata=strata), looks)
    return after, verdict, None if hit is None else rows[hit]


def look_at_pairs(test: RunningTest, record: Paired) -> tuple[RunningTest, int]:
    """A test after these pairs, or those up to its first verdict, and that verdict."""
    canary, incumbent = np.array(record.canary), np.array(record.incumbent)
    trial, looks = gate.advance_pairs(
        test.trial, test.settings, alpha=test.alpha, canary=canary, incumbent=incumbent
    )
    after, verdict, place = _decided(replace(test, trial=trial), looks)
    if place is None or place + 1 == len(canary):
        return after, verdict
    upto = msgspec.structs.replace(
        record, canary=record.canary[: place + 1], incumbent=record.incumbent[: place + 1]
    )
    return look_at_pairs(test, upto)


def _decided(running: RunningTest, looks: TrialLooks) -> tuple[RunningTest, int, int | None]:
    """A test whose trial has advanced, its first verdict, and the place of that look."""
    verdicts = looks.verdict
    if running.asks:
        fall, fallen = detect_until(
            running.fall.tolist(), looks.against.tolist(), bound=running.harm
        )
        running = _with_fall(running, np.array(fall))
        verdicts = np.where(looks.coin >= running.settings.misfit, gate.MISFIT, gate.CONTINUE)
        if fallen is not None and not verdicts[: fallen + 1].any():
            return running, gate.HARM, fallen
    deciding = verdicts != gate.CONTINUE
    if not deciding.any():
        return running, gate.CONTINUE, None
    place = int(np.argmax(deciding))
    return running, int(verdicts[place]), place


def _with_fall(running: RunningTest, fall: NDArray) -> RunningTest:
    with np.errstate(divide="ignore"):
        worse = np.log(fall)
    return replace(running, fall=fall, trial=running.trial._replace(worse=worse))


def harm_evidence(gains: NDArray) -> NDArray:
    """Evidence [N] that a canary is worse, after each of these gains [N] of bets against it."""
    return evidence(grow(new_capital(), gains), axis=1)


def fall_evidence(gains: NDArray) -> NDArray:
    """Evidence [N] that a canary has become worse, after each of these gains [N] of bets against
    it since a person is asked."""
    fall, seen = np.zeros(len(STAKES)), []
    for gain in gains:
        fall = detect(fall, np.array([gain]))
        seen.append(fall.mean())
    return np.array(seen)


def asked(running: RunningTest) -> RunningTest:
    """The test from the match on at which a person is asked."""
    return _with_fall(replace(running, asks=True), np.zeros(len(STAKES)))


def unasked(running: RunningTest) -> RunningTest:
    """The test goes on without a person; evidence against the canary begins anew."""
    return replace(running, asks=False, trial=running.trial._replace(worse=new_capital()))


def is_better(running: RunningTest) -> bool:
    """Whether the evidence is enough at this moment."""
    return bool(evidence(running.trial.better) >= 1.0 / running.alpha)


def watch(
    reign: Reign, matches: Sequence[ResolvedMatch], *, since: int
) -> tuple[Reign, int | None]:
    """A champion after these matches, and the place of the one that raised an alarm.

    Matches up to record `since` are not its own any more, nor are those that were forced: a recheck
    could not be played, and the alarm would be old when it could. Practice promises nothing.
    """
    if reign.version == RULES:
        return reign, None
    rows = [
        row
        for row, (number, assigned, _) in enumerate(matches)
        if assigned.version == reign.version
        and number > since
        and not assigned.forced
        and assigned.arm != "practice"
    ]
    if not reign.promise:
        learned = rows[: _FIRST_MATCHES - reign.first.matches]
        first = reign.first
        for row in learned:
            first = first.with_result(matches[row][2].result)
        reign = replace(reign, first=first)
        if reign.first.matches < _FIRST_MATCHES:
            return reign, None
        # The lower bound is 0 where none of them was won: then any bar is better than none.
        bound = wilson(reign.first.total, reign.first.matches)[0]
        reign, rows = replace(reign, promise=max(bound, 0.01)), rows[len(learned) :]
    if not rows:
        return reign, None
    results = np.array([matches[row][2].result for row in rows])
    alarm, hit = detect_until(
        reign.alarm.tolist(),
        gains_below(results, reign.promise).tolist(),
        bound=reign.settings.alarm,
    )
    return replace(reign, alarm=np.array(alarm)), None if hit is None else rows[hit]


def promise_in(trial: PromotionTrial) -> float:
    """What a version is held to after this test; 0: an arm has no match."""
    if not trial.arm_counts.all():
        return 0.0
    incumbent, canary = trial.means
    return float(incumbent + _KEPT_GAIN * (canary - incumbent))


def name_of(version: int) -> str:
    """A version in words."""
    return f"version {version}" if version != RULES else "the rules"


def trial_words(running: RunningTest) -> str:
    """The figures of a test, in words."""
    trial, matches = running.trial, "simulated matches" if running.simulator else "matches"
    (incumbent, canary), counts = trial.means, trial.arm_counts.astype(int)
    return (
        f"{name_of(running.version)}: {canary:.0%} in {counts[1]} {matches}, "
        f"{name_of(running.against)}: {incumbent:.0%} in {counts[0]}; "
        f"evidence for {name_of(running.version)} {_digits(float(evidence(trial.better)))} "
        f"(enough: {1.0 / running.alpha:.0f}), "
        f"against it {_digits(float(evidence(trial.worse)))} (enough: {running.harm:g})"
    )


def _digits(value: float) -> str:
    return f"{value:.1f}" if value >= 1.0 else f"{value:.2f}"


def verdict_words(running: RunningTest, verdict: int) -> str:
    """What a verdict says of a test, and the figures behind it."""
    against, settings = name_of(running.against), running.settings
    counts = running.trial.arm_counts.astype(int)
    number = f"{counts[1]} pairs" if running.simulator else f"{counts.sum()} matches"
    said = {
        gate.BETTER: f"better than {against}",
        gate.HARM: f"worse than {against}" + (" since a person is asked" if running.asks else ""),
        gate.MISFIT: f"{counts[1]} of {counts.sum()} matches were the canary's, which the recorded "
        "coin does not explain, so the results prove nothing",
        gate.HOPELESS: f"after {number} its evidence is below {settings.hopeless:g}",
        gate.FUTILE: f"no difference seen in {number}",
    }
    return f"{said[verdict]}; {trial_words(running)}"
