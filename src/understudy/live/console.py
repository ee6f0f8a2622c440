"""What a bot's console says of the learning beside it; nothing of it is done inside `decide`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

from understudy.core.clock import Clock
from understudy.core.config import ReportConfig
from understudy.telemetry import report
from understudy.telemetry.fold import StatusReader
from understudy.telemetry.status import Status
from understudy.telemetry.text import say


class Console:
    """The status report by time, the statistics by matches; 0 in the settings turns either off."""

    def __init__(self, root: Path, config: ReportConfig, clock: Clock) -> None:
        self._reader = StatusReader(root, clock)
        self._config = config
        self._clock = clock
        self._reported = clock.monotonic()
        self._lock = threading.Lock()

    def tick(self) -> None:
        """The status report, if it is due. The watcher's thread asks, also in mid-match."""
        every_s = self._config.status_every_s
        if every_s > 0 and self._clock.monotonic() - self._reported >= every_s:
            self._reported = self._clock.monotonic()
            self._print(report.status_report)

    def match_finished(self, matches: int) -> None:
        """The statistics, if they are due after this many matches."""
        every = self._config.statistics_every_matches
        if every > 0 and matches % every == 0:
            self._print(report.statistics)

    def _print(self, words: Callable[[Status], str]) -> None:
        # A full disk or a dead console costs no match, and does not end the watch.
        with self._lock, contextlib.suppress(OSError, ValueError):
            say(words(self._reader.read()))
