"""Lines about the learning on the console of a bot; none of them is printed inside `decide`.

They go to stderr and are never redrawn: the bot prints to this console as well, and stdout belongs
to the bot.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from understudy.core.clock import Clock
from understudy.core.config import ReportConfig
from understudy.telemetry import report
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.status import Status
from understudy.telemetry.status_reader import StatusReader
from understudy.telemetry.text import complain, plain, say


class BotConsole:
    """One line by time, by matches and at the end; whole reports where `report.verbose` is set."""

    def __init__(
        self,
        root: Path,
        config: ReportConfig,
        clock: Clock,
        promotion: Callable[[], PromotionStatus | None] = lambda: None,
    ) -> None:
        self._promotion = promotion
        self._reader = StatusReader(root, clock)
        self._config = config
        self._clock = clock
        self._reported = clock.monotonic()
        self._lock = threading.Lock()

    def tick(self) -> None:
        """Prints a line if one is due. Called by the watcher's thread, also during a match."""
        every_s = self._config.status_every_s
        if every_s > 0 and self._clock.monotonic() - self._reported >= every_s:
            self._reported = self._clock.monotonic()
            self._print(report.status_report)

    def match_finished(self, matches: int) -> None:
        """Prints a line if one is due after this many matches."""
        every = self._config.statistics_every_matches
        if every > 0 and matches % every == 0:
            self._print(report.statistics)

    def closed(self, matches: int) -> None:
        """Prints how a session of this many matches ended."""
        if matches and self._config.status_every_s > 0:
            self._print(report.statistics)

    def say(self, message: str) -> None:
        """Prints a line at once, such as who plays from now on."""
        if self._config.status_every_s > 0:
            complain(plain(message, limit=400))

    def _print(self, verbose: Callable[[Status], str]) -> None:
        words = verbose if self._config.verbose else report.progress
        # A full disk or a closed console costs no match, and does not end the thread.
        with self._lock, contextlib.suppress(OSError, ValueError):
            now = msgspec.structs.replace(self._reader.read(), promotion=self._promotion())
            say(words(now), file=sys.stderr)
