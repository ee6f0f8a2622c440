"""The training log: a block a batch in `logs/background_training.log`, for people and `tail`.

Between the blocks stands a line for everything rare: stages, snapshots, replaced agents, notes.
"""

from __future__ import annotations

from pathlib import Path

from understudy.core import files
from understudy.telemetry.events import (
    AgentReplaced,
    BatchTrained,
    Event,
    Note,
    RolledBack,
    SnapshotTaken,
    StageChanged,
)
from understudy.telemetry.fold import StatusFold
from understudy.telemetry.journal import Entry
from understudy.telemetry.status import Folders
from understudy.telemetry.text import complain, plain, stamp

_WIDE = 500

LOG = "background_training.log"
"""Its file, in the run's `logs` folder."""


class TrainingLog:
    """Appends to one log; `past` (of all earlier entries of the journal) lets its totals go on.

    Give it every entry, not batches alone: a learner that starts again drops from the totals what
    the one before it did not commit, because it will train on that again. Writing never raises:
    like the journal, it says once that it cannot, and training goes on.
    """

    def __init__(self, path: Path, past: StatusFold | None = None) -> None:
        self._path = path
        self._complained = False
        self._fold = past or StatusFold()

    def add(self, entry: Entry) -> None:
        """Count an entry, and write its block if it is a batch, or its line if it is rare."""
        self._fold.add(entry)
        rare = line(entry.e)
        if rare:
            self._append(f"[{stamp(entry.t)}] {plain(rare, limit=_WIDE)}\n\n")
        if isinstance(entry.e, BatchTrained):
            totals = self._fold.status(Folders())
            self._append(
                block(
                    entry.t,
                    entry.e,
                    total_files=totals.files_processed,
                    total_batches=totals.batches_trained,
                )
            )

    def _append(self, text: str) -> None:
        try:
            files.make_folders(self._path.parent)
            files.append(self._path, text.encode("utf-8"))
        except OSError as error:
            if not self._complained:
                self._complained = True
                complain(f"cannot write the training log: {error}")


def block(t: float, batch: BatchTrained, *, total_files: int, total_batches: int) -> str:
    """The block of one batch; its format is kept, since people's scripts read it."""
    return (
        f"[{stamp(t)}] Batch Training Complete\n"
        f"  Batch Size:      {batch.matches} games\n"
        f"  Total Steps:     {batch.steps}\n"
        f"  Loss:            {batch.loss:.4f}\n"
        f"  Processing Time: {batch.seconds:.2f}s\n"
        f"  Total Processed: {total_files} files\n"
        f"  Total Batches:   {total_batches}\n"
        f"{'-' * 60}\n\n"
    )


def line(event: Event) -> str:
    """What the log says of something rare; nothing of all else."""
    match event:
        case StageChanged(before=before, after=after, reason=reason):
            return f"Stage {after}{f' after {before}' if before else ''}: {reason}"
        case SnapshotTaken(name=name, kept=kept, reason=reason, pool=pool):
            return f"Snapshot {name} {'kept' if kept else 'not kept'} ({pool} in all): {reason}"
        case AgentReplaced(agent=agent, parent=parent):
            return f"Agent {agent} gave way to a changed copy of agent {parent}"
        case RolledBack(reason=reason, version=version, to=to):
            return f"Back from version {version} to {to or 'a fresh start'}: {reason}"
        case Note(where=where, message=message):
            return f"{where}: {message}"
    return ""
