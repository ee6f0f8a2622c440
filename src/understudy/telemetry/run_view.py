"""What every screen shows of a run: monitor, doctor, report and exports read this and no more."""

from __future__ import annotations

import msgspec

from understudy.telemetry.journal import Entry
from understudy.telemetry.status import Status
from understudy.telemetry.trends import Trends


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one moment. Plain data: it can be sent over a network."""

    status: Status
    trends: Trends = {}
    recent: tuple[Entry, ...] = ()
    """The newest journal entries, oldest first: the lines of a log."""
