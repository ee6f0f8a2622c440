"""The story of one version: why it was promoted, refused, stopped or rolled back. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from understudy.core.errors import RunFolderError
from understudy.gates.promotion.records import RULES, Assigned, TrialSettings
from understudy.promotion.history import PromotionHistory, TrialHistory
from understudy.promotion.report import arm_result, interval_of, verdict_note
from understudy.telemetry.layout import Column, Width, table_lines
from understudy.telemetry.promotion_lines import LabelledText, player_name, stratum_name
from understudy.telemetry.promotion_status import ArmResult, VerdictNote, in_units
from understudy.telemetry.text import plain, stamp
from understudy.telemetry.verdicts import VERDICTS

SHOWN = 20
"""Matches of a test that are shown as text."""
_CONFIDENCE = 0.90
_RULES_ROLE = "rules"
_ROLES = {
    _RULES_ROLE: "they play while no version is better by evidence, and in a share of the matches "
    "beside a champion",
    "canary": "it is being tested",
    "champion": "it is the champion",
    "former": "a former champion whose evidence stands: a rollback may return to it",
    "retired": "it plays no more",
}


class MatchLook(msgspec.Struct, frozen=True, kw_only=True):
    """A match that counted for a test, and the evidence after it."""

    order: int
    """The number of its assignment; of a simulator the number of the pair."""
    match: str
    version: int
    """Who played; 0: the rules. Of a pair: the canary."""
    stratum: str
    share: float
    """The probability of the canary."""
    coin: float
    """What the coin came to: below the share the canary plays."""
    result: float
    ending: str
    better: float
    worse: float
    other: float | None = None
    """Of a pair: the result of the incumbent."""


class TrialStory(msgspec.Struct, frozen=True, kw_only=True):
    """One test of a version, or one recheck."""

    number: int
    recheck: bool
    simulator: bool
    opened: float
    reason: str
    experience: int
    """Episodes that the version had learned from."""
    against: int
    alpha: float
    settings: TrialSettings
    canary: ArmResult
    incumbent: ArmResult
    interval: tuple[float, float] | None
    """Of the difference, with 90% confidence."""
    ending: VerdictNote | None
    """None: it goes on."""
    matches: tuple[MatchLook, ...]


class VersionStory(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the log says of a version."""

    version: int
    role: str
    """canary, champion, former, retired; rules, of version 0; empty: it was never tested or
    promoted."""
    trials: tuple[TrialStory, ...]
    verdicts: tuple[VerdictNote, ...]
    record: ArmResult
    """All its assigned matches but those of practice."""
    practised: ArmResult
    """Its matches of practice, which are no evidence."""
    tested_against: tuple[int, ...] = ()
    """The versions that were tested or rechecked against it, in that order."""
    served: bool = False
    """A server assigned segments, not matches: the words say so."""


def story_of(
    told: PromotionHistory,
    version: int,
    *,
    refusals: Sequence[VerdictNote] = (),
    served: bool = False,
) -> VersionStory:
    """The story of a version; RunFolderError if there is none.

    `refusals` are those that the log does not have: health checks before a nomination. `served`:
    the run is that of a server.
    """
    is_rules = version == RULES  # verdicts of version 0 are about all versions
    noted = [
        verdict_note(one, told.times)
        for one in told.verdicts
        if one.version == version and not is_rules
    ]
    trials = told.of(version)
    mine = [one for one in told.matches if one.counts and one.assigned.version == version]
    if not (trials or noted or refusals or is_rules or mine):
        others = ", ".join(
            f"{number} ({role})" for number, role in sorted(told.state.roles.items())
        )
        raise RunFolderError(
            f"version {version} was never tested or promoted; "
            + (f"those that were: {others}" if others else "no version was so far")
        )
    results, practised = (
        [one.result for one in mine if one.practises is practises] for practises in (False, True)
    )
    return VersionStory(
        version=version,
        role=_RULES_ROLE if is_rules else told.state.roles.get(version, ""),
        trials=tuple(_trial_story(told, one) for one in trials),
        verdicts=tuple(sorted([*refusals, *noted], key=lambda one: (one.number, one.at))),
        record=arm_result(version, sum(results), len(results)),
        practised=arm_result(version, sum(practised), len(practised)),
        tested_against=tuple(
            one.running.version for one in told.trials if one.running.against == version
        ),
        served=served,
    )


