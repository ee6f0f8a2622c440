"""The first paragraphs of a report, in words: what the run is, how it goes, what is wrong, what
next."""

from __future__ import annotations

from datetime import datetime

from understudy.core.statistics import margin, points
from understudy.doctor.evidence import RunKind
from understudy.screens.report.facts import ReportFacts
from understudy.telemetry.promotion_lines import playing_text, role_text
from understudy.telemetry.report_parts import estimate
from understudy.telemetry.run_view import RunView
from understudy.telemetry.text import duration, many

_MODES = {
    "learn": "The newest version of the policy plays every match.",
    "shadow": "The bot's own rules play every match; the policy learns beside them and is only "
    "measured.",
    "auto": "The bot's own rules play until a version of the policy proves, by its results, that "
    "it is better.",
    "play": "The best version so far plays, and nothing is learned.",
    "serve": "A server decides for a live game, which is never paused, and a learner behind it "
    "improves the policy.",
}
_FIFTHS_FROM, _LATE = 50, 30
"""Matches from which on fifths of them are compared, and of the late win rate at least: a share of
fewer says almost nothing."""


def moment(t: float) -> str:
    """`16 November 2026 at 23:30`, in the reader's time zone."""
    try:
        at = datetime.fromtimestamp(t)
    except (OverflowError, ValueError, OSError):  # a damaged file can say any number
        return "an unknown day"
    return f"{at.day} {at:%B %Y} at {at:%H:%M}"


def headline(facts: ReportFacts) -> tuple[str, str]:
    """The kind of badge, and its words."""
    counts = {
        weight: sum(one.weight == weight for one in facts.findings)
        for weight in ("problem", "warning")
    }
    for weight, count in counts.items():
        if count:
            return weight, f"{count} {weight}{'' if count == 1 else 's'} found"
    if not _has_data(facts):
        return "note", "nothing to judge yet"
    return "good", "no problem found"


def what_it_is(facts: ReportFacts) -> str:
    """For a reader who has never heard of the program."""
    spec, status = facts.identity.spec, facts.status
    game = facts.identity.game or "a game of its own"
    head = (
        f"This page describes {facts.name}, a run of Understudy: a program in which a game bot "
        f"learns from the matches that it plays. The game is {game}."
    )
    if facts.lineage is not None:
        way = (
            f"A population of {facts.lineage.agents:,} agents trains side by side; the worst are "
            "replaced by changed copies of the best."
        )
    elif facts.kind == "training":
        way = "The bot trains at the full speed of the machine" + (
            ", against scripted bots and earlier copies of itself." if status.opponents else "."
        )
    else:
        way = _MODES.get(status.mode, "No bot has played in it yet.")
    size = (
        f"The policy, a neural network, sees {many(len(spec.features), 'number', 'numbers')} at "
        "each decision and chooses what to do."
    )
    began = f"The run began on {moment(facts.identity.created_at)}."
    return " ".join((head, way, size, began))


def how_it_goes(facts: ReportFacts) -> str:
    """The most important figures in sentences."""
    status = facts.status
    if not _has_data(facts):
        return "Nothing has been played or trained yet, so there is nothing to judge."
    parts = [_played(facts)]
    if (trained := _trained(facts)) is not None:
        parts.append(trained)
    if (now := status.promotion) is not None:
        parts.append(f"Now {now.in_units(playing_text(now))}.")
    return " ".join(one for one in parts if one)


def what_is_wrong(facts: ReportFacts) -> str:
    """The worst finding, or that there is none."""
    if not facts.findings:
        words = "The checks of this program found nothing wrong."
        return words if _has_data(facts) else f"{words} Most need some data before they can tell."
    worst = facts.findings[0]
    more = len(facts.findings) - 1
    others = f" {many(more, 'more finding', 'more findings')} below." if more else ""
    return f"{worst.title.rstrip('.')} ({worst.weight}, {worst.certainty}).{others}"


def what_next(facts: ReportFacts) -> str:
    """The next step of the worst finding, or a sensible one."""
    if facts.findings:
        return facts.findings[0].next_step
    if not _has_data(facts):
        return "Start a bot, a server or a training session in this run folder."
    run = facts.status.run
    if facts.kind == "training":
        return f"Look at the league, or judge by frozen matches: understudy ratings --run {run}"
    return f"Let it play on, and look again: understudy status --run {run}"


def _played(facts: ReportFacts) -> str:
    status = facts.status
    if facts.kind == "server":
        return _served(facts)
    if facts.lineage is not None:
        return (
            f"Each agent has trained for {facts.lineage.steps:,} steps in "
            f"{many(facts.lineage.rounds, 'round', 'rounds')}."
        )
    if status.reward is not None:
        return (
            f"It has played {many(status.matches, 'match', 'matches')}; the mean reward of the "
            f"last {status.reward_matches:,} is {status.reward:.4g}."
        )
    if facts.kind == "training":
        return _train(facts)
    text = f"It has played {many(status.matches, 'match', 'matches')}."
    finished = status.wins + status.defeats + status.ties
    own = finished - status.rules_matches
    if own:
        text += f" The policy won {(status.wins - status.rules_wins) / own:.0%} of its {own:,}"
        first, last = status.win_rate_first, status.win_rate_last
        if own >= _FIFTHS_FROM and first is not None and last is not None:
            text += f" ({first:.0%} of the first fifth, {last:.0%} of the last fifth)"
        text += "."
    if status.rules_matches:
        text += (
            f" The rules won {status.rules_wins / status.rules_matches:.0%} of their "
            f"{status.rules_matches:,}."
        )
    return text


