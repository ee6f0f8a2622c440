"""Answers to the first questions of a person who opens a run: is it learning, is it healthy, who
plays and why? Pure."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from understudy.doctor.comparing import deviations, first, mean_of
from understudy.doctor.findings import Finding
from understudy.registry.run_folder import agents_in
from understudy.screens.dashboard.page import RunReading
from understudy.telemetry.promotion_lines import playing_text, why_text
from understudy.telemetry.status import Status
from understudy.telemetry.trends import Trend

AnswerTone: TypeAlias = Literal["good", "note", "warning", "problem"]

_YES = "Yes"
_LEAST = 60.0
"""Matches of a trend from which on its beginning and its end are compared."""
_STRETCH = 0.2
_SURE = 2.6
"""Standard errors between two stretches of a trend that count as a difference: 99 in 100."""
_NEVER = frozenset({"wrong-sign", "not-learning", "training-not-learning", "no-update"})
_FALLEN = frozenset({"went-backwards", "training-went-backwards"})
"""Checks of the doctor that answer whether a run learns, with more care than is possible here."""


class RunAnswer(NamedTuple):
    """One question with its answer."""

    question: str
    short: str
    """A word or two."""
    words: str
    tone: AnswerTone
    why: str = ""


def answers(reading: RunReading) -> tuple[RunAnswer, ...]:
    """In the order in which people ask."""
    return learning(reading), health(reading.findings), playing(reading)


def learning(reading: RunReading) -> RunAnswer:
    """Whether results get better, and by how much."""
    question, status = "Is it learning?", reading.status
    found = _finding(reading.findings, _NEVER | _FALLEN)
    if found is not None:
        short = "It got worse" if found.check in _FALLEN else "No"
        return RunAnswer(question, short, found.title, found.weight)
    compared = _compared(reading)
    if compared is not None:
        if reading.ended_at is not None and compared.short == _YES:
            compared = compared._replace(
                short="It learned", words=f"{compared.words} The session has ended."
            )
        return compared._replace(question=question)
    if status.paused_since is not None:
        return RunAnswer(question, "Paused", "A person paused learning.", "warning")
    if not status.versions:
        return RunAnswer(question, "Not yet", _before_the_first(status), "note")
    if (agreed := status.agreement_last) is not None:
        words = (
            f"The rules play, and the policy learns from them: it would have decided "
            f"{agreed:.0%} of their last decisions alike. Version {status.version} is the newest."
        )
        return RunAnswer(question, "From the rules", words, "good")
    if agents := agents_in(reading.folder.root):
        words = (
            f"The {len(agents)} agents of this population learn in runs of their own: each is "
            "among the runs here. How they compare is on the page League."
        )
        return RunAnswer(question, "See its agents", words, "note")
    words = f"Version {status.version} is the newest; there are too few results to compare yet."
    return RunAnswer(question, "Too early to say", words, "note")


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
    for name, share in (("win_rate", True), ("return", False)):
        trend = reading.trends.get(name)
        if trend is not None and trend.weight >= _LEAST and len(trend.bins) >= 4:
            return _of_trend(trend, share=share, unit=reading.unit)
    return None


def _of_trend(trend: Trend, *, share: bool, unit: str) -> RunAnswer:
    size = max(_STRETCH * trend.weight, _LEAST / 2)
    before, after = mean_of(first(trend, size), share=share), mean_of(trend.last(size), share=share)
    apart = deviations(after, before)
    if share:
        words = (
            f"The policy won {after.mean:.0%} of its last {after.weight:,.0f} {unit} and "
            f"{before.mean:.0%} of its first {before.weight:,.0f}."
        )
    else:
        words = (
            f"A match of the policy earned {after.mean:.3g} in the last {after.weight:,.0f} and "
            f"{before.mean:.3g} in the first {before.weight:,.0f}."
        )
    return _judged(apart > _SURE, apart < -_SURE, words)


def _judged(better: bool, worse: bool, words: str) -> RunAnswer:
    if better:
        return RunAnswer("", _YES, words, "good")
    if worse:
        return RunAnswer("", "It got worse", words, "problem")
    return RunAnswer("", "It holds its level", f"{words} The difference may be chance.", "note")


def _before_the_first(status: Status) -> str:
    if status.learning == "off":
        return "No learner runs, and no version of the policy was made."
    return f"No version of the policy was made yet; the learner: {status.learner}."


def health(findings: tuple[Finding, ...] | None) -> RunAnswer:
    """The doctor's worst finding."""
    question = "Is it healthy?"
    if findings is None:
        return RunAnswer(question, "Being examined", "The checks of the doctor run.", "note")
    serious = [one for one in findings if one.weight != "note"]
    if not serious:
        words = "All checks passed."
        notes = len(findings)
        more = (
            f" {notes} {'thing is' if notes == 1 else 'things are'} worth knowing." if notes else ""
        )
        return RunAnswer(question, _YES, f"{words}{more}", "good")
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
