"""What a person is shown of a run's promotion: its status, the story of a version, tables. Pure.

All of it is made from the log (`history`); `expectation` says when a verdict is due.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from understudy.core.config import PromotionConfig
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.core.statistics import wilson
from understudy.gates.promotion import evidence as maths
from understudy.gates.promotion import roles
from understudy.gates.promotion.practice import (
    FEWEST_COMPARED,
    LEARNED_MATCHES,
    RECENT_MATCHES,
    UNAGREED_DECISIONS,
)
from understudy.gates.promotion.records import RULES
from understudy.gates.promotion.roles import PromotionState, PromotionVerdict
from understudy.gates.promotion.running import RunningTest, alpha_of
from understudy.promotion.digest import (
    PACE_MATCHES,
    DigestReader,
    DigestTrial,
    PromotionDigest,
    digest_of,
)
from understudy.promotion.expectation import ENOUGH_MATCHES, expected_verdict, next_verdict
from understudy.promotion.history import (
    AssignedMatch,
    PromotionHistory,
    TrialHistory,
)
from understudy.promotion.promotion import Promotion
from understudy.promotion.served import judges_segments
from understudy.registry.checkpoints import learned_matches
from understudy.registry.run_folder import RunFolder
from understudy.telemetry.promotion_stage import staged
from understudy.telemetry.promotion_status import (
    ArmResult,
    ExpectedVerdict,
    PracticeStatus,
    PromotionStatus,
    TrialStatus,
    VerdictNote,
)
from understudy.telemetry.text import complain

_DEFAULTS = PromotionConfig()
LAST_VERDICTS = 5
_MOST_RESULTS = 12
"""Versions, and strata of versions, that a status shows."""
_GAP = 10.0
"""Times the median interval between two starts: longer ones are no match, but time between two
sessions."""
_ALPHA = 0.05
MATCH_COLUMNS = (
    "order", "match", "at", "test", "arm", "version", "stratum", "share", "holdout", "practice",
    "uniform", "ending", "result", "better", "worse",
)  # fmt: skip
"""The columns of `promotion_matches.csv`."""


# --- status --------------------------------------------------------------------------------------


def read_promotion(folder: RunFolder) -> PromotionStatus | None:
    """The promotion of a run folder now; None: evidence does not move its champion."""
    if not folder.by_evidence:
        return None
    return PromotionReader(folder).read()


class PromotionReader:
    """The promotion of a run folder, each time reading only what is new in its log."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._digest = DigestReader(folder.promotion, problem=complain)
        self._made: tuple[object, PromotionStatus] | None = None

    def begin(self) -> None:
        """Have a long log read while the caller does something else; then call `read`."""
        if self._folder.by_evidence:
            self._digest.begin()

    def read(self, progress: Callable[[float], None] | None = None) -> PromotionStatus | None:
        """The promotion now; None: evidence does not move its champion. `progress` is called with a
        share from 0 to 1."""
        folder = self._folder
        if not folder.by_evidence:
            return None
        told = self._digest.read(progress)
        key = (
            told.state.sequence,
            folder.pointers.read("champion"),
            folder.pointers.read("candidate"),
        )
        if self._made is None or self._made[0] != key:
            self._made = key, status_of(folder, told)
        return self._made[1]


def status_of(folder: RunFolder, told: PromotionHistory | PromotionDigest) -> PromotionStatus:
    """The promotion of a run folder with this history."""
    status = promotion_status(
        told,
        pinned=pinned_champion(folder),
        config=folder.config.promotion,
        served=judges_segments(folder),
    )
    return _with_newest(status, folder)


def read_brief(
    folder: RunFolder, promotion: Promotion, *, agreement: float | None = None, waits: str = ""
) -> PromotionStatus:
    """What a process that follows the log knows already. `agreement`: the share of the rules'
    decisions that the newest version agrees with; `waits`: why no version is tried."""
    brief = brief_status(
        promotion.state,
        promotion.verdicts,
        pinned=pinned_champion(folder),
        config=folder.config.promotion,
        served=judges_segments(folder),
    )
    brief = msgspec.structs.replace(_with_newest(brief, folder), waits=waits)
    return staged(brief, agreement=agreement)