def _trial_story(told: PromotionHistory, one: TrialHistory) -> TrialStory:
    running, ending = one.running, one.ending
    canary, incumbent = _arms(one)
    return TrialStory(
        number=running.number,
        recheck=one.recheck,
        simulator=running.simulator,
        opened=one.opened,
        reason=one.reason,
        experience=one.experience,
        against=running.against,
        alpha=running.alpha,
        settings=running.settings,
        canary=arm_result(running.version, sum(canary), len(canary)),
        incumbent=arm_result(running.against, sum(incumbent), len(incumbent)),
        interval=interval_of(one, confidence=_CONFIDENCE),
        ending=None if ending is None else verdict_note(ending, told.times),
        matches=_pair_looks(one) if running.simulator else _match_looks(one),
    )


def _arms(one: TrialHistory) -> tuple[list[float], list[float]]:
    """The results of the canary and of the incumbent."""
    if one.running.simulator:
        return one.pairs[:, 0].tolist(), one.pairs[:, 1].tolist()
    canary, incumbent = (
        [match.result for match in one.matches if (match.assigned.arm == "canary") is is_canary]
        for is_canary in (True, False)
    )
    return canary, incumbent


def _match_looks(one: TrialHistory) -> tuple[MatchLook, ...]:
    return tuple(
        MatchLook(
            order=match.order,
            match=match.assigned.match,
            version=match.assigned.version,
            stratum=match.assigned.stratum,
            share=match.assigned.share,
            coin=coin_of(match.assigned),
            result=match.result,
            ending="" if match.resolved is None else match.resolved.ending,
            better=float(better),
            worse=float(worse),
        )
        for match, better, worse in zip(one.matches, one.looks.better, one.looks.worse, strict=True)
    )


def coin_of(assigned: Assigned) -> float:
    """The coin among the matches that are not of the holdout: below the share the canary plays."""
    return (assigned.uniform - assigned.holdout) / (1.0 - assigned.holdout)


def _pair_looks(one: TrialHistory) -> tuple[MatchLook, ...]:
    return tuple(
        MatchLook(
            order=number,
            match="",
            version=one.running.version,
            stratum="",
            share=1.0,
            coin=0.0,
            result=float(canary),
            other=float(incumbent),
            ending="finished",
            better=float(better),
            worse=float(worse),
        )
        for number, ((canary, incumbent), better, worse) in enumerate(
            zip(one.pairs, one.looks.better, one.looks.worse, strict=True), 1
        )
    )


# --- words ---------------------------------------------------------------------------------------


def story_text(story: VersionStory, *, width: Width = None) -> str:
    """The story on a console of this width, with the last matches of each test."""
    wrapped, said = LabelledText(width), partial(in_units, served=story.served)
    name = "the rules" if story.role == _RULES_ROLE else f"{story.version}"
    untested = "it was never tested" if _has_played(story) else "it never played"
    lines = wrapped("Version", said(f"{name}: {_ROLES.get(story.role, untested)}"))
    if story.record.matches:
        words = said(f"{_arm_text(story.record)}, all assigned matches together")
        lines += wrapped("Played", words)
    if story.practised.matches:
        words = "in practice, to learn: these count for no test"
        lines += wrapped("Practised", f"{_arm_text(story.practised)} {words}")
    if story.tested_against:
        others = ", ".join(map(str, story.tested_against[-SHOWN:]))
        lines += wrapped("Against", f"tested against {player_name(story.version)}: {others}")
    for trial in story.trials:
        lines += ["", *_trial_lines(story.version, trial, wrapped, said)]
        lines += _match_lines(trial, width, said)
    if story.verdicts:
        lines += ["", *_verdict_lines(story.verdicts, wrapped, said)]
    return "\n".join(lines)


def _has_played(story: VersionStory) -> bool:
    return bool(story.record.matches or story.practised.matches)


