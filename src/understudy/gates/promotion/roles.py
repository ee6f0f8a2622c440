"""Who plays, and why: the roles of versions, folded from the records of a run. Pure.

    shadow --nominated--> canary --better or approved--> champion --rolled back--> retired
                            |                               |
                            +--harm, futile, stopped--------+--replaced--> former champion

`fold` is a function of the records alone. It counts matches in the order of their assignment, and
only the longest prefix of assignments that are all resolved: fast losses end first, and would
otherwise be counted first. So the same records give the same state and the same verdicts, however
many processes read them, and whenever one is killed.

The incumbent is the champion, or the rules (version 0). A champion is watched without a coin
against what its test promised; an alarm halves its share and opens a recheck against the rules, in
which it stays unless the evidence says that it is worse.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.statistics import STAKES, detect, wilson
from understudy.gates.promotion import trial as gate
from understudy.gates.promotion.evidence import evidence
from understudy.gates.promotion.records import (
    RULES,
    Arm,
    Assigned,
    Declared,
    Nominated,
    Ordered,
    Paired,
    PolicyName,
    Record,
    Resolved,
    TrialSettings,
)
from understudy.gates.promotion.trial import Trial

VerdictKind: TypeAlias = Literal[
    "nominated", "refused", "promoted", "asks", "harmful", "undecided", "stopped", "closed",
    "alarm", "kept", "rolled back", "paused", "resumed",
]  # fmt: skip
_BATCH = 512
"""Matches that are counted together at most: many looks cost little more than one."""
_REIGN_SUM = 5.6
"""Sum of k ** -1.2 over all k: what the tests of a reign spend adds up to `reign_alpha`."""


class PromotionVerdict(NamedTuple):
    """Something that the gate decided, and the record at which it did."""

    sequence: int
    version: int
    kind: VerdictKind
    words: str
    test: int = 0


@dataclass
class VersionRecord:
    """Results that were counted for one version, whoever it met."""

    matches: int = 0
    total: float = 0.0

    @property
    def mean(self) -> float:
        return self.total / max(self.matches, 1)


@dataclass
class RunningTest:
    """A test of a canary against the incumbent, or a recheck of a champion against the rules."""

    number: int
    version: int
    against: int
    alpha: float
    settings: TrialSettings
    trial: Trial
    strata: dict[str, int] = field(default_factory=dict)
    pairs: NDArray | None = None
    """Log capital [L] of pairs; None: judged by assigned matches."""
    paired: int = 0
    asks: bool = False
    """Better by evidence, and a person is asked."""


@dataclass
class Reign:
    """A champion, and what it promised."""

    version: int
    settings: TrialSettings
    promise: float = 0.0
    """The mean result below which it raises an alarm; 0: none is known."""
    tests: int = 0
    """Tests of canaries against it so far."""
    alarm: NDArray = field(default_factory=lambda: np.zeros(len(STAKES)))
    """Evidence of each stake that it has fallen below its promise."""


@dataclass
class PromotionState:
    """Who plays, what is tried, and what is known of every version."""

    sequence: int = 0
    """The last record that was folded."""
    rules: str | None = None
    score: tuple[float, float] | None = None
    policy: PolicyName = "auto"
    paused: bool = False
    reigns: list[Reign] = field(default_factory=lambda: [Reign(RULES, TrialSettings())])
    """The rules, former champions whose evidence stands, and the incumbent."""
    test: RunningTest | None = None
    recheck: RunningTest | None = None
    cool_down: int = 0
    records: dict[int, VersionRecord] = field(default_factory=dict)
    roles: dict[int, str] = field(default_factory=dict)
    """Of every version that was ever tested or promoted: canary, champion, former, retired."""
    experience: int = 0
    """Of the version that was nominated last."""
    open: dict[int, Assigned] = field(default_factory=dict)
    """Assigned and not counted yet, by number, in the order of assignment."""
    resolved: dict[int, Resolved] = field(default_factory=dict)
    """Their endings, as far as they are over."""

    @property
    def incumbent(self) -> int:
        return self.reigns[-1].version

    @property
    def champion(self) -> int | None:
        """None: the rules play."""
        return self.incumbent or None


class Shares(NamedTuple):
    """What the coin of the next match decides."""

    test: int
    canary: int | None
    incumbent: int
    share: float
    """The probability of the canary, given that the match is not of the holdout."""
    holdout: float


def shares(state: PromotionState) -> Shares:
    """How the next match is to be assigned."""
    incumbent = state.reigns[-1]
    holdout = 0.0 if incumbent.version == RULES else incumbent.settings.holdout
    if state.recheck is not None:
        return Shares(state.recheck.number, incumbent.version, RULES, (1.0 - holdout) / 2, 0.0)
    test = state.test
    if test is None or test.pairs is not None:
        return Shares(0, None, incumbent.version, 0.0, holdout)
    share = float(gate.canary_share(test.trial, test.settings))
    return Shares(test.number, test.version, incumbent.version, share, holdout)


def draw(coin: Shares, uniform: float) -> tuple[Arm, int]:
    """The arm and the version of a match whose coin came to `uniform`, in [0, 1)."""
    if uniform < coin.holdout:
        return "holdout", RULES
    rest = (uniform - coin.holdout) / (1.0 - coin.holdout)
    if coin.canary is not None and rest < coin.share:
        return "canary", coin.canary
    return "incumbent", coin.incumbent


def fold(
    state: PromotionState, records: Iterable[tuple[int, Record]]
) -> tuple[PromotionState, list[PromotionVerdict]]:
    """The state after these numbered records, and the verdicts on the way."""
    after = copy.deepcopy(state)
    verdicts: list[PromotionVerdict] = []
    for sequence, record in records:
        if isinstance(record, Assigned):
            after.open[sequence] = record
        elif isinstance(record, Resolved):
            if record.order in after.open:  # else it was counted already: noted, not counted
                after.resolved.setdefault(record.order, record)
        else:
            _count(after, verdicts)
            _apply(after, sequence, record, verdicts)
        after.sequence = sequence
    _count(after, verdicts)
    return after, verdicts


# --- records that are no matches -----------------------------------------------------------------


def _apply(
    state: PromotionState, sequence: int, record: Record, verdicts: list[PromotionVerdict]
) -> None:
    match record:
        case Declared():
            _declare(state, sequence, record, verdicts)
        case Nominated():
            _nominate(state, sequence, record, verdicts)
        case Paired():
            _pair(state, sequence, record, verdicts)
        case Ordered():
            _order(state, sequence, record, verdicts)


def _declare(
    state: PromotionState, sequence: int, record: Declared, verdicts: list[PromotionVerdict]
) -> None:
    first = state.rules is None
    changed = [
        what
        for what, old, new in (
            ("rules", state.rules, record.rules),
            ("scale of scores", state.score, record.score),
        )
        if old != new
    ]
    if changed and not first:
        words = f"the {' and the '.join(changed)} changed"
        if state.test is not None:
            _close(state, sequence, "closed", words, verdicts)
        state.recheck = None
        if "scale of scores" in changed:
            state.records.clear()
        state.records.pop(RULES, None)
    state.rules, state.score, state.policy = record.rules, record.score, record.policy


def _nominate(
    state: PromotionState, sequence: int, record: Nominated, verdicts: list[PromotionVerdict]
) -> None:
    refusal = nomination_refused(state, record.version)
    if refusal:
        verdicts.append(PromotionVerdict(sequence, record.version, "refused", refusal))
        return
    reign = state.reigns[-1]
    reign.tests += 1
    known = state.records.get(reign.version, VersionRecord())
    state.test = RunningTest(
        number=sequence,
        version=record.version,
        against=reign.version,
        alpha=alpha_of(record.settings, reign.tests),
        settings=record.settings,
        trial=gate.new_trial(_promise_of(known)),
        pairs=np.zeros(len(STAKES)) if record.simulator else None,
    )
    state.roles[record.version] = "canary"
    state.experience = record.experience
    verdicts.append(
        PromotionVerdict(sequence, record.version, "nominated", record.reason, sequence)
    )


def nomination_refused(state: PromotionState, version: int) -> str:
    """Why this version cannot be tested now; empty: it can."""
    if version == RULES:
        return "the rules are no candidate"
    if version in state.roles:
        return "it was tested before"
    if state.test is not None:
        return f"version {state.test.version} is being tested"
    if state.recheck is not None:
        return f"champion {state.recheck.version} is being rechecked"
    if state.paused or state.policy == "paused":
        return "promotion is paused"
    if state.cool_down:
        return f"{state.cool_down} more matches after the rollback"
    return ""


def alpha_of(settings: TrialSettings, test: int) -> float:
    """The chance that test number `test` of a reign may spend."""
    if settings.spend == "each":
        return settings.alpha
    return float(settings.reign_alpha * test**-1.2 / _REIGN_SUM)


def _pair(
    state: PromotionState, sequence: int, record: Paired, verdicts: list[PromotionVerdict]
) -> None:
    test = state.test
    if test is None or test.number != record.test or test.pairs is None:
        return
    stakes = np.array(STAKES)
    for canary, incumbent in zip(record.canary, record.incumbent, strict=True):
        test.pairs = test.pairs + np.log1p(stakes * (canary - incumbent))
        test.paired += 1
        if evidence(test.pairs) >= 1.0 / test.alpha:
            _better(state, sequence, test, verdicts)
            return
        if test.paired >= test.settings.longest:
            _close(state, sequence, "undecided", f"{test.paired} pairs without a verdict", verdicts)
            return


def _order(
    state: PromotionState, sequence: int, record: Ordered, verdicts: list[PromotionVerdict]
) -> None:
    if record.order in ("pause", "resume"):
        state.paused = record.order == "pause"
        kind: VerdictKind = "paused" if state.paused else "resumed"
        verdicts.append(PromotionVerdict(sequence, 0, kind, record.words))
    elif record.order == "stop":
        if state.test is not None:
            _close(state, sequence, "stopped", "a person stopped it", verdicts)
    elif record.version not in (RULES, state.incumbent):
        if state.test is not None and state.test.version != record.version:
            _close(state, sequence, "closed", "a person promoted another version", verdicts)
        _promote(state, sequence, record.version, "a person approved it", verdicts)


# --- counting ------------------------------------------------------------------------------------


def _count(state: PromotionState, verdicts: list[PromotionVerdict]) -> None:
    """Count the longest prefix of assignments that are resolved."""
    ready: list[tuple[int, Assigned, Resolved]] = []
    for number, assigned in state.open.items():
        resolved = state.resolved.get(number)
        if resolved is None:
            break
        ready.append((number, assigned, resolved))
    for number, _, _ in ready:
        del state.open[number], state.resolved[number]
    counted = [one for one in ready if one[2].ending != "void"]
    while counted:
        counted = counted[_count_some(state, counted[:_BATCH], verdicts) :]


def _count_some(
    state: PromotionState,
    matches: Sequence[tuple[int, Assigned, Resolved]],
    verdicts: list[PromotionVerdict],
) -> int:
    """Count matches up to the first one that changes a role; returns how many."""
    running = state.recheck or state.test
    counted, verdict = len(matches), gate.CONTINUE
    rows: list[int] = []
    if running is not None and running.pairs is None:
        rows = [
            row
            for row, (_, assigned, _) in enumerate(matches)
            if assigned.test == running.number and assigned.arm != "holdout"
        ]
    looks = None
    if running is not None and rows:
        columns = _columns(running, [matches[row] for row in rows])
        trial, looks = gate.advance(running.trial, running.settings, alpha=running.alpha, **columns)
        hits = np.flatnonzero(looks.verdict != gate.CONTINUE)
        # In a recheck, and while a person is asked, being better ends nothing.
        if len(hits):
            counted, verdict = rows[hits[0]] + 1, int(looks.verdict[hits[0]])
    alarm = _alarm_at(state, matches[:counted]) if state.recheck is None else None
    if alarm is not None and alarm + 1 < counted:
        counted, verdict = alarm + 1, gate.CONTINUE
    if running is not None and rows:
        within = sum(row < counted for row in rows)
        if within < len(rows):
            columns = {name: column[:within] for name, column in columns.items()}
            trial, _ = gate.advance(running.trial, running.settings, alpha=running.alpha, **columns)
        running.trial = trial if within else running.trial
    _note(state, matches[:counted])
    sequence = matches[counted - 1][0]
    if verdict != gate.CONTINUE and running is not None:
        _conclude(state, sequence, running, verdict, verdicts)
    elif alarm is not None and alarm < counted:
        _open_recheck(state, sequence, verdicts)
    return counted


def _columns(
    running: RunningTest, matches: Sequence[tuple[int, Assigned, Resolved]]
) -> dict[str, NDArray]:
    """The matches of a test as columns [N]; new strata get a number."""
    for _, assigned, _ in matches:
        running.strata.setdefault(assigned.stratum, len(running.strata))
    if len(running.strata) > len(running.trial.totals):
        running.trial = gate.with_strata(running.trial, len(running.strata))
    return {
        "arms": np.array([float(one.arm == "canary") for _, one, _ in matches]),
        "shares": np.array([one.share for _, one, _ in matches]),
        "results": np.array([one.result for _, _, one in matches]),
        "strata": np.array([running.strata[one.stratum] for _, one, _ in matches]),
    }


def _alarm_at(
    state: PromotionState, matches: Sequence[tuple[int, Assigned, Resolved]]
) -> int | None:
    """Follow the champion's own results; the place of the match at which it raises an alarm."""
    reign = state.reigns[-1]
    if reign.version == RULES or not reign.promise:
        return None
    for place, (_, assigned, resolved) in enumerate(matches):
        if assigned.version == reign.version:
            gained = gate.gains_below(np.array([resolved.result]), np.array(reign.promise))
            reign.alarm = detect(reign.alarm, gained)
            if reign.alarm.mean() >= reign.settings.alarm:
                return place
    return None