def _with_newest(status: PromotionStatus, folder: RunFolder) -> PromotionStatus:
    """With the newest version, and with what it has learned from, as long as that decides
    something."""
    newest = folder.pointers.read("candidate")
    number = 0 if newest is None else newest.version
    status = staged(msgspec.structs.replace(status, newest=number))
    if status.practice is not None or not status.practice_share or newest is None or status.served:
        return status
    try:
        learned = learned_matches(folder.versions.manifest(newest.version))
    except (FileFormatError, RunFolderError, OSError):  # damaged, or pruned meanwhile
        return status
    return staged(msgspec.structs.replace(status, learned=learned))


def pinned_champion(folder: RunFolder) -> int | None:
    """The version that a person pinned as champion."""
    champion = folder.pointers.read("champion")
    return champion.version if champion is not None and champion.pinned else None


def promotion_status(
    told: PromotionHistory | PromotionDigest,
    *,
    pinned: int | None,
    config: PromotionConfig = _DEFAULTS,
    served: bool = False,
) -> PromotionStatus:
    """Everything that a screen shows. `pinned`: the version that a person pinned as champion;
    `served`: the log is that of a server's segments."""
    if isinstance(told, PromotionHistory):
        told = digest_of(told)
    brief = brief_status(
        told.state, told.verdicts, pinned=pinned, config=config, served=served, times=told.times
    )
    pace = _pace(told.starts)
    # Those of the holdout and of practice count for no test; in a recheck there are none.
    counted = (1.0 - brief.holdout) * (1.0 - brief.practice_now)
    counted_pace = None if pace is None else pace * counted
    running = [one for one in (told.state.recheck, told.state.test) if one is not None]
    return msgspec.structs.replace(
        brief,
        tests=tuple(
            _with_history(test, told.trials[now.number], now, told, counted_pace, scored=served)
            for test, now in zip(brief.tests, running, strict=True)
        ),
        next_test=_next_test(told, brief, counted_pace),
        practice=_with_played(brief.practice, told),
        matches=told.matches,
        matches_per_hour=pace,
        results=tuple(_results(told.sums, most=_MOST_RESULTS)),
    )


def brief_status(
    state: PromotionState,
    verdicts: Sequence[PromotionVerdict],
    *,
    pinned: int | None,
    config: PromotionConfig = _DEFAULTS,
    served: bool = False,
    times: Mapping[int, float] | None = None,
) -> PromotionStatus:
    """What the state alone says, at once: no interval, no pace and nothing to expect."""
    at = times or {}
    coin = roles.shares(state)
    told = [one for one in verdicts if one.kind not in ("nominated", "refused")]
    waiting = len(state.resolved)
    status = PromotionStatus(
        incumbent=state.incumbent,
        served=served,
        why=_why(state, verdicts),
        pinned=pinned,
        policy=state.policy,
        paused=state.is_paused,
        holdout=coin.holdout,
        tests=tuple(
            _trial_status(
                one,
                share=coin.share if coin.test == one.number else 0.0,
                recheck=one is state.recheck,
                since=at.get(one.number, 0.0),
            )
            for one in (state.recheck, state.test)
            if one is not None
        ),
        promise=state.reigns[-1].promise,
        practice=_practice_status(state, config.practice_share),
        practice_share=config.practice_share,
        agreement_enough=config.practice_agreement,
        # A server has no cameos, and counts decisions: its segments differ too much in length.
        learned_enough=0 if served else LEARNED_MATCHES,
        compared_enough=UNAGREED_DECISIONS if served else 0,
        cameo_share=0.0 if served else config.cameo_share,
        cool_down=state.cool_down,
        open=max(len(state.open) - waiting, 0),  # another thread may count right now
        waiting=waiting,
        verdicts=tuple(verdict_note(one, at) for one in told[-LAST_VERDICTS:]),
    )
    return staged(status)


