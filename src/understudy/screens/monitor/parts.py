"""Panels that several tabs have: who plays, results, versions, the learner, files, problems.

Pure functions of a `RunView`. Text that came from outside goes through `plain`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from understudy.core.statistics import wilson
from understudy.screens.monitor.growth import Growth
from understudy.screens.monitor.log_lines import clock_time
from understudy.screens.monitor.rows import Panel, Row, Tone
from understudy.telemetry import events as ev
from understudy.telemetry.promotion_lines import player_name, why_text
from understudy.telemetry.promotion_stage import stages_text
from understudy.telemetry.promotion_status import ArmResult, PromotionStatus, TrialStatus
from understudy.telemetry.run_view import RunFile, RunView
from understudy.telemetry.status import Status, stalled
from understudy.telemetry.text import duration, evidence_text, many, plain, size, stamp

_SHARES = (0.0, 1.0)
_LATELY_S = 60.0
_SMOOTHED = 5
"""Matches that one character of a win rate stands for, at least."""


def won(wins: float, matches: int) -> str:
    """`56% (47 to 64%)`, with Wilson's 95% interval."""
    low, high = wilson(wins, matches)
    return f"{wins / matches:.0%} ({100 * low:.0f} to {high:.0%})"


def added(count: int, word: str = "new") -> str:
    """`+2 new`, or nothing."""
    return f"+{count:,} {word}" if count else ""


def ago(t: float | None, now: float) -> str:
    """`3m 17s ago`"""
    return "never" if t is None else f"{duration(now - t)} ago"


def problems(view: RunView) -> list[Panel]:
    """What is wrong; no panel where nothing is."""
    now = view.status
    rows = []
    if stall := stalled(now) or (view.server.problem if view.server is not None else ""):
        rows.append(Row("STALLED", plain(stall, limit=400), "problem", rank=0, wraps=True))
    if now.constant_features:
        names = plain(", ".join(now.constant_features))
        rows.append(Row("Warning", f"features that never change: {names}", "warning", rank=2))
    if now.not_finite:
        counts = ", ".join(f"{plain(name)} ({n:,})" for name, n in now.not_finite.items())
        rows.append(Row("Warning", f"features not finite: {counts}", "warning", rank=2))
    if now.unsaved:
        rows.append(Row("NOT SAVED", many(now.unsaved, "match", "matches"), "problem", rank=0))
    for index, one in enumerate(reversed(now.problems)):
        text = f"{clock_time(one.t)} {plain(one.where, limit=60)}: {plain(one.message)}"
        label = "Last" if not index else ""
        rows.append(Row(label, text, "problem", rank=3 * min(index, 1) + 1))
    if not rows:
        return []
    title = f"Problems ({now.errors:,})" if now.errors else "Problems"
    return [Panel(title, tuple(rows[:5]), tone="problem")]


def who_plays(view: RunView) -> Panel:
    """The player, why, and what would change it."""
    now, promotion = view.status, view.status.promotion
    decides = now.mode == "auto" or (now.served and promotion is not None and promotion.served)
    player = _player(now, promotion if decides else None)
    rows = [Row("Player", player, rank=0, wraps=True)]
    if view.promotion_unread:
        rows = [Row("Player", "reading the promotion log", "muted", rank=0)]
    if promotion is not None and (decides or promotion.tests or promotion.incumbent):
        rows.append(Row("Stage", stages_text(promotion.stage), rank=3))
        for one in promotion.tests:
            rows += _test(one)
        if why := plain(promotion.in_units(why_text(promotion)), limit=400):
            rows.append(Row("Why", why, "muted", rank=4, wraps=True))
        if promotion.paused:
            rows.append(Row("Promotion", "PAUSED: no test begins", "warning", rank=1))
    if view.server is None:  # a server does not tell its pointers
        rows.append(Row("Champion", _champion(now), rank=0 if now.pinned else 2))
    title = "Who decides" if now.served else "Who plays"
    if now.mode and not now.served:
        title += f": mode {plain(now.mode, limit=20)}"
    return Panel(title, tuple(rows))


def _player(now: Status, promotion: PromotionStatus | None) -> str:
    if promotion is not None and promotion.line:
        # Of a test the rows below say more than the rest of the line.
        return promotion.line.partition(";")[0] if promotion.tests else promotion.line
    newest = "" if now.version == now.playing else f"; the newest version is {now.version}"
    if now.mode == "shadow":
        agrees = ""
        if now.agreement_last is not None:
            agrees = f"; it agrees with {now.agreement_last:.0%} of their decisions"
        return f"the rules play; version {now.version} is measured{agrees}"
    verb = "decides" if now.served else "plays"
    if now.playing:
        return f"version {now.playing} {verb}{newest}"
    if now.playing is None and not now.mode:
        return "no bot has played here"
    return f"the untrained policy {verb}{newest}"