def _note(state: PromotionState, matches: Sequence[tuple[int, Assigned, Resolved]]) -> None:
    for _, assigned, resolved in matches:
        record = state.records.setdefault(assigned.version, VersionRecord())
        record.matches += 1
        record.total += resolved.result
    state.cool_down = max(0, state.cool_down - len(matches))


# --- changes of roles ----------------------------------------------------------------------------


def _conclude(
    state: PromotionState,
    sequence: int,
    running: RunningTest,
    verdict: int,
    verdicts: list[PromotionVerdict],
) -> None:
    words = test_words(running)
    if running is state.recheck:
        if verdict == gate.HARM:
            _roll_back(state, sequence, words, verdicts)
        else:
            state.recheck = None
            state.reigns[-1].alarm = np.zeros(len(STAKES))
            verdicts.append(
                PromotionVerdict(sequence, running.version, "kept", words, running.number)
            )
    elif verdict == gate.BETTER:
        _better(state, sequence, running, verdicts)
    elif verdict == gate.HARM:
        _close(state, sequence, "harmful", words, verdicts)
    else:
        _close(state, sequence, "undecided", words, verdicts)


def _better(
    state: PromotionState, sequence: int, test: RunningTest, verdicts: list[PromotionVerdict]
) -> None:
    if state.policy == "manual" or state.paused or state.policy == "paused":
        if not test.asks:
            test.asks = True
            verdicts.append(
                PromotionVerdict(sequence, test.version, "asks", test_words(test), test.number)
            )
        return
    _promote(state, sequence, test.version, test_words(test), verdicts)


