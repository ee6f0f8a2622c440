"""Answers to the first questions of a person who opens a run: is it learning, is it healthy, who
plays and why? Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from understudy.doctor.comparing import deviations, first, mean_of
from understudy.doctor.findings import Finding
from understudy.registry.run_folder import agents_in
from understudy.screens.dashboard.page import RunReading
from understudy.telemetry.promotion_lines import player_name, playing_text, why_text
from understudy.telemetry.promotion_status import ArmResult
from understudy.telemetry.status import Status
from understudy.telemetry.text import plain
from understudy.telemetry.trends import Trend

AnswerTone: TypeAlias = Literal["good", "note", "warning", "problem"]

_YES, _WORSE, _EARLY = "Yes", "No, it got worse", "Too early to say"
_LEAST = 60.0
"""Matches of a trend from which on its beginning and its end are compared."""
_STRETCH = 0.2
_SURE = 2.6
"""Standard errors between two stretches of a trend that count as a difference: 99 in 100."""
_NEVER = frozenset({"wrong-sign", "not-learning", "training-not-learning", "no-update"})
_FALLEN = frozenset({"went-backwards", "training-went-backwards"})
"""Checks of the doctor that answer whether a run learns, with more care than is possible here."""
_PROVEN = "promoted: better than"
"""How a champion's `why` begins where evidence, not a person, made it the champion."""
_FEW = 20
"""Matches of a version below which its mean result says nothing beside that of the rules."""
_NOTES = 3
"""Notes of the doctor that are named."""


class RunAnswer(NamedTuple):
    """One question with its answer. Whether a run learns begins with Yes, No, Not yet or Too early;
    `why` is the second line."""

    question: str
    short: str
    """A word or two."""
    words: str
    tone: AnswerTone
    why: str = ""


def answers(reading: RunReading) -> tuple[RunAnswer, ...]:
    """In the order in which people ask."""
    return learning(reading), health(reading.findings, notes_of(reading.status)), playing(reading)


def learning(reading: RunReading) -> RunAnswer:
    """Whether learned versions beat the rules, where the bot has rules and evidence decides; else
    whether results get better, and by how much."""
    question, status = "Is it learning?", reading.status
    found = _finding(reading.findings, _NEVER | _FALLEN)
    if found is not None:
        short = _WORSE if found.check in _FALLEN else "No"
        return RunAnswer(question, short, found.title, found.weight)
    compared = _beside_rules(reading) or _compared(reading)
    if compared is not None:
        if reading.ended_at is not None and compared.short == _YES:
            compared = compared._replace(
                short="Yes, it learned", words=f"{compared.words} The session has ended."
            )
        return compared._replace(question=question)
    if not status.versions:
        return RunAnswer(question, "Not yet", _before_the_first(status), "note")
    if status.paused_since is not None:
        return RunAnswer(question, "No, it is paused", "A person paused learning.", "warning")
    if (agreed := status.agreement_last) is not None:
        words = (
            f"The rules play, and the policy learns from them: it would have decided "
            f"{agreed:.0%} of their last decisions alike. Version {status.version} is the newest, "
            "and has too few results of its own."
        )
        return RunAnswer(question, _EARLY, words, "note")
    if agents := agents_in(reading.folder.root):
        words = (
            f"The {len(agents)} agents of this population learn in runs of their own: each is "
            "among the runs here. How they compare is on the page League."
        )
        return RunAnswer(question, "See its agents", words, "note")
    words = f"Version {status.version} is the newest; there are too few results to compare yet."
    return RunAnswer(question, _EARLY, words, "note")


