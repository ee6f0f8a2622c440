"""A status in words, in four lengths: pure functions from a `Status` to text.

The words are ASCII; what came from outside (reasons, names, messages) goes through `plain`.
"""

from __future__ import annotations

from understudy.telemetry.layout import Width, hanging, hint, labelled
from understudy.telemetry.promotion_lines import promotion_lines
from understudy.telemetry.report_parts import (
    behaviour_kl,
    continuous_lines,
    decision_lines,
    league_lines,
    opponent_lines,
    played_lines,
    relay_hints,
    reward_lines,
    rewards_text,
    segment_lines,
    served_hints,
    waiting,
)
from understudy.telemetry.status import Status, stalled
from understudy.telemetry.text import Lines, duration, many, plain, size, stamp

_WIDE = "=" * 70
_LABEL = 12
_SILENT_S = 120.0


def progress(status: Status) -> str:
    """What the console of a bot shows now and then: one line."""
    parts = [f"{many(status.matches, 'match', 'matches')}{_won(status)}", _player(status)]
    parts.append(
        f"{status.episodes.ingested:,} matches learned from, {status.buffer_file_count:,} waiting"
    )
    if stall := stalled(status):
        parts.append(stall)
    elif status.paused_since is not None:
        parts.append(f"learning is paused: understudy learner resume {_run(status)}")
    elif status.learner == "dead":
        parts.append("the learner is dead")
    if status.errors:
        problems = many(status.errors, "problem", "problems")
        parts.append(f"{problems}: understudy status --run {_run(status)}")
    return f"understudy: {'; '.join(parts)}"


def _won(status: Status) -> str:
    if status.win_rate is None:
        return ""
    text = f", {_percent(status.win_rate)} won"
    if status.win_rate_first is not None and status.win_rate_last is not None:
        first, last = _percent(status.win_rate_first), _percent(status.win_rate_last)
        whose = "the policy's " if status.rules_matches else ""
        text += f" ({whose}first fifth {first}, last fifth {last})"
    return f"{text}, {status.aborted:,} aborted" if status.aborted else text


def _player(status: Status) -> str:
    newest = f" (newest version: {status.version})" if status.version != status.playing else ""
    if status.mode == "shadow":
        return f"the rules play (newest version: {status.version})"
    if status.mode == "auto" and status.promotion is not None:
        return status.promotion.line
    return (
        f"version {status.playing}{newest} plays"
        if status.playing
        else "the policy plays, untrained"
    )


def status_report(status: Status) -> str:
    """What the console of a bot shows every half a minute, where it is to be verbose."""
    return "\n".join(
        [
            _WIDE,
            "[BACKGROUND LEARNER] STATUS REPORT",
            _WIDE,
            "Training Statistics:",
            _row("Files Processed", status.files_processed),
            _row("Batch Training Runs", status.batches_trained),
            _row("Total Samples", status.total_samples),
            _row("Average Loss", _loss(status, status.avg_loss)),
            _row("Last Loss", _loss(status, status.last_loss)),
            "",
            "Directory Status:",
            _row("Buffer Files", status.buffer_file_count),
            _row("Archived Files", status.archive_file_count),
            _row("Quarantined Files", status.quarantine_file_count),
            _row("Skipped (too old)", status.files_skipped_old),
            "",
            "System Status:",
            _row("Learner", stalled(status) or status.learner),
            _row("Active Workers", f"{status.active_workers}/{status.max_workers}"),
            _row("Total Process Time", f"{status.total_processing_time:.2f}s"),
            _row("Errors", status.errors),
            _row("Last Training", _moment(status.last_batch_time)),
            _row("Version", _versions(status)),
            _row("Matches", _results(status)),
            _row("Win Rate", _win_rate(status)),
            *_last_problem(status),
            _WIDE,
        ]
    )


