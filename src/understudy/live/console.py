"""What a bot's console says of the learner beside it, between matches and never during one."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

from understudy.core.clock import Clock
from understudy.core.config import ReportConfig
from understudy.telemetry import report
from understudy.telemetry.fold import StatusReader
from understudy.telemetry.text import say


class Console:
    """Prints the status report and the statistics whenever a match ends and they are due."""

    def __init__(self, root: Path, config: ReportConfig, clock: Clock) -> None:
        self._reader = StatusReader(root, clock)
        self._config = config
        self._clock = clock
        self._reported = clock.monotonic()
        self._lock = threading.Lock()

    def match_finished(self, matches: int) -> None:
        """Say what is due after this many matches; 0 in the settings turns either off."""
        every_s, every = self._config.status_every_s, self._config.statistics_every_matches
        with self._lock:
            now = self._clock.monotonic()
            overdue = every_s > 0 and now - self._reported >= every_s
            counted = every > 0 and matches % every == 0
            if not overdue and not counted:
                return
            with contextlib.suppress(OSError):  # a full disk or a dead console costs no match
                status = self._reader.read()
                if counted:
                    say(report.statistics(status))
                if overdue:
                    self._reported = now
                    say(report.status_report(status))
