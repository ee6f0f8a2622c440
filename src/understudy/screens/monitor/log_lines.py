"""Journal entries as the lines of a log, for people.

Matches that follow each other are one line, so that a fast bot does not push out all else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from understudy.screens.monitor.rows import Tone
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry
from understudy.telemetry.text import many, plain, stamp
from understudy.telemetry.training_log import line as rare_line

_BAD = (ev.Problem, ev.LearnerDied, ev.EpisodeQuarantined)
_GOOD = (ev.VersionPublished, ev.RoleChanged)


class LogLine(NamedTuple):
    """When, by whom, what."""

    t: float
    by: str
    text: str
    tone: Tone = "plain"


def clock_time(t: float) -> str:
    """`14:32:05` in the reader's time zone."""
    return stamp(t)[-8:]


def log_lines(entries: Iterable[Entry], *, words: str = "") -> list[LogLine]:
    """Oldest first; with `words` only the lines that have them, whatever their case."""
    lines: list[LogLine] = []
    matches: list[tuple[Entry, ev.MatchFinished]] = []
    for entry in entries:
        if isinstance(entry.e, ev.MatchFinished):
            matches.append((entry, entry.e))
            continue
        lines += _matches(matches)
        matches = []
        if text := event_text(entry.e).removeprefix(f"{entry.by}: "):  # a note says who wrote it
            lines.append(LogLine(entry.t, entry.by, text, _tone(entry.e)))
    lines += _matches(matches)
    asked = words.casefold()
    return [one for one in lines if asked in f"{one.by} {one.text}".casefold()]


def _tone(event: ev.Event) -> Tone:
    if isinstance(event, _BAD):
        return "problem"
    return "good" if isinstance(event, _GOOD) else "plain"


def _matches(found: Sequence[tuple[Entry, ev.MatchFinished]]) -> list[LogLine]:
    if not found:
        return []
    entry, last = found[-1]
    if len(found) == 1:
        return [LogLine(entry.t, entry.by, _match_text(last))]
    outcomes = [e.outcome for _, e in found]
    counts = [
        f"{outcomes.count(name)} {word}"
        for name, word in (("victory", "won"), ("defeat", "lost"), ("tie", "tied"))
        if name in outcomes
    ]
    mean = sum(e.reward for _, e in found) / len(found)
    text = f"{len(found)} matches: {', '.join(counts) or 'none finished'}, mean reward {mean:.3g}"
    return [LogLine(entry.t, entry.by, text)]


def _match_text(e: ev.MatchFinished) -> str:
    who = plain(e.role, limit=20) or (f"version {e.version}" if e.version else "untrained")
    tags = " ".join(f"{plain(k, limit=20)}={plain(v, limit=30)}" for k, v in e.tags.items())
    lost = "" if e.saved or not e.recorded else ", NOT SAVED"
    text = f"match: {plain(e.outcome, limit=20)}, reward {e.reward:.3g}, by {who}{lost}"
    return f"{text} ({tags})" if tags else text


def event_text(event: ev.Event) -> str:
    """What happened, in one line; nothing of what comes several times a second."""
    match event:
        case ev.BatchTrained() as e:
            matches = f"{e.matches} new + {e.replayed} earlier matches, "
            if not e.replayed:  # training in the arena replays none, and a match outlasts a batch
                matches = f"{many(e.matches, 'match', 'matches')}, " if e.matches else ""
            return f"batch: {matches}{e.steps:,} steps in {e.seconds:.2f}s, loss {e.loss:.4f}"
        case ev.ContinuousTrained() as e:
            return f"{many(e.batches, 'batch', 'batches')}, {e.items:,} items, loss {e.loss:.4f}"
        case ev.VersionPublished() as e:
            return f"version {e.version} published{_learned(e)}"
        case ev.VersionAdopted() as e:
            return f"version {e.version} loaded, after {e.previous}"
        case ev.RoleChanged() as e:
            words = f": {plain(e.words)}" if e.words else ""
            return f"version {e.version} {plain(e.kind, limit=40)}{words}"
        case ev.CheckpointJudged() as e:
            wins = sum(one.wins for one in e.opponents.values())
            played = sum(one.wins + one.draws + one.losses for one in e.opponents.values())
            if not played:
                return f"version {e.version} judged: mean reward {e.reward:.3g} of {e.matches}"
            return f"version {e.version} judged: {wins:,} of {played:,} frozen matches won"
        case ev.EpisodesArchived() as e:
            # What was learned from is archived after each version, which has a line already.
            return f"{e.too_old:,} archived unread: too old to learn from" if e.too_old else ""
    return _rarer(event)


def _learned(e: ev.VersionPublished) -> str:
    return f", {many(e.matches, 'new episode', 'new episodes')}" if e.matches else ""


def _rarer(event: ev.Event) -> str:
    match event:
        case ev.BotStarted() as e:
            what = "server" if e.mode == "serve" else "bot"
            return f"{what} started, mode {plain(e.mode, limit=20)}, version {e.version}"
        case ev.BotStopped():
            return "stopped"
        case ev.LearnerStarted() as e:
            return f"learner started from version {e.version}, {e.pending:,} wait"
        case ev.LearnerStopped() as e:
            return f"learner stopped: {plain(e.reason)}"
        case ev.LearnerPaused():
            return "learner paused"
        case ev.LearnerResumed():
            return "learner goes on"
        case ev.LearnerDied() as e:
            again = "" if e.restart_in_s is None else f", starts again in {e.restart_in_s:g}s"
            return f"learner died with exit code {e.code}{again}"
        case ev.EpisodeQuarantined() as e:
            return f"quarantined {plain(e.name, limit=60)}: {plain(e.reason)}"
        case ev.EpisodesImported() as e:
            return f"{e.count:,} matches imported"
        case ev.WaitingForExperience():
            return "waiting for experience"
        case ev.ConstantFeatures() as e:
            return f"features that never change: {plain(', '.join(e.names))}"
        case ev.Evaluated() as e:
            against = plain(e.opponent, limit=40)
            return f"version {e.version} won {e.wins} of {e.matches} against {against}"
        case ev.Problem() as e:
            return f"PROBLEM {plain(e.where, limit=60)}: {plain(e.message)}"
    return plain(rare_line(event))
