"""Reads a run folder as a `RunView`: the status with everything beside the journal, and trends."""

from __future__ import annotations

import msgspec

from understudy.experience.ledger.recovery import LEDGER, counts_in
from understudy.registry.newest_files import NewestFiles
from understudy.registry.rewards import reward_status
from understudy.registry.run_folder import RunFolder
from understudy.run.status import read_entries, read_status
from understudy.telemetry.run_view import RunView
from understudy.telemetry.status import LedgerCounts, Status
from understudy.telemetry.trends import TrendFold

_RECENT = 200


class ViewReader:
    """Reads one run folder again and again."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._seen: tuple[object, ...] = ()
        self._view: RunView | None = None

    def read(self) -> RunView:
        """The run now; where no file has changed, the last view with the time of now."""
        seen = _signature(self._folder)
        if self._view is None or seen != self._seen:
            self._view = read_view(self._folder)
            self._seen = seen
        status = msgspec.structs.replace(self._view.status, at=self._folder.clock.time())
        return msgspec.structs.replace(self._view, status=status)


def _signature(folder: RunFolder) -> tuple[object, ...]:
    """Changes whenever anything was written to the run folder."""
    root = folder.root
    names = ("buffer", "archive", "quarantine", "versions", "promotion", "ledger", "pause.json")
    paths = [root / name for name in names]
    paths += [*folder.pointers.folders, *sorted(folder.journal.glob("*.jsonl"))]
    return tuple(
        (one.stat().st_mtime_ns, one.stat().st_size) if one.exists() else None for one in paths
    )


def read_view(folder: RunFolder) -> RunView:
    """The run now."""
    entries = read_entries(folder)
    fold = TrendFold()
    for entry in entries:
        fold.add(entry)
    return RunView(
        status=read_whole_status(folder),
        trends=fold.trends,
        recent=tuple(entries[-_RECENT:]),
        files=NewestFiles(folder.root).read(),
    )


def read_whole_status(folder: RunFolder) -> Status:
    """The status with the ledger's counts, the versions' rewards and the champion."""
    now = read_status(folder)
    counts, champion = counts_in(folder.root / LEDGER), folder.pointers.read("champion")
    if counts is not None:
        now = msgspec.structs.replace(now, ledger=LedgerCounts(**counts._asdict()))
    now = msgspec.structs.replace(now, version_rewards=reward_status(folder))
    if champion is not None:
        now = msgspec.structs.replace(now, champion=champion.version, pinned=champion.pinned)
    return now
