"""What a status says of a run that is served: its decisions and the learner behind the server.

Such a run has no matches, and what it learns from are segments of territories. A label is empty
where a line goes on with what the one above it is about.
"""

from __future__ import annotations

from understudy.telemetry.status import Status
from understudy.telemetry.text import plain
from understudy.telemetry.training_report import Lines, behaviour_kl


def decisions(status: Status) -> Lines:
    """How many there were, and how they ended; nothing where the ledger was not read."""
    counts = status.ledger
    if counts is None:
        return []
    words = (
        f"{counts.opened:,} = {counts.settled:,} settled + {counts.expired:,} expired + "
        f"{counts.superseded:,} superseded + {counts.orphaned:,} orphaned + {counts.open:,} open"
    )
    return [("Decisions", words)]


def continuous(status: Status) -> Lines:
    """The replay, the last second of training, the gate and what was taken back."""
    lines: Lines = []
    told = status.continuous
    if told is not None:
        waits = "; waiting for experience" if status.waiting else ""
        lines += [
            (
                "Replay",
                f"{told.buffer:,} items held, {told.samples_per_insert:.1f} samples per insert"
                f"{waits}",
            ),
            (
                "Lately",
                f"busy {told.utilisation:.0%} of the time, entropy {told.entropy:.3f} "
                f"({told.entropy_share:.0%} of the largest), KL {told.kl:.4f}, "
                f"explained variance {told.explained_variance:.2f}, "
                f"learning rate {told.learning_rate:.2g}{_steps(told.step_share)}",
            ),
            *(("", row) for row in behaviour_kl(told)),
        ]
        if told.agreement is not None:
            lines.append(
                ("Gate", f"judges {told.agreement:.0%} of what is sampled as it did at first")
            )
    if status.rollbacks:
        times = "once" if status.rollbacks == 1 else f"{status.rollbacks:,} times"
        lines.append(("Rollbacks", f"{times} a learner gave up what it had learned"))
    return lines


def _steps(share: float | None) -> str:
    return "" if share is None else f", steps {share:.0%} of full size"


def segments(status: Status) -> Lines:
    """What became of those that left."""
    e = status.episodes
    old = f" ({status.files_skipped_old:,} too old)" if status.files_skipped_old else ""
    words = f"{e.ingested:,} learned from, {e.archived:,} archived{old}"
    return [("Segments", f"{words}, {e.quarantined:,} quarantined")]


def hints(status: Status) -> list[str]:
    """What to do next, in whole lines; the learner of matches has no place here."""
    run = plain(status.run, limit=4096)
    lines = []
    waiting = status.buffer_file_count
    if waiting and status.learner in {"not started", "stopped", "dead"}:
        words = "1 segment waits" if waiting == 1 else f"{waiting:,} segments wait"
        lines.append(
            f"{words} to be learned from, by the server's gate: "
            f"understudy learner --run {run} --continuous --gate GATE"
        )
    if status.continuous is not None and status.continuous.agreement is not None:
        lines.append(f"What the gate is worth: understudy gate --run {run}")
    return lines
