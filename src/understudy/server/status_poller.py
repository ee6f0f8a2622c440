"""The run's status from its journals, read outside the event loop."""

from __future__ import annotations

from pathlib import Path

from understudy.core.clock import Clock
from understudy.telemetry.status import Folders, Patience, Status
from understudy.telemetry.status_reader import StatusReader, counted

_EVERY_S = 2.0


class StatusPoller:
    """One thread calls `look`; any thread may read `now`."""

    def __init__(self, root: Path, clock: Clock, patience: Patience | None = None) -> None:
        self._root = root
        self._reader = StatusReader(root, clock, patience)
        self._clock = clock
        self._looked = -_EVERY_S
        self.now = Status(run=str(root))

    def look(self, *, at_once: bool = False) -> None:
        """Read new journal entries, at most every two seconds unless `at_once`."""
        if not at_once and self._clock.monotonic() - self._looked < _EVERY_S:
            return
        self._looked = self._clock.monotonic()
        # The archive has thousands of files: counting them would take too long.
        folders = Folders(buffer=counted(self._root / "buffer", sizes=False))
        self.now = self._reader.read_with(folders)
