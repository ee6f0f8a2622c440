"""The promotion of a run in words: who plays, what is tried, what is missing. ASCII.

`report` puts the short form into `understudy status`; `understudy promotion` prints the long one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from understudy.telemetry.layout import Column, Width, hint, labelled, table_lines
from understudy.telemetry.promotion_status import (
    ArmResult,
    ExpectedVerdict,
    PracticeStatus,
    PromotionStatus,
    TrialStatus,
    VerdictNote,
)
from understudy.telemetry.text import Lines, duration, evidence_text, many, plain, stamp

_LABEL = 12
_BAR = 20
_HARDLY = 0.01
"""A chance of promotion below it counts as none."""
_NEW_EXPERIENCE = "a version with enough new experience, which is then tried"


def player_name(version: int) -> str:
    """`version 12`; version 0 is `the rules`."""
    return f"version {version}" if version else "the rules"


def playing_text(status: PromotionStatus) -> str:
    """Who plays the matches of mode `auto`, in one sentence without an end."""
    if status.pinned is not None:
        plays = "plays" if status.pinned else "play"
        return f"{player_name(status.pinned)}, pinned by a person, {plays} every match"
    if status.policy == "latest":
        return "the newest version plays every match, without a test"
    champion = f"version {status.incumbent} (champion)" if status.incumbent else "the rules"
    tried = next((one for one in status.tests if one.share), None)
    if tried is not None and tried.recheck:
        return (
            f"{champion} plays {tried.share:.0%} of the matches and is rechecked against the rules"
        )
    plays = "plays" if status.incumbent else "play"
    parts = []
    if tried is not None:
        share = tried.share * (1.0 - status.holdout) * (1.0 - status.practice_now)
        parts.append(f"version {tried.version} is tried in {share:.0%} of the matches")
    elif status.tests:
        parts.append(f"version {status.tests[-1].version} is tried in simulated matches")
    if status.practice_now:
        share = status.practice_now * (1.0 - status.holdout)
        parts.append(f"the newest version practises in {share:.0%}")
    if status.incumbent and status.holdout:
        parts.append(f"the rules keep {status.holdout:.0%} of the matches")
    if not parts:
        return f"{champion} {plays} every match; no version is tried now"
    return f"{champion} {plays}; {', '.join(parts)}"


def role_text(status: PromotionStatus) -> str:
    """What the player is that plays, and which version is tested beside it, in a few words."""
    if status.pinned is not None:
        return "pinned by a person"
    if status.policy == "latest":
        return "without a test"
    test = next((one for one in status.tests if not one.recheck), None)
    if any(one.recheck for one in status.tests):
        beside = "rechecked against the rules"
    elif test is not None:
        beside = f"version {test.version} under test"
    else:
        beside = "the newest version practises" if status.practice_now else "no version under test"
    return f"champion; {beside}" if status.incumbent else beside


def why_text(status: PromotionStatus) -> str:
    """Why that is so."""
    if status.pinned is not None:
        return "a person pinned it"
    if status.policy == "latest":
        return "promotion.policy is 'latest'"
    return status.why


def promotion_lines(status: PromotionStatus, *, mode: str = "auto") -> Lines:
    """The short form: who plays matches of mode `auto`, and the tests that run."""
    other = "" if _holds_in(mode, status) else "in mode auto "
    rows = [f"{other}{status.stage}: {status.line}" if status.line else playing_text(status)]
    if status.pinned is None:
        rows += [trial_text(one) for one in status.tests]
    if status.paused:
        rows.append("promotion is paused")
    elif not status.tests and status.cool_down:
        rows.append(_missing_test(status))
    return [("" if index else "Promotion", status.in_units(row)) for index, row in enumerate(rows)]


def _holds_in(mode: str, status: PromotionStatus) -> bool:
    """Whether evidence decides in what was started last; an unknown mode counts as such."""
    return mode in ("", "auto") or (mode == "serve" and status.served)


def trial_text(one: TrialStatus) -> str:
    """A test in one line."""
    text = (
        f"mean result: {_arm(one.canary)}, {_arm(one.incumbent)}; E {evidence_text(one.better)} of "
        f"{one.better_enough:.0f} for it, {evidence_text(one.worse)} of {one.worse_enough:g} "
        "against it"
    )
    return f"{text}; a person is asked" if one.asks else text


def practice_text(practice: PracticeStatus, *, against: int) -> str:
    """What practice shows. None of it counts for a test."""
    text = f"{many(practice.played, 'match', 'matches')}, which count for no test"
    if practice.compared and practice.matches:
        text += f"; {_lately(practice.mean, practice.matches, practice.recent)}"
        if practice.played > practice.recent:
            text += f", {practice.played_mean:.0%} in all {practice.played:,}"
        other = _lately(practice.incumbent_mean, practice.incumbent_matches, practice.recent)
        text += f"; {player_name(against)} {other}"
    if practice.suspended:
        return f"{text}; suspended for {_more(practice.suspended)}"
    return f"{text}; E {evidence_text(practice.worse)} of {practice.worse_enough:g} against it"


def _lately(mean: float, matches: int, recent: int) -> str:
    """A mean in which older results are lighter, so that it is of about the `recent` ones."""
    return f"{mean:.0%} in {matches if matches <= recent else f'about the last {recent}'}"


def _arm(one: ArmResult) -> str:
    return f"{player_name(one.version)} {one.mean:.0%} of {one.matches:,}"


def describe_promotion(
    status: PromotionStatus, *, run: str, at: float, mode: str = "auto", width: Width = None
) -> str:
    """The long form: what `understudy promotion status` prints on a console of this width.

    `mode` is that of the bot that started last.
    """
    wrapped = LabelledText(width)
    lines = wrapped("Run", f"{plain(run, limit=4096)}   {stamp(at)}")
    if not _holds_in(mode, status):
        lines += wrapped("Mode", f"{plain(mode)}; what follows holds for matches of mode auto")
    said = status.in_units
    lines += wrapped("Stage", f"{status.stage}: {status.line}" if status.line else status.stage)
    lines += wrapped("Plays", said(playing_text(status)))
    lines += wrapped("Why", said(plain(why_text(status), limit=400)))
    lines += wrapped("Policy", _policy(status))
    if status.practice is not None:
        practice = practice_text(status.practice, against=status.incumbent)
        lines += wrapped("Practice", said(practice))
    for one in status.tests:
        lines += ["", *_test_lines(one, at, unit=said("matches"), wrapped=wrapped)]
        asks = status.paused or status.policy == "manual"
        words = next_text(status) if status.never else expect_text(one, asks=asks)
        lines += wrapped("Expect", said(words))
    lines.append("")
    if not status.tests and (words := next_text(status)):
        lines += wrapped("Expect", said(words))
    lines += wrapped("Missing", said(_missing(status)))
    lines += wrapped("Open", said(_open(status)))
    if status.results:
        lines += ["", *_result_lines(status.results, unit=said("matches"), width=width)]
    if status.verdicts:
        notes = [msgspec.structs.replace(one, words=said(one.words)) for one in status.verdicts]
        lines += ["", *verdict_lines(notes, wrapped=wrapped)]
    hints = [
        line
        for words in _hints(status, plain(run, limit=4096))
        for line in hint(words, width=width)
    ]
    return "\n".join([*lines, "", *hints] if hints else lines)


def _policy(status: PromotionStatus) -> str:
    words = {
        "auto": "evidence promotes",
        "manual": "a person is asked before each promotion",
        "paused": "no tests and no promotions",
        "latest": "every new version plays, without evidence",
    }.get(status.policy, "")
    text = f"{status.policy}: {words}"
    if status.paused and status.policy != "paused":
        text += "; paused by a person: harm stops and rollbacks go on"
    return text


def _test_lines(one: TrialStatus, at: float, *, unit: str, wrapped: LabelledText) -> list[str]:
    ago = f"since {stamp(one.since)} ({duration(max(at - one.since, 0.0))} ago)"
    against = player_name(one.against)
    name = "Recheck" if one.recheck else "Test"
    lines = wrapped(f"{name} {one.number}", f"version {one.version} against {against}, {ago}")
    for arm in (one.canary, one.incumbent):
        words = f"{arm.mean:>4.0%} of {arm.matches:,} ({arm.low:.0%} to {arm.high:.0%})"
        lines += wrapped("", f"{player_name(arm.version):<14}{words if arm.matches else '-'}")
    if one.interval is not None and one.canary.matches and one.incumbent.matches:
        low, high = (100 * bound for bound in one.interval)
        found = 100 * (one.canary.mean - one.incumbent.mean)
        words = f"{found:+.0f} points ({low:+.0f} to {high:+.0f}, {one.confidence:.0%} confidence)"
        lines += wrapped("", f"{'difference':<14}{words}")
    for side, value, enough in (
        ("better", one.better, one.better_enough),
        ("worse", one.worse, one.worse_enough),
    ):
        words = f"E {evidence_text(value):>5} of {enough:<4.0f} {_bar(value, enough)}"
        lines += wrapped("", f"{side:<14}{words}")
    return lines + wrapped("", f"{'pairs' if one.simulator else unit:<14}{_length(one)}")


def _length(one: TrialStatus) -> str:
    if one.promising is None:
        return f"{one.matches:,}; it ends after {one.long:,} at the latest"
    return (
        f"{one.matches:,}; it ends after {one.long:,} ({one.longest:,} while E is "
        f"{one.promising:g} or more, {one.short:,} if E is below {one.hopeless:g})"
    )


def expect_text(one: TrialStatus, *, asks: bool = False) -> str:
    """When a verdict is to be expected, and which. `asks`: a person is asked before a promotion."""
    if one.asks:
        return "a person's word: the evidence that it is better was enough"
    expected = one.expected
    if expected is None:
        return "too early to say: a few pairs are needed"
    promoted = "kept" if one.recheck else "better, and a person asked" if asks else "promoted"
    worse, neither = (
        ("rolled back", "kept undecided")
        if one.recheck
        else ("stopped as worse", "ended undecided")
    )
    ends = {"better": promoted, "worse": worse, "undecided": neither}
    unit = "pair" if one.simulator else "match"
    text = f"{ends[expected.kind]} {_when(expected, unit)}, {expected.assumption}"
    if not one.share and not one.simulator:
        text = f"after the recheck: {text}"
    if not one.recheck and expected.better < _HARDLY:
        text = f"promoted: never, at this difference; {text}"
    neither_share = max(1.0 - expected.better - expected.worse, 0.0)
    chances = (
        f"{expected.better:.0%} {promoted}, {expected.worse:.0%} {worse}, "
        f"{neither_share:.0%} {neither}"
    )
    return f"{text}. {_range(expected)}: {chances}"


def next_text(status: PromotionStatus) -> str:
    """What to expect where no test runs."""
    if status.never:
        return f"no verdict: {status.never}"
    expected = status.next_test
    if expected is None:
        return ""
    return (
        f"once a test begins, a verdict {_when(expected, 'match')}, {expected.assumption}. "
        f"{_range(expected)}, {expected.better:.0%} with a promotion"
    )


def _when(expected: ExpectedVerdict, unit: str) -> str:
    units = unit if expected.matches == 1 else {"pair": "pairs", "match": "matches"}[unit]
    text = f"in about {expected.matches:,} more {units}"
    if expected.seconds is None:
        return text
    return f"{text} ({duration(expected.seconds)} at the pace so far)"


def _range(expected: ExpectedVerdict) -> str:
    text = f"8 of 10 such tests end after {expected.fewest:,} to {expected.most:,} more"
    if expected.pace is None:
        return text
    first, last = (
        duration(3600.0 * matches / expected.pace) for matches in (expected.fewest, expected.most)
    )
    return f"{text} ({first} to {last})"


def _missing(status: PromotionStatus) -> str:
    if status.pinned is not None:
        return "nothing is tried while a champion is pinned"
    if status.policy == "latest":
        return "nothing: no version is tried"
    one = next((one for one in status.tests if not one.recheck), None)
    if one is None:
        if status.tests:
            return "no version is tried while the champion is rechecked"
        return _missing_test(status)
    if one.asks:
        return f"a person's word on version {one.version}"
    if not one.share and not one.simulator:
        return f"the test of version {one.version} waits for the recheck"
    times = one.better_enough / max(one.better, 1e-9)
    return f"{evidence_text(times)} times as much evidence that version {one.version} is better"


def _missing_test(status: PromotionStatus) -> str:
    if status.paused:
        return "promotion is paused: no test begins"
    if status.cool_down:
        return f"{status.cool_down:,} more matches before another test"
    practice, against = status.practice, player_name(status.incumbent)
    if status.newest == 0:
        return "a first version"
    if not status.practice_share:
        return status.waits or _NEW_EXPERIENCE
    if practice is None:
        agreed = "" if status.agreement is None else f" (now {status.agreement:.0%})"
        begins = f"practice: it begins at {status.agreement_enough:.0%} agreement with the rules"
        if status.compared_enough:
            compared = f"once {status.compared_enough:,} of their decisions were compared"
            return f"{begins}{agreed}, or {compared}"
        learned = "" if status.learned is None else f" (now {status.learned:,})"
        return f"{begins}{agreed}, or with {status.learned_enough:,} matches learned from{learned}"
    if practice.suspended:
        return f"practice: it is suspended for {_more(practice.suspended)}"
    if not practice.compared:
        return (
            f"{practice.needed:,} compared matches of each: practice has {practice.matches:,}, "
            f"{against} {practice.incumbent_matches:,}"
        )
    if not practice.promising:
        return (
            f"practice that looks better: {practice.mean:.0%} now, {against} "
            f"{practice.incumbent_mean:.0%}"
        )
    return status.waits or _NEW_EXPERIENCE


def _more(matches: int) -> str:
    return many(matches, "more match", "more matches")


def _open(status: PromotionStatus) -> str:
    if not status.matches:
        return "no match was assigned yet"
    text = "no match" if not status.open else many(status.open, "match", "matches")
    text += f" of {status.matches:,} assigned"
    if status.waiting:
        text += f"; {many(status.waiting, 'result waits', 'results wait')} for an earlier match"
    if status.matches_per_hour is not None:
        pace = status.matches_per_hour
        text += f"; {pace:,.0f} matches an hour" if pace >= 100 else f"; {pace:.1f} matches an hour"
    return text


def _result_lines(rows: Sequence[ArmResult], *, unit: str, width: Width) -> list[str]:
    if len({one.stratum for one in rows}) == 2:  # one stratum has the same matches as all
        rows = [one for one in rows if not one.stratum]
    columns = (
        Column("player", text=True),
        Column(unit, drop=1),
        Column("mean result"),
        Column("95% interval", text=True, drop=2),
        Column("against", text=True, drop=3),
    )
    cells = [
        (
            player_name(one.version),
            f"{one.matches:,}",
            f"{one.mean:.0%}",
            f"{one.low:.0%} to {one.high:.0%}",
            stratum_name(one.stratum, 40) or "all",
        )
        for one in rows
    ]
    lines = table_lines(columns, cells, width=width, indent=_LABEL)
    return [f"{'Results':<{_LABEL}}{lines[0][_LABEL:]}", *lines[1:]]


def stratum_name(stratum: str, limit: int) -> str:
    """The values alone: `Zerg Acropolis` of `opponent=Zerg map=Acropolis`."""
    values = " ".join(part.partition("=")[2] or part for part in stratum.split())
    return plain(values, limit=limit)


def verdict_lines(notes: Sequence[VerdictNote], *, wrapped: LabelledText) -> list[str]:
    """Each verdict with its time and its words."""
    lines = []
    for index, one in enumerate(notes):
        name = f"version {one.version} " if one.version else ""
        head = f"{stamp(one.at)}  {name}{one.kind}"
        lines += wrapped("" if index else "Verdicts", head)
        if one.words:
            lines += wrapped("", plain(one.words, limit=500), indent=2)
    return lines


def _hints(status: PromotionStatus, run: str) -> list[str]:
    hints = []
    asked = next((one for one in status.tests if one.asks), None)
    if asked is not None:
        hints.append(f"To promote it: understudy promotion approve {asked.version} --run {run}")
    if status.pinned is not None:
        hints.append(f"To let evidence decide: understudy models release --run {run}")
    if status.paused and status.policy != "paused":
        hints.append(f"To go on: understudy promotion resume --run {run}")
    known = [one.version for one in status.tests]
    known += [one.version for one in reversed(status.verdicts) if one.version]
    if known:
        hints.append(
            f"{status.in_units('The matches')}: understudy promotion explain {known[0]} --run {run}"
        )
    if status.results or status.tests:
        hints.append(f"A picture: understudy promotion plot --run {run}")
    return hints


def _bar(value: float, enough: float) -> str:
    """Evidence on a logarithmic scale from 1 to what is enough."""
    share = math.log(max(value, 1.0)) / math.log(enough)
    filled = int(_BAR * min(share, 1.0))
    return f"[{'#' * filled}{'.' * (_BAR - filled)}]"


class LabelledText:
    """Makes labelled lines for a console of one width."""

    def __init__(self, width: Width) -> None:
        self.width = width

    def __call__(self, label: str, text: str, *, indent: int = 0) -> list[str]:
        return labelled(label, text, label_width=_LABEL, width=self.width, indent=indent)
