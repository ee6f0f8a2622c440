"""Who plays, and why: the roles of versions, folded from the records of a run. Pure.

`state` has what is known at one moment, `coin` the next match; everything that changes a role is
here.

    shadow --nominated--> canary --better, or a person's word--> champion --rolled back--> retired
                            |                                     |    ^
                            |                             replaced|    |the champion after it
                            |                                     v    |was rolled back
                            +--harmful, hopeless, undecided,      former
                            |  misfit, stopped, closed
                            +--> retired

`fold` is a function of the records alone. It counts matches in the order of their assignment, and
only the longest prefix of assignments that are all resolved: fast losses end first, and would
otherwise be counted first. So the same records give the same state and the same verdicts, however
many processes read them, in whatever pieces, and whenever one is killed.

The incumbent is the champion, or the rules (version 0). A champion is watched without a coin
against what its test promised. An alarm halves its share and opens a recheck against the rules, in
which it stays unless the evidence says that it is worse. A test that was running is suspended: no
match is assigned to it, those that were still count for it, and it goes on if the champion stays.

A match counts for the test or recheck whose number it carries, while that is open. Matches that
were assigned before the rules or the scale of scores changed count for nothing. Matches of practice
count in `practice` alone.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from understudy.core.statistics import STAKES
from understudy.gates.promotion import trial as gate
from understudy.gates.promotion.coin import Shares, assigned, draw, practice_refused, shares
from understudy.gates.promotion.practice import anew, first_match, practised
from understudy.gates.promotion.records import (
    RULES,
    Assigned,
    Declared,
    Nominated,
    Ordered,
    Paired,
    Record,
    Resolved,
)
from understudy.gates.promotion.running import (
    Reign,
    ResolvedMatch,
    RunningTest,
    VersionRecord,
    alpha_of,
    asked,
    is_better,
    look,
    look_at_pairs,
    name_of,
    promise_in,
    trial_words,
    unasked,
    verdict_words,
    watch,
)
from understudy.gates.promotion.state import PromotionState, PromotionVerdict, VerdictKind

__all__ = [
    "PromotionState",
    "PromotionVerdict",
    "Reign",
    "RunningTest",
    "Shares",
    "VerdictKind",
    "VersionRecord",
    "assigned",
    "draw",
    "fold",
    "fold_owned",
    "name_of",
    "nomination_refused",
    "practice_refused",
    "shares",
    "snapshot",
    "trial_words",
]

_ENDINGS: dict[int, VerdictKind] = {
    gate.HARM: "harmful",
    gate.MISFIT: "misfit",
    gate.HOPELESS: "hopeless",
    gate.FUTILE: "undecided",
}
"""Of a test that does not promote."""
_BATCH = 512
"""Matches that are counted together at most: many looks cost little more than one."""
_CHAMPIONS = 10
"""Champions that are kept, the incumbent among them: so many rollbacks come before the rules."""
_PROMISE_MATCHES = 30
"""Matches of each arm of a recheck that a lower promise needs."""


def fold(
    state: PromotionState, records: Iterable[tuple[int, Record]]
) -> tuple[PromotionState, list[PromotionVerdict]]:
    """The state after these numbered records, and the verdicts on the way.

    `state` stays as it is. Records come in the order of their numbers, each of them once; how they
    are cut into calls makes no difference.
    """
    after = replace(
        state,
        reigns=list(state.reigns),
        records=dict(state.records),
        roles=dict(state.roles),
        open=dict(state.open),
        resolved=dict(state.resolved),
    )
    return after, fold_owned(after, records)


def fold_owned(
    state: PromotionState, records: Iterable[tuple[int, Record]]
) -> list[PromotionVerdict]:
    """`fold` that changes the state which it is given: a process that reads record by record spares
    the copies, which take 10 ms where a lost match holds up 70,000 others."""
    verdicts: list[PromotionVerdict] = []
    for sequence, record in records:
        if isinstance(record, Assigned):
            if record.arm == "practice" and not state.practice.begun:
                _count(state, verdicts)
                state.practice = replace(state.practice, begun=True, version=record.version)
                verdicts.append(PromotionVerdict(*first_match(sequence, record)))
            state.open[sequence] = record
        elif isinstance(record, Resolved):
            if record.order in state.open:  # else it was counted already: noted, not counted
                state.resolved.setdefault(record.order, record)
        else:
            _count(state, verdicts)
            _apply(state, sequence, record, verdicts)
        state.sequence = sequence
    _count(state, verdicts)
    return verdicts


def snapshot(state: PromotionState) -> PromotionState:
    """The state at this moment, while `fold_owned` goes on in another thread: all but `records`,
    `roles`, `open` and `resolved`. These are shared: one may look things up in them, and not walk
    through them."""
    return replace(state, reigns=list(state.reigns))


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
    other_rules, other_scale = state.rules != record.rules, state.score != record.score
    state.rules, state.score = record.rules, record.score
    state.policy, state.harm = record.policy, record.harm
    if (other_rules or other_scale) and not first:
        state.changed = sequence
        changed = [("the rules", other_rules), ("the scale of scores", other_scale)]
        words = f"{' and '.join(what for what, other in changed if other)} changed"
        if state.test is not None:
            _close(state, sequence, "closed", words, verdicts)
        state.records.pop(RULES, None)
        state.practice = anew(state.practice)
        if other_scale:  # no result and no promise can be compared with what comes
            state.records.clear()
            state.reigns = [
                Reign(one.version, one.settings, tests=one.tests) for one in state.reigns
            ]
        if state.recheck is not None:
            _open_recheck(state, sequence, f"the recheck begins again: {words}", verdicts)
    _stop_asking(state, sequence, verdicts)


def _nominate(
    state: PromotionState, sequence: int, record: Nominated, verdicts: list[PromotionVerdict]
) -> None:
    refusal = nomination_refused(state, record.version)
    if refusal:
        verdicts.append(PromotionVerdict(sequence, record.version, "refused", refusal))
        return
    reign = state.reigns[-1] = replace(state.reigns[-1], tests=state.reigns[-1].tests + 1)
    state.test = RunningTest(
        number=sequence,
        version=record.version,
        against=reign.version,
        alpha=alpha_of(record.settings, reign.tests),
        settings=record.settings,
        trial=gate.new_trial(),
        simulator=record.simulator,
    )
    state.roles[record.version] = "canary"
    state.experience, state.settings = record.experience, record.settings
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
    if state.is_paused:
        return "promotion is paused"
    if state.cool_down:
        return f"{state.cool_down} more matches without a test"
    return ""


def _pair(
    state: PromotionState, sequence: int, record: Paired, verdicts: list[PromotionVerdict]
) -> None:
    test = state.test
    if test is None or test.number != record.test or not test.simulator or not record.canary:
        return
    state.test, verdict = look_at_pairs(test, record)
    if verdict != gate.CONTINUE:
        _conclude(state, sequence, state.test, verdict, verdicts)


def _order(
    state: PromotionState, sequence: int, record: Ordered, verdicts: list[PromotionVerdict]
) -> None:
    said = f": {record.words}" if record.words else ""
    test, version = state.test, record.version
    refusal = ""
    if record.order in ("pause", "resume"):
        state.paused = record.order == "pause"
        kind: VerdictKind = "paused" if state.paused else "resumed"
        verdicts.append(PromotionVerdict(sequence, 0, kind, f"a person's word{said}"))
        _stop_asking(state, sequence, verdicts)
    elif record.order == "stop":
        if test is None:
            refusal = "nothing to stop: no version is being tested"
        elif version not in (0, test.version):
            refusal = f"nothing to stop: version {test.version} is being tested"
        else:
            words = f"a person stopped it{said}; {trial_words(test)}"
            _close(state, sequence, "stopped", words, verdicts)
    elif version == state.incumbent:
        refusal = "it is the champion already" if version else "the rules play already"
    elif version == RULES:
        _return_to_rules(
            state, sequence, f"a person gave the matches back to the rules{said}", verdicts
        )
    else:
        mine = test if test is not None and test.version == version else None
        if mine is None and test is not None:
            _close(state, sequence, "closed", f"a person approved version {version}", verdicts)
        words = f"a person approved it{said}" + (f"; {trial_words(mine)}" if mine else "")
        _promote(state, sequence, version, mine, words, verdicts)
    if refusal:
        verdicts.append(PromotionVerdict(sequence, version, "refused", refusal))


# --- counting ------------------------------------------------------------------------------------


def _count(state: PromotionState, verdicts: list[PromotionVerdict]) -> None:
    """Count the longest prefix of assignments that are resolved."""
    ready: list[ResolvedMatch] = []
    for number, coin in state.open.items():
        resolved = state.resolved.get(number)
        if resolved is None:
            break
        ready.append((number, coin, resolved))
    for number, _, _ in ready:
        del state.open[number], state.resolved[number]
    if len(ready) > len(state.open):  # a dictionary keeps the room of what was removed
        state.open, state.resolved = dict(state.open), dict(state.resolved)
    counted = [one for one in ready if one[2].ending != "void"]
    place = 0
    while place < len(counted):
        place += _count_some(state, counted[place : place + _BATCH], verdicts)


def _count_some(
    state: PromotionState, matches: Sequence[ResolvedMatch], verdicts: list[PromotionVerdict]
) -> int:
    """Count matches up to the first one that changes a role; returns how many.

    All looks are made first, at all matches. If one of them decides something before the last
    match, the matches up to there are counted instead.
    """
    last = len(matches) - 1
    watched, alarm = state.reigns[-1], None
    if state.recheck is None:
        watched, alarm = watch(watched, matches, since=state.changed)
    tests = [
        look(running, matches)
        for running in (state.test, state.recheck)
        if running is not None and not running.simulator
    ]
    places = [alarm, *(place for _, _, place in tests)]
    first = min((place for place in places if place is not None), default=last)
    if first < last:
        return _count_some(state, matches[: first + 1], verdicts)
    state.reigns[-1] = watched
    for running, _, _ in tests:
        if state.recheck is not None and state.recheck.number == running.number:
            state.recheck = running
        else:
            state.test = running
    _note(state, [one for one in matches if one[1].arm != "practice"])
    state.practice, changes = practised(
        state.practice, matches, harm=state.harm, since=state.changed
    )
    verdicts += [PromotionVerdict(*change) for change in changes]
    sequence = matches[last][0]
    for running, verdict, _ in tests:
        if verdict != gate.CONTINUE:
            _conclude(state, sequence, running, verdict, verdicts)
    if alarm is not None and state.reigns[-1] is watched:
        words = f"its results have fallen below the promised {watched.promise:.0%}"
        _open_recheck(state, sequence, words, verdicts)
    return len(matches)


def _note(state: PromotionState, matches: Sequence[ResolvedMatch]) -> None:
    records: dict[int, list[float]] = {}
    for number, coin, resolved in matches:
        known = coin.version == RULES or coin.version in state.roles
        if known and number > state.changed:
            records.setdefault(coin.version, []).append(resolved.result)
    for version, results in records.items():
        record = state.records.get(version, VersionRecord())
        # One after the other (`sum` compensates): every batch gives the same bits.
        total = functools.reduce(operator.add, results, record.total)
        state.records[version] = VersionRecord(record.matches + len(results), total)
    state.cool_down = max(0, state.cool_down - len(matches))


# --- changes of roles ----------------------------------------------------------------------------


def _conclude(
    state: PromotionState,
    sequence: int,
    running: RunningTest,
    verdict: int,
    verdicts: list[PromotionVerdict],
) -> None:
    words = verdict_words(running, verdict)
    if state.recheck is not None and running.number == state.recheck.number:
        if verdict == gate.HARM:
            _roll_back(state, sequence, words, verdicts)
        else:
            _keep(state, sequence, "misfit" if verdict == gate.MISFIT else "kept", words, verdicts)
    elif verdict == gate.BETTER and _waits_for_a_person(state):
        state.test = asked(running)
        why = "promotion is paused" if state.is_paused else "a person is asked"
        verdicts.append(
            PromotionVerdict(sequence, running.version, "asks", f"{why}; {words}", running.number)
        )
    elif verdict == gate.BETTER:
        _promote(state, sequence, running.version, running, words, verdicts)
    else:
        _close(state, sequence, _ENDINGS[verdict], words, verdicts)


def _waits_for_a_person(state: PromotionState) -> bool:
    return state.is_paused or state.policy == "manual"


def _stop_asking(state: PromotionState, sequence: int, verdicts: list[PromotionVerdict]) -> None:
    """Once promotion does not wait for a person any more, the canary that one was asked about is
    promoted if its evidence is still enough; else its test goes on."""
    test = state.test
    if test is None or not test.asks or _waits_for_a_person(state):
        return
    if is_better(test):
        words = verdict_words(test, gate.BETTER)
        _promote(state, sequence, test.version, test, words, verdicts)
    else:
        state.test = unasked(test)
        words = f"its evidence is no longer enough; {trial_words(state.test)}"
        verdicts.append(PromotionVerdict(sequence, test.version, "continued", words, test.number))


def _promote(
    state: PromotionState,
    sequence: int,
    version: int,
    test: RunningTest | None,
    words: str,
    verdicts: list[PromotionVerdict],
) -> None:
    """`test`: of this version; None: a person promotes it without one."""
    settings = test.settings if test is not None else state.settings
    promise = 0.0
    # Else a person has cut the test short: its means may come from a handful of matches. The means
    # of a simulator are of other opponents than those of a bot.
    if test is not None and not test.simulator and (test.asks or is_better(test)):
        promise = promise_in(test.trial)
    if state.incumbent != RULES:
        state.roles[state.incumbent] = "former"
    rules, *others = (one for one in state.reigns if one.version != version)
    state.reigns = [rules, *others[1 - _CHAMPIONS :]]
    state.reigns.append(Reign(version, settings, promise=promise))
    state.roles[version] = "champion"
    state.test = state.recheck = None
    state.harmful = 0
    number = test.number if test is not None else 0
    verdicts.append(PromotionVerdict(sequence, version, "promoted", words, number))


def _close(
    state: PromotionState,
    sequence: int,
    kind: VerdictKind,
    words: str,
    verdicts: list[PromotionVerdict],
) -> None:
    assert state.test is not None
    state.harmful = state.harmful + 1 if kind == "harmful" else 0
    state.cool_down = max(state.cool_down, _pause_after(state.harmful))
    state.roles[state.test.version] = "retired"
    verdicts.append(PromotionVerdict(sequence, state.test.version, kind, words, state.test.number))
    state.test = None


def _pause_after(harmful: int) -> int:
    """Matches without a test after so many harmful versions in a row: none after one, since chance
    stops good versions too, then 25, 50, 100 … up to 1,600. A learner that has lost its way would
    else spend a share of all matches on versions that are worse than the champion."""
    return 0 if harmful < 2 else min(25 << (harmful - 2), 1600)


def _return_to_rules(
    state: PromotionState, sequence: int, words: str, verdicts: list[PromotionVerdict]
) -> None:
    """No champion is left, and none of the former ones returns."""
    champion = state.incumbent
    if state.test is not None:
        _close(state, sequence, "closed", words, verdicts)
    for reign in state.reigns[1:]:
        state.roles[reign.version] = "retired"
    del state.reigns[1:]
    state.recheck = None
    verdicts.append(PromotionVerdict(sequence, champion, "rolled back", words))


def _open_recheck(
    state: PromotionState, sequence: int, words: str, verdicts: list[PromotionVerdict]
) -> None:
    """Both sides need evidence of `harm`: the champion falls by it, and is cleared by it at once;
    without either it stays after `long` matches."""
    reign = state.reigns[-1]
    state.recheck = RunningTest(
        number=sequence,
        version=reign.version,
        against=RULES,
        alpha=1.0 / reign.settings.harm,
        settings=msgspec.structs.replace(reign.settings, promising=math.inf, hopeless=0.0),
        trial=gate.new_trial(),
    )
    verdicts.append(PromotionVerdict(sequence, reign.version, "alarm", words, sequence))


def _keep(
    state: PromotionState,
    sequence: int,
    kind: VerdictKind,
    words: str,
    verdicts: list[PromotionVerdict],
) -> None:
    """The recheck is over, and the champion stays. From now on it is held to what it has shown
    there, if that is less: opponents may have become stronger, for the rules too. A handful of
    matches lowers no promise: a champion that is rechecked often would in the end promise nothing.
    """
    assert state.recheck is not None
    reign, recheck = state.reigns[-1], state.recheck
    promise = reign.promise
    if recheck.trial.arm_counts.min() >= _PROMISE_MATCHES:
        shown = promise_in(recheck.trial)
        promise = min(promise, shown) if promise else shown
    state.reigns[-1] = replace(reign, promise=promise, alarm=np.zeros(len(STAKES)))
    state.recheck = None
    if promise:
        words = f"{words}; from now on it is held to {promise:.0%}"
    verdicts.append(PromotionVerdict(sequence, reign.version, kind, words, recheck.number))


def _roll_back(
    state: PromotionState, sequence: int, words: str, verdicts: list[PromotionVerdict]
) -> None:
    assert state.recheck is not None
    reign, number = state.reigns.pop(), state.recheck.number
    state.roles[reign.version] = "retired"
    state.recheck = None
    if state.test is not None:
        _close(state, sequence, "closed", "the champion was rolled back", verdicts)
    if state.incumbent != RULES:
        state.roles[state.incumbent] = "champion"
        state.reigns[-1] = replace(state.reigns[-1], alarm=np.zeros(len(STAKES)))
    state.cool_down = reign.settings.cool_down
    words = f"{words}; {name_of(state.incumbent)} again"
    verdicts.append(PromotionVerdict(sequence, reign.version, "rolled back", words, number))
