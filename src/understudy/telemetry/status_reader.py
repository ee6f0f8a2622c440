"""The status of a run folder from its journal and its spool, each time reading only what is new."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from understudy.core.clock import Clock
from understudy.core.files import TEMPORARY
from understudy.core.pause import read_pause
from understudy.telemetry.status import Folder, Folders, Patience, Status
from understudy.telemetry.summary import FoldedJournal

_DIGITS = 20
"""Nanoseconds since 1970, at the beginning of a file's name."""
_COUNT_EVERY_S = 10.0
_COUNT_ANYWAY_S = 60.0


class StatusReader:
    """The status of a run folder; the first reading opens the journal by its summary."""

    def __init__(self, root: Path, clock: Clock, patience: Patience | None = None) -> None:
        self._root = root
        self._clock = clock
        self._run = str(root)
        self._patience = patience
        self._journal: FoldedJournal | None = None
        self._spool = SpoolCounts(root)

    def read(self) -> Status:
        """The status now. Folders that are not there yet are empty."""
        return self.read_with(self._spool.read())

    def read_with(self, folders: Folders) -> Status:
        """The same with folders that were counted elsewhere."""
        if self._journal is None:
            self._journal = FoldedJournal(
                self._root / "journal", run=self._run, patience=self._patience
            )
        self._journal.follow()
        fold = self._journal.folds.status
        return fold.status(folders, self._clock.time(), read_pause(self._root))


class SpoolCounts:
    """Counts the spool of a run folder; a folder in which nothing came or went is not listed again.

    Archive and quarantine are listed every ten seconds at most: they may hold 100,000 files.
    """

    def __init__(self, root: Path) -> None:
        self._folders = [
            _CountedFolder(root / name, every_s)
            for name, every_s in (
                ("buffer", 0.0),
                ("archive", _COUNT_EVERY_S),
                ("quarantine", _COUNT_EVERY_S),
            )
        ]

    def read(self) -> Folders:
        """The counts now."""
        return Folders(*(one.read() for one in self._folders))


class _CountedFolder:
    def __init__(self, path: Path, every_s: float) -> None:
        self._path = path
        self._every_s = every_s
        self._mtime_ns: int | None = None
        self._counted_at = -_COUNT_ANYWAY_S
        self._now = Folder()

    def read(self) -> Folder:
        try:
            mtime_ns = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            self._mtime_ns = None
            return Folder()
        at = time.monotonic()
        since_s = at - self._counted_at
        fresh = mtime_ns == self._mtime_ns and since_s < _COUNT_ANYWAY_S
        if fresh or (self._mtime_ns is not None and since_s < self._every_s):
            return self._now
        self._now = counted(self._path)
        # What came in the same tick of the file system's clock would not change the time.
        settled = mtime_ns < time.time_ns() - 1_000_000_000
        self._mtime_ns, self._counted_at = mtime_ns if settled else -1, at
        return self._now


def folders_of(root: Path) -> Folders:
    """Count the spool of a run folder."""
    return SpoolCounts(root).read()


def counted(folder: Path, *, sizes: bool = True) -> Folder:
    """Count the episodes of one folder; without `sizes` a long queue is hardly more than listed."""
    count = total = 0
    came: list[float] = []
    first = ""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                name = entry.name
                if not name.endswith(".npz") or name.startswith(TEMPORARY):
                    continue
                with contextlib.suppress(FileNotFoundError):  # moved on this very moment
                    by_time = name[:_DIGITS].isdecimal() and len(name) > _DIGITS
                    if sizes or not by_time:
                        found = entry.stat()
                        total += found.st_size
                        came += [] if by_time else [found.st_mtime]  # laid there by hand
                    if by_time:
                        first = min(first or name, name)
                    count += 1
    except FileNotFoundError:
        return Folder()
    if first:
        came.append(int(first[:_DIGITS]) / 1e9)
    return Folder(count, total, min(came, default=None))