def _promote(
    state: PromotionState,
    sequence: int,
    version: int,
    words: str,
    verdicts: list[PromotionVerdict],
) -> None:
    test = state.test if state.test is not None and state.test.version == version else None
    promise = _promise_in(test)
    if state.incumbent != RULES:
        state.roles[state.incumbent] = "former"
    settings = test.settings if test is not None else state.reigns[-1].settings
    state.reigns.append(Reign(version, settings, promise=promise))
    state.roles[version] = "champion"
    state.test = state.recheck = None
    verdicts.append(
        PromotionVerdict(sequence, version, "promoted", words, test.number if test else 0)
    )


def _close(
    state: PromotionState,
    sequence: int,
    kind: VerdictKind,
    words: str,
    verdicts: list[PromotionVerdict],
) -> None:
    assert state.test is not None
    state.roles[state.test.version] = "retired"
    verdicts.append(PromotionVerdict(sequence, state.test.version, kind, words, state.test.number))
    state.test = None


def _open_recheck(state: PromotionState, sequence: int, verdicts: list[PromotionVerdict]) -> None:
    reign = state.reigns[-1]
    state.recheck = RunningTest(
        number=sequence,
        version=reign.version,
        against=RULES,
        alpha=reign.settings.alpha,
        settings=reign.settings,
        trial=gate.new_trial(),
    )
    words = f"its results have fallen below the promised {reign.promise:.0%}"
    verdicts.append(PromotionVerdict(sequence, reign.version, "alarm", words, sequence))


