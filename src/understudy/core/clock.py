"""Time as a part that can be replaced: real in play, logical where a run must repeat."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for records that people read, monotonic time for intervals."""

    def time(self) -> float:
        """Seconds since 1970; may jump when the clock is set."""

    def monotonic(self) -> float:
        """Seconds that only ever grow."""


class SystemClock:
    """The machine's clock."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class LogicalClock:
    """A clock that advances by a fixed tick at each reading: equal runs read equal times."""

    def __init__(self, start: float = 1_700_000_000.0, tick_s: float = 0.001) -> None:
        self.now = start
        self._tick_s = tick_s

    def time(self) -> float:
        """The next tick."""
        self.now += self._tick_s
        return self.now

    def monotonic(self) -> float:
        """The next tick."""
        return self.time()