def statistics(status: Status) -> str:
    """What the console of a bot shows every few matches, where it is to be verbose."""
    return "\n".join(
        [
            _WIDE,
            "[BACKGROUND LEARNING] STATISTICS",
            _WIDE,
            f"Matches: {_results(status)}",
            f"Win Rate: {_win_rate(status)}",
            f"Experience Files Recorded: {status.episodes.written}",
            f"Experience Files Processed: {status.files_processed}",
            f"Batch Training Runs: {status.batches_trained}",
            f"Total Training Samples: {status.total_samples}",
            f"Average Loss: {_loss(status, status.avg_loss)}",
            f"Total Processing Time: {status.total_processing_time:.2f}s",
            f"Active Workers: {status.active_workers}/{status.max_workers}",
            f"Errors: {status.errors}",
            f"Version: {_versions(status)}",
            _WIDE,
        ]
    )


def describe(status: Status, *, finding: str = "", width: Width = None) -> str:
    """How it goes, at a glance: what `understudy status` prints on a console of this width.

    `finding`: one line on the worst finding of the doctor; empty: it found nothing wrong.
    """
    served = status.served
    met = [*opponent_lines(status), *league_lines(status)]
    rows: Lines = [
        *(decision_lines(status) if served else []),
        *([] if served and not status.matches else _matches(status)),
        *met,
        # An environment has its own line; its versions are told by the benchmark.
        *(reward_lines(status.version_rewards) if status.reward is None else []),
        ("Versions", _versions(status)),
        *_promotion(status),
        *played_lines(status),
        ("Learner", _learner(status)),
        ("Training", _training(status)),
        *(continuous_lines(status) if served else _last_batch(status)),
        ("Spool", _spool(status)),
        *(segment_lines(status) if served else [("Episodes", _episodes(status))]),
        *_decisions(status),
        *_evaluation(status),
        *_warnings(status, finding),
    ]
    run = ("Run", f"{_run(status) or '(no folder)'}   {_moment(status.at)}")
    lines = [*_lines([run], width), "", *_lines(rows, width)]
    for index in range(len(status.problems)):
        lines += hanging(_problem(status, index), width=width, indent=2)
    told = _hints(status)
    if finding:
        told.append(f"All findings, and what to do: understudy doctor --run {_run(status)}")
    hints = [line for words in told for line in hint(words, width=width)]
    return "\n".join([*lines, "", *hints] if hints else lines)


def _row(label: str, value: object) -> str:
    return f"  {label + ':':<22}{value}"


def _lines(rows: Lines, width: Width) -> list[str]:
    return [
        line
        for label, text in rows
        for line in labelled(label, text, label_width=_LABEL, width=width)
    ]


def _loss(status: Status, value: float) -> str:
    return f"{value:.4f}" if status.batches_trained else "-"


def _moment(t: float | None) -> str:
    return "never" if t is None else stamp(t)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _run(status: Status) -> str:
    return plain(status.run, limit=4096)  # a path that was cut off would be a wrong path


def _matches(status: Status) -> Lines:
    if status.reward is not None:
        words = f"{rewards_text(status.reward, status.sides)}, mean of the last"
        return [
            ("Matches", f"{status.matches:,}"),
            ("Reward", f"{words} {many(status.reward_matches, 'match', 'matches')}"),
        ]
    return [("Matches", _results(status)), ("Win rate", _win_rate(status))]


def _results(status: Status) -> str:
    if not status.matches:
        return "none yet"
    parts = f"{status.wins:,} won, {status.defeats:,} lost, {status.ties:,} tied"
    if status.aborted and status.aborted_share is not None:
        parts += f", {status.aborted:,} aborted = {_percent(status.aborted_share)}"
    return f"{status.matches:,} ({parts})"


def _win_rate(status: Status) -> str:
    """Of the policy's matches and of the rules' ones, each with who played them."""
    rules, finished = status.rules_matches, status.wins + status.defeats + status.ties
    if not finished:
        return "-"
    text = ""
    if finished > rules:
        text = _percent((status.wins - status.rules_wins) / (finished - rules))
        if rules:
            text += f" of {finished - rules:,} played by the policy"
        if status.win_rate_first is not None and status.win_rate_last is not None:
            gained = 100 * (status.win_rate_last - status.win_rate_first)
            ends = f"{_percent(status.win_rate_first)} -> {_percent(status.win_rate_last)}"
            text += f" (first fifth -> last fifth: {ends}, {gained:+.0f} points)"
    if rules:
        text += "; " if text else ""
        text += f"{_percent(status.rules_wins / rules)} of {rules:,} played by the rules"
    return text