def _roll_back(
    state: PromotionState, sequence: int, words: str, verdicts: list[PromotionVerdict]
) -> None:
    reign = state.reigns.pop()
    state.roles[reign.version] = "retired"
    state.recheck = None
    if state.test is not None:
        _close(state, sequence, "closed", "the champion was rolled back", verdicts)
    if state.incumbent != RULES:
        state.roles[state.incumbent] = "champion"
        state.reigns[-1].alarm = np.zeros(len(STAKES))
    state.cool_down = reign.settings.cool_down
    to = f"version {state.incumbent}" if state.incumbent else "the rules"
    verdicts.append(
        PromotionVerdict(sequence, reign.version, "rolled back", f"{words}; {to} again")
    )


def _promise_of(record: VersionRecord) -> float:
    """The lower bound of the incumbent's record, for the alarm of a canary; 0: too few matches."""
    return wilson(record.total, record.matches)[0] if record.matches >= 20 else 0.0


def _promise_in(test: RunningTest | None) -> float:
    """What a promoted version is held to: half of the gain that its test has shown."""
    if test is None or not test.trial.arm_counts.all():
        return 0.0
    incumbent, canary = test.trial.arm_totals / test.trial.arm_counts
    return float((incumbent + canary) / 2)


def test_words(running: RunningTest) -> str:
    """The figures of a test, in words."""
    if running.pairs is not None:
        return f"{running.paired} pairs, evidence {float(evidence(running.pairs)):.1f}"
    trial = running.trial
    incumbent, canary = trial.arm_totals / np.maximum(trial.arm_counts, 1)
    counts = trial.arm_counts.astype(int)
    return (
        f"version {running.version} {canary:.0%} of {counts[1]}, "
        f"{f'version {running.against}' if running.against else 'rules'} "
        f"{incumbent:.0%} of {counts[0]}; evidence for it {float(evidence(trial.better)):.1f}, "
        f"against it {float(evidence(trial.worse)):.1f}"
    )