def _served(facts: ReportFacts) -> str:
    status, counts = facts.status, facts.status.ledger
    text = ""
    if counts is not None:
        share = counts.settled / max(counts.opened, 1)
        text = (
            f"It has made {many(counts.opened, 'decision', 'decisions')}; the outcome of "
            f"{share:.0%} is known."
        )
    reward = status.version_rewards
    if reward is not None and reward.now is not None:
        text += f" The newest versions earn {estimate(reward.now.reward)} per {reward.per}"
        if reward.start is not None and reward.start != reward.now:
            text += f", the first ones {estimate(reward.start.reward)}"
        text += "."
    return text


def _train(facts: ReportFacts) -> str:
    status = facts.status
    matches = sum(one.matches for one in status.opponents.values())
    wins = sum(one.wins for one in status.opponents.values())
    text = f"It has trained on {status.steps:,} decisions in {matches or status.matches:,} matches."
    trend = facts.trends.get("win_rate")
    if matches:
        text += f" It won {wins / matches:.0%} of them"
        if trend is not None and trend.weight >= _FIFTHS_FROM:
            late = trend.mean(of=trend.last(trend.weight / 5))
            text += f", {late:.0%} of the last fifth"
        text += "."
    if status.stage:
        text += f" The curriculum is in its stage {status.stage}."
    if status.rating is not None:
        text += (
            f" Its rating is {points(status.rating.mu):.0f}, give or take "
            f"{margin(status.rating.sigma):.0f} points (as in chess; 1000 is the middle)."
        )
    return text


def _trained(facts: ReportFacts) -> str | None:
    status = facts.status
    if not status.versions:
        return "No version of the policy has been published yet."
    text = f"The learner has published {many(status.versions, 'version', 'versions')}"
    if status.last_version_time is not None:
        text += f", the newest {duration(status.at - status.last_version_time)} before this report"
    return f"{text}."


def _has_data(facts: ReportFacts) -> bool:
    status = facts.status
    counts = status.ledger
    return bool(status.matches or status.steps or status.versions or (counts and counts.opened))


def key_figures(view: RunView, kind: RunKind) -> list[tuple[str, str, str]]:
    """What is shown largest: a name, a value, and a few words below it."""
    status = view.status
    shown: list[tuple[str, str, str]] = []
    counts = status.ledger
    if kind == "server" and counts is not None:
        shown.append(("Decisions", f"{counts.opened:,}", f"{counts.settled:,} with a known reward"))
    if status.matches and kind != "server":
        shown.append(("Matches", f"{status.matches:,}", "in the whole run"))
    if status.steps:
        shown.append(("Steps", _short(status.steps), "decisions trained on"))
    trend = view.trends.get("win_rate")
    if trend is not None and trend.weight:
        late = trend.last(max(trend.weight / 5, _LATE))
        mean, count = trend.mean(of=late), sum(one.weight for one in late)
        whole = len(late) == len(trend.bins)
        words = f"{'' if whole else 'the last '}{count:,.0f} matches of learned versions"
        shown.append(("Win rate", f"{mean:.0%}", words))
    elif status.reward is not None:
        words = f"mean of the last {status.reward_matches:,} matches"
        shown.append(("Reward", f"{status.reward:.4g}", words))
    reward = status.version_rewards
    if kind == "server" and reward is not None and reward.now is not None:
        now = reward.now.reward
        words = f"per {reward.per}, {now.low:.3g} to {now.high:.3g}"
        shown.append(("Reward", f"{now.mean:.3g}", words))
    if status.versions:
        shown.append(("Versions", f"{status.versions:,}", f"the newest is {status.version}"))
    if status.promotion is not None:
        version, role = status.promotion.plays, role_text(status.promotion)
        if version == 0:
            shown.append(("Plays", "the rules", role))
        else:
            shown.append(("Version that plays", str(version or "newest"), role))
    if status.rating is not None:
        doubt = margin(status.rating.sigma)
        shown.append(("Rating", f"{points(status.rating.mu):.0f}", f"give or take {doubt:.0f}"))
    if status.decision_ms is not None:
        p99 = f"p99 {status.decision_ms.p99:.2g} ms"
        shown.append(("A decision takes", f"{status.decision_ms.p50:.2g} ms", f"median; {p99}"))
    if status.learning != "off" or status.learner != "not started":
        # A learner that a session killed because it took too long is none that crashed.
        state = "not running" if status.learner == "dead" else status.learner
        shown.append(("Learner", state, f"learning: {status.learning}"))
    return shown


def _short(count: int) -> str:
    for scale, letter in ((10**9, "B"), (10**6, "M"), (10**4, "k")):
        if count >= scale:
            return f"{count / (1000 if letter == 'k' else scale):.3g}{letter}"
    return f"{count:,}"