def _beside_rules(reading: RunReading) -> RunAnswer | None:
    """The version that plays, is tested or practises beside the rules; None: evidence does not
    decide in this run, or there are no such results."""
    status, now = reading.status, reading.status.promotion
    if now is None or now.plays is None or reading.kind == "server":
        return None
    if status.mode not in ("", "auto"):
        return None
    arms = {one.version: one for one in now.results if not one.stratum and one.matches}
    answer = None
    if now.plays:
        if now.plays in arms and 0 in arms:
            proven = now.why.startswith(_PROVEN) and now.plays == now.incumbent
            answer = _champion_beside(arms[now.plays], arms[0], proven=proven)
            if any(one.recheck for one in now.tests):
                answer = answer._replace(words=f"{answer.words} It is rechecked against the rules.")
    elif test := next((one for one in now.tests if not one.recheck), None):
        answer = _unproven(_results(test.canary, test.incumbent), test.canary.matches)
    elif (practice := now.practice) is not None and practice.compared:
        words = (
            f"In practice the newest versions score {practice.mean:.0%} lately, the rules "
            f"{practice.incumbent_mean:.0%} (mean result: a tie counts half)."
        )
        answer = _unproven(words, practice.matches)
    trend = _enough(reading.trends.get("win_rate"))
    if answer is None and trend is not None and not now.plays:
        answer = _unproven("The rules play.", round(trend.weight))
    if answer is None:
        return None
    return answer if trend is None else answer._replace(why=_of_trend(trend, reading).words)


def _champion_beside(champion: ArmResult, rules: ArmResult, *, proven: bool) -> RunAnswer:
    words = _results(champion, rules, over="all its ")
    if champion.high < rules.low:
        return RunAnswer("", "No, it plays worse than the rules", words, "problem")
    if champion.low > rules.high or (proven and champion.mean > rules.mean):
        return RunAnswer("", "Yes, it beats the rules", words, "good")
    return _unproven(words, champion.matches)


def _unproven(words: str, matches: int) -> RunAnswer:
    if matches < _FEW:
        return RunAnswer("", _EARLY, words, "note")
    words = f"{words} It is not proven that a version is better than the rules."
    return RunAnswer("", "Not yet better than the rules", words, "note")


def _results(one: ArmResult, other: ArmResult, *, over: str = "") -> str:
    return (
        f"{_sentence(player_name(one.version))[:-1]} scores {one.mean:.0%} in {over}"
        f"{one.matches:,} matches, {player_name(other.version)} {other.mean:.0%} in "
        f"{other.matches:,} (mean result: a tie counts half)."
    )


def _compared(reading: RunReading) -> RunAnswer | None:
    """The beginning of a run beside its end; None where that cannot be compared."""
    rewards = reading.status.version_rewards
    if reading.kind == "server" and rewards is not None and rewards.now and rewards.start:
        start, now = rewards.start.reward, rewards.now.reward
        words = (
            f"Its newest versions earn {now.mean:.3g} a {rewards.per} "
            f"({now.low:.3g} to {now.high:.3g}), the first ones earned {start.mean:.3g} "
            f"({start.low:.3g} to {start.high:.3g})."
        )
        return _judged(now.low > start.high, now.high < start.low, words)
    won = _enough(reading.trends.get("win_rate"))
    if won is not None:
        return _of_trend(won, reading)
    # The trend of returns is of all matches: where the rules played some, it says little of others.
    earned = None if reading.status.rules_matches else _enough(reading.trends.get("return"))
    return None if earned is None else _of_trend(earned, reading, share=False)


def _enough(trend: Trend | None) -> Trend | None:
    """A trend whose beginning and end can be compared."""
    return trend if trend is not None and trend.weight >= _LEAST and len(trend.bins) >= 4 else None


def _of_trend(trend: Trend, reading: RunReading, *, share: bool = True) -> RunAnswer:
    size = max(_STRETCH * trend.weight, _LEAST / 2)
    before, after = mean_of(first(trend, size), share=share), mean_of(trend.last(size), share=share)
    apart = deviations(after, before)
    if share:
        who = (
            "Learned versions, with all that were tested or practised,"
            if reading.status.rules_matches
            else "Learned versions"
        )
        words = (
            f"{who} won {before.mean:.0%} of their first {before.weight:,.0f} {reading.unit} and "
            f"{after.mean:.0%} of their last {after.weight:,.0f}."
        )
    else:
        words = (
            f"The return per match was {_two_decimals(before.mean)} in the first "
            f"{before.weight:,.0f} matches and {_two_decimals(after.mean)} in the last "
            f"{after.weight:,.0f}."
        )
    return _judged(apart > _SURE, apart < -_SURE, words)


def _judged(better: bool, worse: bool, words: str) -> RunAnswer:
    if better:
        return RunAnswer("", _YES, words, "good")
    if worse:
        return RunAnswer("", _WORSE, words, "problem")
    words = f"{words} The difference may be chance."
    return RunAnswer("", "Not yet: it holds its level", words, "note")