def _champion(now: Status) -> str:
    if now.champion is None:
        return "none yet"
    pinned = ", PINNED by a person: no rule moves it" if now.pinned else ""
    return f"{player_name(now.champion)}{pinned}"


def _test(one: TrialStatus) -> list[Row]:
    name = "Recheck" if one.recheck else "Canary"
    asks = "; BETTER: a person is asked" if one.asks else ""
    return [
        Row(name, f"{_arm(one.canary)}; {_arm(one.incumbent)}{asks}", rank=1, wraps=True),
        Row(
            "Evidence", "", rank=1,
            bars=(
                _evidence("E better", one.better, one.better_enough),
                _evidence("worse", one.worse, one.worse_enough),
            ),
        ),
    ]  # fmt: skip


def _arm(one: ArmResult) -> str:
    """Short enough for two of them in 68 columns."""
    name = f"v{one.version}" if one.version else player_name(0)
    if not one.matches:
        return f"{name} (no match yet)"
    bounds = f"{100 * one.low:.0f} to {one.high:.0%}"
    return f"{name} {one.mean:.0%} of {one.matches:,} ({bounds})"


def _evidence(label: str, value: float, enough: float) -> tuple[str, float]:
    """On a logarithmic scale from 1 to what is enough."""
    share = math.log(max(value, 1.0)) / math.log(enough) if enough > 1.0 else 0.0
    return f"{label} {evidence_text(value)} of {enough:g}", share


def results(view: RunView, new: Growth) -> Panel:
    """Matches and win rates with their intervals, and how long decisions take."""
    now, trends = view.status, view.trends
    finished = now.wins + now.defeats + now.ties
    rows = [Row("Matches", _counts(now), rank=0, new=added(new.matches))]
    own = finished - now.rules_matches
    if own:
        rows.append(
            Row(
                "Win rate",
                f"{won(now.wins - now.rules_wins, own)} of {own:,}",
                rank=0,
                trend=trends.get("win_rate"),
                bounds=_SHARES,
                values=_SMOOTHED,
            )
        )
    if now.rules_matches:
        text = f"{won(now.rules_wins, now.rules_matches)} of {now.rules_matches:,}"
        trend = trends.get("rules_win_rate")
        row = Row("The rules", text, rank=1, trend=trend, bounds=_SHARES, values=_SMOOTHED)
        rows.append(row)
    if now.win_rate_first is not None and now.win_rate_last is not None:
        ends = f"{now.win_rate_first:.0%} -> {now.win_rate_last:.0%}"
        rows.append(Row("Progress", f"{ends} (first fifth -> last fifth)", rank=4))
    rows += trend_row(view, "return", "Return", "{:.3g} a match", rank=3)
    if now.decision_ms is not None:
        text = f"p50 {now.decision_ms.p50:.2f} ms, p99 {now.decision_ms.p99:.2f} ms"
        rows.append(Row("Decide", text, rank=1, trend=trends.get("decision_p99_us")))
    if now.agreement_last is not None and now.mode != "shadow":
        text = f"{now.agreement_last:.0%} of the rules' decisions lately"
        rows.append(Row("Agreement", text, rank=4))
    return Panel("Results", tuple(rows), side="right")


def _counts(now: Status) -> str:
    if not now.matches:
        return "none yet"
    text = f"{now.matches:,}: {now.wins:,} won, {now.defeats:,} lost, {now.ties:,} tied"
    return f"{text}, {now.aborted:,} aborted" if now.aborted else text


def trend_row(
    view: RunView, name: str, label: str, form: str, *, rank: int, last: float = 20.0
) -> list[Row]:
    """The mean of the newest values of a trend, and the trend; no row where there is none."""
    trend = view.trends.get(name)
    mean = None if trend is None else trend.mean(of=trend.last(last))
    return [] if mean is None else [Row(label, form.format(mean), rank=rank, trend=trend)]