def _versions(status: Status) -> str:
    pin = f"; {status.champion} is pinned as champion" if status.pinned else ""
    return f"{_newest(status)}{pin}"


def _newest(status: Status) -> str:
    if not status.versions:
        return "none published yet"
    text = f"{status.version} is the newest of {status.versions:,} published"
    if status.playing is None:
        return text
    behind = status.version - status.playing
    where = f", {behind} behind" if behind > 0 else ""
    if status.mode == "shadow":
        return f"{text}; the rules play, {status.playing or 'none'} is measured{where}"
    if status.mode == "auto":
        return text  # the promotion log says who plays
    if status.served and status.promotion is not None and status.promotion.served:
        decides = status.promotion.plays
        who = "the rules decide" if decides == 0 else f"version {decides or status.playing} decides"
        return f"{text}; {who}"
    who = "the server decides by" if status.served else "the bot plays"
    return f"{text}; {who} {status.playing}{where}"


def _promotion(status: Status) -> Lines:
    """Who plays by evidence; in mode `shadow` only what was decided before."""
    now = status.promotion
    decides = status.mode == "auto" or (status.served and now is not None and now.served)
    if now is None or not (decides or now.tests or now.incumbent):
        return []
    return promotion_lines(now, mode=status.mode)


def _learner(status: Status) -> str:
    parts = [str(status.learner)]
    silent_s = status.at - (status.learner_heard or status.at)
    if status.learner == "training" and silent_s > _SILENT_S:
        parts.append(f"but not a word for {duration(silent_s)}: is its process alive?")
    if status.paused_since is not None:
        since = f"since {stamp(status.paused_since)}"
        if status.learner == "paused":
            parts[0] += f" {since}"
        else:
            parts.append(f"learning paused {since}")
    if status.learner_pid is not None:
        parts.append(f"process {status.learner_pid}")
    if status.learner_deaths:
        parts.append(f"died {many(status.learner_deaths, 'time', 'times')}")
    if status.learner_cpu_share is not None:
        parts.append(f"used {_percent(status.learner_cpu_share)} of a core")
    return ", ".join(parts)


def _training(status: Status) -> str:
    if not status.batches_trained or status.last_batch_time is None:
        return "no batch yet"
    return (
        f"{many(status.batches_trained, 'batch', 'batches')}, {status.total_samples:,} samples "
        f"in {duration(status.total_processing_time)}; loss {status.last_loss:.4f} "
        f"(average {status.avg_loss:.4f}); last {duration(status.at - status.last_batch_time)} ago"
    )


def _last_batch(status: Status) -> Lines:
    batch = status.last_batch
    if batch is None:
        return []
    rows = [
        f"{batch.matches} new + {batch.replayed} earlier matches, "
        f"{batch.samples_per_insert:.1f} samples per insert",
        f"entropy {batch.entropy:.3f}, KL {batch.kl:.4f}, explained variance "
        f"{batch.explained_variance:.2f}, learning rate {batch.learning_rate:.2g}",
        *behaviour_kl(batch),
    ]
    if batch.version_lag:
        lags = sorted(batch.version_lag.items(), key=lambda item: (len(item[0]), item[0]))
        rows.append("versions behind: " + ", ".join(f"{plain(k)}: {n:,}" for k, n in lags))
    return [("" if index else "Last batch", row) for index, row in enumerate(rows)]


def _spool(status: Status) -> str:
    return (
        f"{status.buffer_file_count:,} waiting ({size(status.buffer_bytes)}), "
        f"{status.archive_file_count:,} archived ({size(status.archive_bytes)}), "
        f"{status.quarantine_file_count:,} in quarantine"
    )


