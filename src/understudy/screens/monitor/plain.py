"""The monitor in a pipe: one block, then one line for each thing that happens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from understudy.screens.monitor.drawing import log_line, panel_lines
from understudy.screens.monitor.growth import Growth
from understudy.screens.monitor.log_lines import LogLine, log_lines
from understudy.screens.monitor.rows import plain_text
from understudy.screens.monitor.run_table import run_table
from understudy.screens.monitor.sources import RunLine, taken
from understudy.screens.monitor.sparkline import UNICODE, Glyphs
from understudy.screens.monitor.tabs import panels, tabs
from understudy.telemetry.journal import Entry
from understudy.telemetry.run_view import RunView
from understudy.telemetry.text import plain, stamp

_LAST = 10
_MOST = 50
"""Lines that one reading may bring; more are counted."""


def run_block(name: str, view: RunView, *, width: int, glyphs: Glyphs = UNICODE) -> list[str]:
    """Everything of a run at one moment: the panels of all its tabs, and the last log lines."""
    lines = [f"{plain(name, limit=4096)}   {stamp(view.status.at)}"]
    titles: set[str] = set()
    for tab in tabs(view):
        for panel in panels(view, tab, Growth()):
            # The model alone is part of a panel that stands above already.
            if not any(title.startswith(panel.title) for title in titles):
                titles.add(panel.title)
                lines += [""] + [plain_text(x) for x in panel_lines(panel, width, glyphs=glyphs)]
    last = log_lines(view.recent)[-_LAST:]
    return [*lines, "", *_log(last, glyphs)]


def folder_block(runs: Sequence[RunLine], *, width: int, glyphs: Glyphs = UNICODE) -> list[str]:
    """The table of all runs."""
    lines = run_table(runs, width=width, height=len(runs) + 1, chosen=-1, glyphs=glyphs)
    return [plain_text(line) for line in lines]


def _log(lines: Sequence[LogLine], glyphs: Glyphs) -> list[str]:
    return [plain_text(log_line(one, glyphs)) for one in lines]


class ChangeLines:
    """What is new in one view after another, in lines."""

    def __init__(self, first: RunView, glyphs: Glyphs = UNICODE) -> None:
        self._glyphs = glyphs
        self._seen = first.recent
        self._state = _state(first)
        self._error = ""

    def of(self, view: RunView) -> list[str]:
        """One line for each entry of the journal that is new, and for what has no entry."""
        last = self._seen[-1] if self._seen else None
        new = _after(view.recent, last)
        self._seen = view.recent
        lines = _log(log_lines(new)[:_MOST], self._glyphs)
        if (more := len(log_lines(new)) - _MOST) > 0:
            lines.append(f"(and {more:,} more)")
        state = _state(view)
        told = zip(self._state.items(), state.items(), strict=True)
        lines += [f"{name}: {after}" for ((_, before), (name, after)) in told if before != after]
        if self._error:
            lines.insert(0, "it can be read again")
        self._state, self._error = state, ""
        return lines

    def lost(self, error: str) -> list[str]:
        """It cannot be read; said once."""
        if error == self._error:
            return []
        self._error = error
        return [f"LOST: {error} (tried again)"]


def _after(entries: Sequence[Entry], last: Entry | None) -> Sequence[Entry]:
    """The entries that came after one that was seen; all where it is gone."""
    for place in range(len(entries) - 1, -1, -1):
        if entries[place] == last:
            return entries[place + 1 :]
    return entries


def _state(view: RunView) -> dict[str, str]:
    """What changes without an entry in the journal."""
    now, live = view.status, view.server
    return {
        "learning": str(now.learning),
        "learner": str(now.learner),
        "paused": "no" if now.paused_since is None else f"since {stamp(now.paused_since)}",
        "champion": f"{now.champion}{' (pinned)' if now.pinned else ''}",
        "version": str(now.version) if live is not None else "",
        "clients": "" if live is None else f"{live.clients:,}",
    }


def follow(
    read: Callable[[], RunView],
    first: RunView,
    say: Callable[[str], bool],
    *,
    interval_s: float,
    glyphs: Glyphs = UNICODE,
    gone: Callable[[], bool] = lambda: False,
    stop: threading.Event | None = None,
) -> None:
    """Say what happens until `stop` is set, or Ctrl-C, or what reads it has gone: `say` then
    returns False. `gone` knows this also while there is nothing to say."""
    changes, stop = ChangeLines(first, glyphs), stop or threading.Event()
    while not stop.wait(interval_s) and not gone():
        reading = taken(read)
        lost = reading.value is None
        lines = changes.lost(reading.error) if lost else changes.of(reading.value)  # type: ignore[arg-type]
        if not all(say(line) for line in lines):
            return
