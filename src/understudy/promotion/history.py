"""The history of a run's promotion, recomputed from its log: matches, tests, verdicts. Pure.

The log has no evidence and no verdicts in it. `history` folds the records as every bot does, and
then makes each test again with its matches alone, to have the evidence after each of them.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.gates.promotion import roles
from understudy.gates.promotion import trial as gate
from understudy.gates.promotion.records import Assigned, Nominated, Paired, Record, Resolved
from understudy.gates.promotion.roles import PromotionState, PromotionVerdict, VerdictKind
from understudy.gates.promotion.running import (
    RunningTest,
    asked,
    fall_evidence,
    harm_evidence,
    look_at_pairs,
)
from understudy.gates.promotion.trial import TrialLooks
from understudy.promotion.log import PromotionLog
from understudy.registry.run_folder import RunFolder

_ENDINGS: set[VerdictKind] = {
    "promoted", "harmful", "hopeless", "undecided", "misfit", "stopped", "closed", "kept",
    "rolled back",
}  # fmt: skip


class AssignedMatch(NamedTuple):
    """A match, and how it ended."""

    order: int
    """The number of its assignment."""
    assigned: Assigned
    resolved: Resolved | None = None
    """None: it is open."""
    resolved_at: int = 0
    """The number of that record."""

    @property
    def counts(self) -> bool:
        """Whether it has a result."""
        return self.resolved is not None and self.resolved.ending != "void"

    @property
    def practises(self) -> bool:
        """Whether it was played to learn: it is no evidence."""
        return self.assigned.arm == "practice"

    @property
    def result(self) -> float:
        return 0.0 if self.resolved is None else self.resolved.result


class MatchColumns(NamedTuple):
    """The matches of a test as columns [N], in the order of assignment."""

    arms: NDArray
    """1: the canary played."""
    shares: NDArray
    results: NDArray
    strata: NDArray
    """Numbers from 0."""


@dataclass(frozen=True)
class TrialHistory:
    """A test or a recheck from its first match to its last."""

    running: RunningTest
    """As it was when it was opened."""
    recheck: bool
    opened: float
    """When, in seconds since 1970."""
    reason: str
    experience: int
    """Episodes that the version had learned from; 0 of a recheck."""
    matches: tuple[AssignedMatch, ...]
    """Those that were counted; none of a test by a simulator."""
    pairs: NDArray
    """[N, 2] Results of canary and incumbent in simulated pairs."""
    looks: TrialLooks
    """What the gate saw after each match or pair."""
    ending: PromotionVerdict | None
    """None: it goes on."""

    @property
    def columns(self) -> MatchColumns:
        """The matches, not the pairs."""
        return match_columns(self.matches)


@dataclass(frozen=True)
class PromotionHistory:
    """Everything that the log of a run says."""

    state: PromotionState
    verdicts: tuple[PromotionVerdict, ...]
    matches: tuple[AssignedMatch, ...]
    trials: tuple[TrialHistory, ...]
    times: dict[int, float]
    """When each record was written, by the clock of the machine that wrote it."""

    def of(self, version: int) -> tuple[TrialHistory, ...]:
        """The test and the rechecks of a version."""
        return tuple(one for one in self.trials if one.running.version == version)


def read_history(folder: RunFolder) -> PromotionHistory:
    """The history of a run folder. Writes nothing, and moves no pointer."""
    return history(PromotionLog(folder.promotion).new())


def history(records: Sequence[tuple[int, Record]]) -> PromotionHistory:
    """The history that these numbered records tell."""
    matches = _matches(records)
    _, verdicts = roles.fold(PromotionState(), records)
    state, opened = _opened(records, matches, verdicts)
    times = {number: record.at for number, record in records}
    by_number = dict(records)
    by_test: dict[int, list[AssignedMatch]] = {}
    for one in matches:
        if one.counts and one.assigned.arm != "holdout":
            by_test.setdefault(one.assigned.test, []).append(one)
    trials = tuple(
        _trial(running, by_number, matches, by_test.get(number, []), verdicts, state)
        for number, running in opened.items()
    )
    return PromotionHistory(state, tuple(verdicts), tuple(matches), trials, times)


class TrialSpan(NamedTuple):
    """Where a test lies among all matches of the run, counted from 1."""

    trial: TrialHistory
    places: NDArray
    """[N] Of the matches or pairs that were counted."""
    begin: float
    end: float


def trial_spans(told: PromotionHistory) -> tuple[list[TrialSpan], float]:
    """Every test with something to draw, and where the axis ends.

    Pairs of simulated matches lie between the matches that were played meanwhile, or one after the
    other where there are none.
    """
    played = (one for one in told.matches if one.counts)
    places = {one.order: place for place, one in enumerate(played, 1)}
    spans: list[TrialSpan] = []
    last = float(len(places))
    orders = np.array(list(places))
    pairs_only = not len(orders)
    for trial in told.trials:
        count = len(trial.looks.verdict)
        if not count:
            continue
        if trial.running.simulator:
            begin = last if pairs_only else float(np.searchsorted(orders, trial.running.number))
            end = begin + count
            if not pairs_only:
                over = told.state.sequence if trial.ending is None else trial.ending.sequence
                end = max(float(np.searchsorted(orders, over)), begin + 1.0)
            at = np.linspace(begin, end, count + 1)[1:]
            last = max(last, end)
        else:
            at = np.array([places[one.order] for one in trial.matches], np.float64)
        spans.append(TrialSpan(trial, at, float(at[0]) - 0.5, float(at[-1]) + 0.5))
    return spans, last


def _matches(records: Iterable[tuple[int, Record]]) -> list[AssignedMatch]:
    """All matches in the order of assignment, each with its first result."""
    found: dict[int, AssignedMatch] = {}
    for number, record in records:
        if isinstance(record, Assigned):
            found[number] = AssignedMatch(number, record)
        elif isinstance(record, Resolved):
            before = found.get(record.order)
            if before is not None and before.resolved is None:
                found[record.order] = before._replace(resolved=record, resolved_at=number)
    return list(found.values())


def _opened(
    records: Sequence[tuple[int, Record]],
    matches: Sequence[AssignedMatch],
    verdicts: Sequence[PromotionVerdict],
) -> tuple[PromotionState, dict[int, RunningTest]]:
    """The last state, and every test as it was when it was opened, by its number.

    The records are folded once more, in pieces that end where a test was opened.
    """
    stops = sorted(
        {
            _counted_at(verdict.sequence, matches)
            for verdict in verdicts
            if verdict.kind in ("nominated", "alarm")
        }
    )
    state, opened, begin = PromotionState(), dict[int, RunningTest](), 0
    numbers = np.array([number for number, _ in records])
    for stop in stops:
        end = int(np.searchsorted(numbers, stop, side="right"))
        state, _ = roles.fold(state, records[begin:end])
        begin = end
        for running in (state.test, state.recheck):
            if running is not None:
                opened.setdefault(running.number, running)
    state, _ = roles.fold(state, records[begin:])
    return state, dict(sorted(opened.items()))


def _counted_at(sequence: int, matches: Sequence[AssignedMatch]) -> int:
    """The record with which a match was counted: the result of the last one up to it. A record
    that is no match is its own."""
    place = bisect.bisect_left(matches, sequence, key=lambda one: one.order)
    if place < len(matches) and matches[place].order == sequence:
        return max(one.resolved_at for one in matches[: place + 1])
    return sequence


def _trial(
    running: RunningTest,
    records: dict[int, Record],
    matches: Sequence[AssignedMatch],
    mine: Sequence[AssignedMatch],
    verdicts: Sequence[PromotionVerdict],
    state: PromotionState,
) -> TrialHistory:
    """`mine`: the matches with a result that carry the number of this test."""
    record = records[running.number]
    nominated = record if isinstance(record, Nominated) else None
    still_runs = running.number in {one.number for one in (state.test, state.recheck) if one}
    ending = None if still_runs else _ending(running.number, verdicts)
    last = state.sequence + 1 if ending is None else ending.sequence
    end = _last_counted(matches, last)
    counted = tuple(one for one in mine if one.order <= end)
    pairs = test_pairs(running, records, last)
    renewed = [
        (_places_until(counted, _last_counted(matches, one.sequence)), one.kind == "asks")
        for one in verdicts
        if one.test == running.number and one.kind in ("asks", "continued")
    ]
    looks = _looks(running, counted, pairs, renewed=renewed)
    reasons = [
        one.words for one in verdicts if (one.sequence, one.kind) == (running.number, "alarm")
    ]
    return TrialHistory(
        running=running,
        recheck=nominated is None,
        opened=record.at,
        reason=nominated.reason if nominated is not None else "; ".join(reasons),
        experience=nominated.experience if nominated is not None else 0,
        matches=counted,
        pairs=pairs,
        looks=looks,
        ending=ending,
    )


def _ending(number: int, verdicts: Sequence[PromotionVerdict]) -> PromotionVerdict:
    """The verdict that ended a test. A recheck also ends where another one begins, or where a
    person promotes a version."""
    for verdict in verdicts:
        if verdict.test == number and verdict.kind in _ENDINGS:
            return verdict
    return next(
        verdict
        for verdict in verdicts
        if verdict.sequence > number and verdict.kind in ("alarm", "promoted")
    )


def _last_counted(matches: Sequence[AssignedMatch], last: int) -> int:
    """The number up to which assignments had been counted at record `last`, which is a match that
    was counted then itself, or another record."""
    place = bisect.bisect_left(matches, last, key=lambda one: one.order)
    if place < len(matches) and matches[place].order == last:
        return last
    still_open = (one.order for one in matches[:place] if not 0 < one.resolved_at <= last)
    return next(still_open, last + 1) - 1


def _places_until(matches: Sequence[AssignedMatch], order: int) -> int:
    """How many of these matches were assigned up to this number."""
    return bisect.bisect_right(matches, order, key=lambda one: one.order)


def match_columns(matches: Sequence[AssignedMatch]) -> MatchColumns:
    """The matches of a test as columns."""
    strata: dict[str, int] = {}
    for one in matches:
        strata.setdefault(one.assigned.stratum, len(strata))
    return MatchColumns(
        arms=np.array([float(one.assigned.arm == "canary") for one in matches]),
        shares=np.array([one.assigned.share for one in matches]),
        results=np.array([one.result for one in matches]),
        strata=np.array([strata[one.assigned.stratum] for one in matches], np.int64),
    )


def _looks(
    running: RunningTest,
    matches: Sequence[AssignedMatch],
    pairs: NDArray,
    *,
    renewed: Sequence[tuple[int, bool]] = (),
) -> TrialLooks:
    """`renewed`: the places at which the evidence against the canary began anew, and whether a
    person was asked from there on."""
    trial, alpha = gate.new_trial(), running.alpha
    if len(pairs):
        _, looks = gate.advance_pairs(
            trial, running.settings, alpha=alpha, canary=pairs[:, 0], incumbent=pairs[:, 1]
        )
    elif matches:
        columns = match_columns(matches)
        trial = gate.with_strata(trial, 1 + int(columns.strata.max()))
        _, looks = gate.advance(trial, running.settings, alpha=alpha, **columns._asdict())
        for (begin, asked), (end, _) in pairwise((*renewed, (len(matches), False))):
            against = fall_evidence if asked else harm_evidence
            looks.worse[begin:end] = against(looks.against[begin:end])
    else:
        looks = TrialLooks(*np.zeros((5, 0)))
    return looks


def test_pairs(running: RunningTest, records: dict[int, Record], last: int) -> NDArray:
    """[N, 2] The pairs that counted for a test by a simulator: of a record that decided something
    those up to the verdict."""
    test, counted = running, list[tuple[float, float]]()
    for number, record in records.items():
        if isinstance(record, Paired) and record.test == running.number and number <= last:
            before = test.paired
            test, verdict = look_at_pairs(test, record)
            pairs = zip(record.canary, record.incumbent, strict=True)
            counted += islice(pairs, test.paired - before)
            if verdict == gate.BETTER:  # it asks, unless this was its end
                test = asked(test)
    return np.array(counted, np.float64).reshape(-1, 2)