def _practice_status(state: PromotionState, share: float) -> PracticeStatus | None:
    arm = state.practice
    if not arm.begun:
        return None
    return PracticeStatus(
        version=arm.version,
        share=0.0 if roles.practice_refused(state, arm.version) else share,
        suspended=arm.suspended if share else 0,
        in_a_row=arm.in_a_row,
        mean=arm.recent.mean,
        matches=arm.recent.matches,
        incumbent_mean=arm.incumbent.mean,
        incumbent_matches=arm.incumbent.matches,
        needed=FEWEST_COMPARED,
        recent=RECENT_MATCHES,
        worse=arm.worse,
        worse_enough=state.harm,
    )


def verdict_note(verdict: PromotionVerdict, times: Mapping[int, float]) -> VerdictNote:
    """A verdict with the time of its record."""
    return VerdictNote(
        number=verdict.sequence,
        at=times.get(verdict.sequence, 0.0),
        version=verdict.version,
        kind=verdict.kind,
        words=verdict.words,
    )


def _why(state: PromotionState, verdicts: Sequence[PromotionVerdict]) -> str:
    """Why the incumbent is the incumbent."""
    for one in reversed(verdicts):
        if one.kind == "rolled back" and one.version != state.incumbent:
            return f"version {one.version} was rolled back: {one.words}"
        if one.kind == "promoted" and one.version == state.incumbent:
            return f"promoted: {one.words}"
    return "no version has shown yet that it is better"


def _trial_status(
    running: RunningTest, *, share: float, recheck: bool, since: float
) -> TrialStatus:
    trial, settings = running.trial, running.settings
    incumbent, canary = (
        arm_result(version, float(total), int(count))
        for version, total, count in zip(
            (running.against, running.version), trial.arm_totals, trial.arm_counts, strict=True
        )
    )
    return TrialStatus(
        number=running.number,
        recheck=recheck,
        simulator=running.simulator,
        since=since,
        version=running.version,
        against=running.against,
        canary=canary,
        incumbent=incumbent,
        better=float(maths.evidence(trial.better)),
        better_enough=1.0 / running.alpha,
        worse=float(maths.evidence(trial.worse)),
        worse_enough=running.harm,
        share=share,
        short=settings.short,
        hopeless=settings.hopeless,
        long=settings.long,
        promising=settings.promising if math.isfinite(settings.promising) else None,
        longest=settings.longest,
        asks=running.asks,
    )


def arm_result(version: int, total: float, matches: int, stratum: str = "") -> ArmResult:
    """The results of one version with their interval."""
    low, high = wilson(total, matches)
    mean = total / max(matches, 1)
    return ArmResult(
        version=version, stratum=stratum, matches=matches, mean=mean, low=low, high=high
    )


def _with_history(
    test: TrialStatus,
    trial: DigestTrial,
    now: RunningTest,
    told: PromotionDigest,
    pace: float | None,
    *,
    scored: bool,
) -> TrialStatus:
    expected = expected_verdict(
        now,
        columns=trial.columns,
        pairs=trial.pairs,
        recheck=trial.recheck,
        incumbent_mean=_mean_of(told, now.against),
        scored=scored,
    )
    # A simulator's pairs do not come at the pace of matches.
    if expected is not None and not now.simulator:
        expected = _paced(expected, pace)
    confidence = 1.0 - 2.0 * min(now.alpha, _ALPHA)
    return msgspec.structs.replace(
        test,
        interval=interval_of(trial, confidence=confidence),
        confidence=confidence,
        expected=expected,
    )


def _next_test(
    told: PromotionDigest, brief: PromotionStatus, pace: float | None
) -> ExpectedVerdict | None:
    """Of a test that would begin now; None: one runs, or none can begin."""
    if brief.tests or brief.never:
        return None
    state = told.state
    alpha = alpha_of(state.settings, state.reigns[-1].tests + 1)
    mean = _mean_of(told, state.incumbent)
    expected = next_verdict(
        state.settings,
        alpha=alpha,
        against=state.incumbent,
        incumbent_mean=mean,
        scored=brief.served,
    )
    return _paced(expected, pace)


