"""The tables that `train` writes, as pages read them: once, and then as they grow."""

from __future__ import annotations

from understudy.screens.dashboard.page import RunReading
from understudy.screens.html.plot import AxisMark
from understudy.telemetry.history import History, HistoryFiles
from understudy.telemetry.training_rows import LEAGUE, REWARDS


def history_of(reading: RunReading) -> History | None:
    """Reward terms and stages of a run of `train`; None: it has no tables, or they are empty."""
    if reading.kind != "training":
        return None
    root = reading.folder.root
    files = reading.cache.read("tables", root, lambda: HistoryFiles(root, (REWARDS, LEAGUE)))
    return reading.cache.read("history", files.stamp(), files.read)


def stage_marks(reading: RunReading) -> list[AxisMark]:
    """When the stages of the curriculum began, in seconds since 1970."""
    history = history_of(reading)
    if history is None:
        return []
    begin = reading.folder.identity.created_at
    return [AxisMark(begin + time_s, name) for time_s, name in history.stage_times]