def _trial_lines(
    version: int, trial: TrialStory, wrapped: LabelledText, said: Callable[[str], str]
) -> list[str]:
    name = "Recheck" if trial.recheck else "Test"
    lines = wrapped(
        f"{name} {trial.number}",
        f"against {player_name(trial.against)}, opened {stamp(trial.opened)}",
    )
    if trial.reason:
        lines += wrapped("", said(f"because {plain(trial.reason, limit=400)}"))
    if trial.experience and f"{trial.experience:,}" not in trial.reason:
        lines += wrapped("", said(f"it had learned from {trial.experience:,} matches"))
    for arm in (trial.canary, trial.incumbent):
        lines += wrapped("", said(f"{player_name(arm.version)} {_arm_text(arm)}"))
    if trial.interval is not None:
        low, high = (100 * bound for bound in trial.interval)
        lines += wrapped("", f"difference {low:+.0f} to {high:+.0f} points (90% confidence)")
    enough = f"E for it {1.0 / trial.alpha:.0f}, against it {trial.settings.harm:g}"
    lines += wrapped("", f"enough evidence: {enough}")
    if trial.ending is None:
        return lines + wrapped("", "it goes on")
    kind = trial.ending.kind
    ended = kind if trial.ending.version == version else "another verdict ended it"
    return lines + wrapped("", f"ended {stamp(trial.ending.at)}: {ended}")


def _match_lines(trial: TrialStory, width: Width, said: Callable[[str], str]) -> list[str]:
    shown = trial.matches[-SHOWN:]
    if not shown:
        return ["", said("  No match was counted.")]
    unit = "pairs" if trial.simulator else said("matches")
    more = f"The last {len(shown)} of " if len(shown) < len(trial.matches) else "All "
    columns, rows = _pair_table(shown) if trial.simulator else _match_table(shown, said)
    return [
        "",
        f"  {more}{len(trial.matches):,} {unit}:",
        *table_lines(columns, rows, width=width, indent=2),
    ]


def _pair_table(shown: Sequence[MatchLook]) -> tuple[list[Column], list[list[str]]]:
    headings = ("pair", "canary", "incumbent", "E for", "against")
    columns = [Column(heading) for heading in headings]
    rows = [
        [
            f"{one.order}", f"{one.result:.2f}", f"{one.other:.2f}", _evidence(one.better),
            _evidence(one.worse),
        ]
        for one in shown
    ]  # fmt: skip
    return columns, rows


def _match_table(
    shown: Sequence[MatchLook], said: Callable[[str], str]
) -> tuple[list[Column], list[list[str]]]:
    columns = [
        Column("order", drop=3),
        Column(said("match"), text=True, drop=5),
        Column("who", text=True),
        Column("stratum", text=True, drop=4),
        Column("q", drop=2),
        Column("coin", drop=1),
        Column("result", text=True),
        Column("E for"),
        Column("against"),
    ]
    rows = [
        [
            f"{one.order}",
            plain(one.match[:8]),
            f"{one.version}" if one.version else "rules",
            stratum_name(one.stratum, 40),
            f"{one.share:.2f}",
            f"{one.coin:.2f}",
            f"{one.result:.2f}" if one.ending == "finished" else one.ending,
            _evidence(one.better),
            _evidence(one.worse),
        ]
        for one in shown
    ]
    return columns, rows


def _verdict_lines(
    verdicts: Sequence[VerdictNote], wrapped: LabelledText, said: Callable[[str], str]
) -> list[str]:
    lines = []
    for index, one in enumerate(verdicts):
        lines += wrapped("" if index else "Verdicts", f"{stamp(one.at)}  {one.kind}")
        lines += wrapped("", said(VERDICTS[one.kind].meaning), indent=2)
        if one.words:
            lines += wrapped("", said(plain(one.words, limit=500)), indent=2)
    return lines


def _arm_text(arm: ArmResult) -> str:
    if not arm.matches:
        return "no match"
    return f"{arm.mean:.0%} of {arm.matches:,} ({arm.low:.0%} to {arm.high:.0%})"


def _evidence(value: float) -> str:
    return f"{value:.2f}" if value < 1000.0 else f"{value:.0e}"