def _mean_of(told: PromotionDigest, version: int) -> float | None:
    """The mean result of a version; None: it has too few."""
    record = told.state.records.get(version)
    return None if record is None or record.matches < ENOUGH_MATCHES else record.mean


def _paced(expected: ExpectedVerdict, pace: float | None) -> ExpectedVerdict:
    if not pace:
        return expected
    seconds = 3600.0 * expected.matches / pace
    return msgspec.structs.replace(expected, seconds=seconds, pace=pace)


def _with_played(practice: PracticeStatus | None, told: PromotionDigest) -> PracticeStatus | None:
    if practice is None:
        return None
    total, played = told.practised
    return msgspec.structs.replace(practice, played=played, played_mean=total / max(played, 1))


def interval_of(
    told: TrialHistory | DigestTrial, *, confidence: float
) -> tuple[float, float] | None:
    """Of the difference between both arms; None: not of pairs, and not before the first match."""
    if not told.matches:
        return None
    return maths.difference_interval(**told.columns._asdict(), confidence=confidence)


def results_of(matches: Iterable[AssignedMatch], *, most: int = _MOST_RESULTS) -> list[ArmResult]:
    """Results by version, then by version and stratum; of each the most played, rules first.

    Practice is no part of them: it is no evidence, and `PracticeStatus` shows it.
    """
    sums: dict[tuple[int, str], tuple[float, int]] = {}
    for one in matches:
        if one.counts and not one.practises:
            for stratum in {"", one.assigned.stratum}:
                key = one.assigned.version, stratum
                total, count = sums.get(key, (0.0, 0))
                sums[key] = total + one.result, count + 1
    return _results(sums, most=most)


def _results(sums: Mapping[tuple[int, str], tuple[float, int]], *, most: int) -> list[ArmResult]:
    rows = [
        arm_result(version, total, count, stratum)
        for (version, stratum), (total, count) in sums.items()
    ]
    shown: list[ArmResult] = []
    for whole in (True, False):
        group = sorted((row for row in rows if (not row.stratum) == whole), key=_played_most)
        shown += sorted(group[:most], key=lambda row: (row.version, row.stratum))
    return shown


def _played_most(row: ArmResult) -> tuple[bool, int, int]:
    return row.version != RULES or bool(row.stratum), -row.matches, -row.version


def matches_per_hour(matches: Sequence[AssignedMatch]) -> float | None:
    """The pace of the last matches while bots play; None: too few.

    Each machine is timed by its own clock. The time between two sessions is left out: an interval
    between two starts that is many times the median one.
    """
    return _pace([(one.assigned.session, one.assigned.at) for one in matches[-PACE_MATCHES:]])


def _pace(starts: Iterable[tuple[str, float]]) -> float | None:
    machines: dict[str, list[float]] = {}
    for session, at in starts:
        machines.setdefault(session.partition("/")[0], []).append(at)
    paces = []
    for times in machines.values():
        apart = np.diff(np.sort(times))
        played = apart[apart <= _GAP * np.median(apart)] if len(apart) else apart
        if played.sum() > 0.0:
            paces.append(3600.0 * len(played) / float(played.sum()))
    return sum(paces) or None


# --- tables --------------------------------------------------------------------------------------


def match_rows(told: PromotionHistory) -> Iterator[tuple[object, ...]]:
    """One row of `MATCH_COLUMNS` for each assigned match, with the evidence after it."""
    seen: dict[int, tuple[float, float]] = {}
    for trial in told.trials:
        for one, better, worse in zip(
            trial.matches, trial.looks.better, trial.looks.worse, strict=False
        ):
            seen[one.order] = float(better), float(worse)
    for one in told.matches:
        a, r = one.assigned, one.resolved
        looks = [f"{value:.7g}" for value in seen.get(one.order, ())] or ["", ""]
        yield (
            one.order, a.match, a.at, a.test or "", a.arm, a.version, a.stratum,
            a.share, a.holdout, a.practice, a.uniform,
            "" if r is None else r.ending, one.result if one.counts else "", *looks,
        )  # fmt: skip