def _episodes(status: Status) -> str:
    e = status.episodes
    old = f" ({status.files_skipped_old:,} too old)" if status.files_skipped_old else ""
    lost = f", {status.unsaved:,} NOT SAVED" if status.unsaved else ""
    return (
        f"{e.written:,} written, {e.ingested:,} learned from, "
        f"{e.archived:,} archived{old}, {e.quarantined:,} quarantined{lost}"
    )


def _decisions(status: Status) -> Lines:
    if not status.decisions:
        return []
    text = f"{status.decisions:,}"
    if status.decision_ms is not None:
        text += f", p50 {status.decision_ms.p50:.2f} ms, p99 {status.decision_ms.p99:.2f} ms"
    if status.fallback:
        text += f"; the rules made {_percent(status.fallback / status.decisions)}"
    if status.agreement_last is not None:
        last = many(status.agreement_last_matches, "match", "matches")
        text += (
            f"; versions agreed with {_percent(status.agreement_last)} of those in the last {last}"
        )
    return [("Decisions", text)]


def _evaluation(status: Status) -> Lines:
    e = status.last_evaluation
    if e is None:
        return []
    text = f"version {e.version} against {plain(e.opponent)}: {e.wins} won, {e.draws} drawn, "
    return [("Evaluation", f"{text}{e.losses} lost of {e.matches}")]


def _last_problem(status: Status) -> list[str]:
    return [_row("Last Problem", _problem(status, -1))] if status.problems else []


def _problem(status: Status, index: int) -> str:
    problem = status.problems[index]
    return f"{stamp(problem.t)}  {plain(problem.where)}: {plain(problem.message)}"


def _warnings(status: Status, finding: str) -> Lines:
    """What a person should look at; the problems themselves follow."""
    lines: Lines = [("Doctor", plain(finding, limit=500))] if finding else []
    if stall := stalled(status):
        lines.append(("Stalled", stall))
    if status.constant_features:
        names = plain(", ".join(status.constant_features))
        lines.append(("Warning", f"features that never change (a bug in the bot?): {names}"))
    if status.not_finite:
        counts = ", ".join(f"{plain(name)} ({n:,})" for name, n in status.not_finite.items())
        lines.append(("Warning", f"decided by the fallback, features not finite: {counts}"))
    if status.journals_deleted:
        count = many(status.journals_deleted, "old journal", "old journals")
        until = stamp(status.journals_deleted_until or 0.0)
        freed = size(status.journal_bytes_deleted)
        lines.append(("Retention", f"{count} deleted ({freed}, up to {until}), counted here"))
    if not status.errors:
        return [*lines, ("Problems", "none in the journal" if finding else "none")]
    shown = f" (the last {len(status.problems)})" if status.errors > len(status.problems) else ""
    return [*lines, ("Problems", f"{status.errors:,}{shown}")]


def _hints(status: Status) -> list[str]:
    run = _run(status)
    if status.paused_since is not None:
        hints = [f"Paused by a person. To learn on: understudy learner resume {run}"]
    elif status.relay_to:
        hints = relay_hints(status)
    else:
        hints = served_hints(status) if status.served else _learner_hints(status)
    if status.pinned:
        hints.append(f"To let newer versions play: understudy models release --run {run}")
    if status.promotion is not None and status.promotion.matches:
        hints.append(f"Who plays, and why: understudy promotion status --run {run}")
    if status.quarantine_file_count:
        hints.append(f"Why files were set aside: {run}/quarantine/*.reason.json")
    if status.batches_trained and not status.served:  # the log has no block of a batch of items
        hints.append(f"Every batch: {run}/logs/background_training.log")
    return (
        [*hints, f"The versions: understudy models list --run {run}"] if status.versions else hints
    )


def _learner_hints(status: Status) -> list[str]:
    if status.learner not in {"not started", "stopped", "dead"} or not status.buffer_file_count:
        return []
    return [f"{waiting(status)} to be learned from: understudy learner --run {_run(status)}"]
