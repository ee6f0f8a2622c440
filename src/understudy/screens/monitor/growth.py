"""What came in the last seconds: the differences behind words such as `+2 new`."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from understudy.telemetry.run_view import RunView

WINDOW_S = 10.0


class Growth(NamedTuple):
    """Counts that only grow: of a run in all, or in the last seconds."""

    experience: int = 0
    """Episodes or segments that came into the buffer."""
    archived: int = 0
    versions: int = 0
    matches: int = 0
    decisions: int = 0
    problems: int = 0


def totals(view: RunView) -> Growth:
    """Of the whole run."""
    now = view.status
    # A server journals no episodes: those that it wrote were learned from, or wait.
    came = now.episodes.written or now.episodes.ingested + now.buffer_file_count
    decided = now.ledger.opened if now.ledger is not None else now.decisions or now.steps
    return Growth(came, now.episodes.archived, now.versions, now.matches, decided, now.errors)


class RecentGrowth:
    """Remembers the totals of the last seconds."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._seen: deque[tuple[float, Growth]] = deque()

    def add(self, view: RunView) -> Growth:
        """One more view; returns what came since the window began, nothing at first."""
        now, at = totals(view), view.status.at
        self._seen.append((at, now))
        while len(self._seen) > 1 and self._seen[1][0] <= at - self._window_s:
            self._seen.popleft()
        return Growth(*(max(b - a, 0) for a, b in zip(self._seen[0][1], now, strict=True)))