def _two_decimals(value: float) -> str:
    """Two decimals, or two digits of a small number: `-0.05` would be -0.046 or -0.054."""
    return f"{value:,.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def _before_the_first(status: Status) -> str:
    if status.learning == "off":
        return "No learner runs, and no version of the policy was made."
    return f"No version of the policy was made yet; the learner: {status.learner}."


def notes_of(status: Status) -> tuple[str, ...]:
    """What is worth knowing and is no finding of the doctor, a sentence each."""
    notes, now = [], status.promotion
    if status.last_note:
        said = f"noted: {plain(status.last_note).partition('. ')[0].removeprefix('bot: ')}"
        notes.append(_sentence(now.in_units(said) if now is not None else said))
    if now is not None and now.practice is not None and now.practice.suspended:
        notes.append(
            "Practice is suspended: the newest versions were worse "
            f"({now.practice.mean:.0%} lately) than {player_name(now.incumbent)} "
            f"({now.practice.incumbent_mean:.0%})."
        )
    return tuple(notes)


def health(findings: tuple[Finding, ...] | None, told: tuple[str, ...] = ()) -> RunAnswer:
    """The doctor's worst finding; where there is none, its notes and those that were `told`."""
    question = "Is it healthy?"
    if findings is None:
        return RunAnswer(question, "Being examined", "The checks of the doctor run.", "note")
    serious = [one for one in findings if one.weight != "note"]
    if not serious:
        notes = [*told, *(f"{one.title.rstrip('.')}." for one in findings)]
        if not notes:
            return RunAnswer(question, _YES, "All checks passed.", "good")
        count = f"{len(notes)} {'note' if len(notes) == 1 else 'notes'}"
        more = f" {len(notes) - _NOTES} more below." if len(notes) > _NOTES else ""
        words = f"{' '.join(notes[:_NOTES])}{more}"
        return RunAnswer(question, f"Yes, with {count}", words, "good")
    worst, others = serious[0], len(serious) - 1
    short = "No" if worst.weight == "problem" else "Mostly"
    more = f" {others} more {'finding' if others == 1 else 'findings'} below." if others else ""
    return RunAnswer(question, short, f"{worst.title} ({worst.certainty}).{more}", worst.weight)


def playing(reading: RunReading) -> RunAnswer:
    """Who plays, and why."""
    question, status = "Who plays, and why?", reading.status
    now = status.promotion
    if now is not None:
        words = _sentence(now.in_units(playing_text(now)))
        if reading.ended_at is not None:
            words = f"The session has ended. In the next one, {words[0].lower()}{words[1:]}"
        why = why_text(now)
        return RunAnswer(
            question, _player(now.plays), words, "warning" if now.pinned else "note",
            why=_sentence(now.in_units(why)) if why else "",
        )  # fmt: skip
    if reading.kind == "training":
        alone = status.reward is not None and len(status.sides) <= 1
        where = "in its environment" if alone else "against its opponents"
        words = f"The policy that is trained, {where}, at the speed of the machine."
        return RunAnswer(question, "The learner itself", words, "note")
    version = status.playing or status.version
    if status.pinned:
        words = f"A person pinned version {status.champion} as champion: no rule moves it."
        return RunAnswer(question, f"Version {status.champion}", words, "warning")
    if status.mode == "shadow":
        words = "Mode shadow: the rules play every match, and the policy is only measured."
        return RunAnswer(question, "The rules", words, "note")
    words = {
        "learn": "Mode learn: the newest version plays every match, without a test.",
        "serve": "The newest version decides, without a test.",
        "play": "Mode play: the champion plays, and nothing is learned.",
    }.get(status.mode, "No bot has played in this run yet.")
    short = f"Version {version}" if version else "The untrained policy"
    return RunAnswer(question, short if status.mode else "Not started", words, "note")


def _player(version: int | None) -> str:
    if version is None:
        return "The newest version"
    return f"Version {version}" if version else "The rules"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _finding(findings: tuple[Finding, ...] | None, names: frozenset[str]) -> Finding | None:
    return next((one for one in findings or () if one.check in names), None)