def _versions(view: RunView, new: Growth) -> list[Row]:
    """The newest version, how old it is, and its files."""
    now = view.status
    if not now.version:
        return [Row("Version", "none published yet", "muted", rank=1)]
    made = now.last_version_time or (view.files.version.at if view.files.version else None)
    text = f"{now.version}, the newest of {now.versions:,}"
    if made is not None:
        text += f", made {ago(made, now.at)}"
    rows = [Row("Version", text, rank=0, new=added(new.versions))]
    if (file := view.files.version) is not None:
        rows.append(Row("Files", f"{file.name}  {size(file.bytes)}  {stamp(file.at)}", rank=4))
    if now.rollbacks:
        text = f"a learner gave up what it had learned {many(now.rollbacks, 'time', 'times')}"
        rows.append(Row("Rollbacks", text, "warning", rank=2))
    return rows


def learner(view: RunView) -> Panel:
    """What the learner does, its load, and how the loss goes."""
    now = view.status
    state, tone = _state(now)
    rows = [Row("State", state, tone, rank=0)]
    if (load := learner_load(view)) is not None:
        trend = view.trends.get("utilisation")
        text = f"busy {load:.0%} of the last minute"
        rows.append(Row("Load", text, rank=2, trend=trend, bounds=_SHARES))
    elif now.learner_cpu_share is not None:
        rows.append(Row("Load", f"used {now.learner_cpu_share:.0%} of a core", rank=3))
    if now.batches_trained:
        text = f"{now.batches_trained:,}, {now.total_samples:,} samples"
        if now.last_batch_time is not None:
            text += f", the last {ago(now.last_batch_time, now.at)}"
        rows.append(Row("Batches", text, rank=1))
        text = f"{now.last_loss:.4f} (average {now.avg_loss:.4f})"
        rows.append(Row("Loss", text, rank=1, trend=view.trends.get("loss")))
    rows += trend_row(view, "entropy", "Entropy", "{:.3f}", rank=3)
    rows += trend_row(view, "kl", "KL", "{:.4f} a batch", rank=4)
    return Panel("Learner", tuple(rows))


def _state(now: Status) -> tuple[str, Tone]:
    if now.paused_since is not None:
        return f"PAUSED by a person since {stamp(now.paused_since)}", "warning"
    parts = [str(now.learner)]
    if now.learner_pid is not None:
        parts.append(f"process {now.learner_pid}")
    if now.learner_deaths:
        parts.append(f"died {many(now.learner_deaths, 'time', 'times')}")
    bad = now.learner == "dead" or now.learning == "stalled"
    if now.learning == "stalled":
        parts.insert(0, "STALLED")
    return ", ".join(parts), "problem" if bad else "plain"


def learner_load(view: RunView) -> float | None:
    """The share of the last minute that was spent on batches; None: no learner runs."""
    now = view.status
    if now.learner not in {"training", "idle", "waiting for experience"}:
        return None
    if now.continuous is not None and now.served:
        return now.continuous.utilisation
    if not view.recent:
        return None
    took = [
        one.e.seconds
        for one in view.recent
        if isinstance(one.e, ev.BatchTrained) and one.t > now.at - _LATELY_S
    ]
    span = now.at - view.recent[0].t  # the newest entries may cover less than a minute
    return min(sum(took) / min(max(span, 1.0), _LATELY_S), 1.0)


def files(view: RunView, new: Growth) -> Panel:
    """The model, the buffer and the archive: counts, sizes, what is new, and the newest files."""
    now = view.status
    waiting = many(now.buffer_file_count, "file", "files")
    archived = many(now.archive_file_count, "file", "files")
    bytes_ = f", {size(now.buffer_bytes)}" if now.buffer_bytes else ""
    kept = f", {size(now.archive_bytes)}" if now.archive_bytes else ""
    rows = [
        *_versions(view, new),
        Row("Buffer", f"{waiting}{bytes_}", rank=1, new=added(new.experience)),
        *_files(view.files.buffer),
        Row("Archive", f"{archived}{kept}", rank=1, new=added(new.archived, "archived")),
        *_files(view.files.archive),
    ]
    if now.quarantine_file_count:
        text = f"{many(now.quarantine_file_count, 'file', 'files')} set aside"
        rows.append(Row("Quarantine", text, "warning", rank=1))
    return Panel("Model and experience", tuple(rows), side="right")


def _files(files: Sequence[RunFile]) -> list[Row]:
    return [
        Row("", f"{_short(one.name)}  {size(one.bytes)}  {clock_time(one.at)}", "muted", rank=5)
        for one in files
    ]


def _short(name: str) -> str:
    """The last part of an episode's name: the time, which begins it, is told beside it."""
    last = plain(name.rpartition("/")[2], limit=60)
    return last.partition("-")[2] or last
