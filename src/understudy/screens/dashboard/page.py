"""A page of the dashboard: its name, its parts, and what they are made from.

A page is a function from a reading of a run to parts. A part is HTML that a browser replaces as a
whole when it has changed, so that a chart which stays the same is not sent again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from understudy.doctor.evidence import RunKind
from understudy.doctor.findings import Finding
from understudy.registry.run_folder import RunFolder
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.parts import TrendCharts, explains
from understudy.screens.html.plot import AxisMark
from understudy.telemetry import events as ev
from understudy.telemetry.run_view import RunView
from understudy.telemetry.status import Status
from understudy.telemetry.summary import JournalFolds
from understudy.telemetry.trends import Trends

T = TypeVar("T")

_CHAMPION_CHANGED = ("promoted", "rolled back")
_ENDS = (ev.BotStopped, ev.LearnerStopped)
_GOES_ON = (ev.BotStarted, ev.LearnerStarted, ev.MatchFinished, ev.BatchTrained, ev.MatchesTrained)


class PagePart(NamedTuple):
    """A piece of a page that is replaced when it changes."""

    key: str
    """Unique in its page: letters, digits and hyphens."""
    body: Element


class _Made(NamedTuple):
    stamp: Hashable
    value: Any
    until: float
    """By the monotonic clock: before it, the value is not made again."""


class PartCache:
    """What was read from a run beside its view; each value is made again when its stamp changes."""

    def __init__(self) -> None:
        self._made: dict[str, _Made] = {}
        self._late = math.inf
        """When the first value that was kept beyond its stamp may be made again."""
        self._turn = 0

    def read(
        self, name: str, stamp: Hashable, make: Callable[[], T], *, share: float = math.inf
    ) -> T:
        """The value of this name as of `stamp`, such as the size and time of a file.

        Args:
            share: Making the value takes at most this share of the time: one that is costly may be
                that of an earlier stamp.
        """
        kept = self._made.get(name)
        changed = kept is not None and kept.stamp != stamp
        if kept is not None and changed and time.monotonic() < kept.until:
            self._late = min(self._late, kept.until)
        elif kept is None or changed:
            began = time.thread_time()
            value = make()
            rest = (time.thread_time() - began) / share
            kept = self._made[name] = _Made(stamp, value, time.monotonic() + rest)
        found: T = kept.value
        return found

    def turn(self) -> int:
        """Rises when a value that was kept beyond its stamp may be made again."""
        if time.monotonic() >= self._late:
            self._turn, self._late = self._turn + 1, math.inf
        return self._turn


class RecordedMatchRow(Protocol):
    """A recorded match as it is listed (`judging.replays.MatchListing`)."""

    @property
    def id(self) -> str: ...

    @property
    def opponent(self) -> str: ...

    @property
    def outcome(self) -> str: ...

    @property
    def frames(self) -> int: ...

    @property
    def at(self) -> float: ...

    @property
    def version(self) -> int | None: ...

    @property
    def problem(self) -> str:
        """Why it cannot be replayed; empty: it can."""


class RecordedMatches(NamedTuple):
    """The newest recorded matches of a run."""

    rows: Sequence[RecordedMatchRow] = ()
    more: int = 0
    """How many there are beside them."""


@dataclass(frozen=True, eq=False)
class RunReading:
    """A run at one moment, as pages are given it."""

    name: str
    """Of the run among those of this dashboard; as it stands in addresses, before quoting."""
    folder: RunFolder
    view: RunView
    folds: JournalFolds
    kind: RunKind
    findings: tuple[Finding, ...] | None = None
    """Of the doctor, the worst first; None: it has not looked yet."""
    recorded: Callable[[int], RecordedMatches] = lambda most: RecordedMatches()
    """So many of the newest matches that can be replayed."""
    cache: PartCache = field(default_factory=PartCache)
    """Of this run, over all its readings."""

    @property
    def status(self) -> Status:
        return self.view.status

    @property
    def trends(self) -> Trends:
        return self.view.trends

    @cached_property
    def charts(self) -> TrendCharts:
        """Draws trends of this run over its time of play, with marks where the champion changed."""
        now = self.status.promotion
        marks = [
            AxisMark(one.at, f"{one.version} {one.kind}")
            for one in (() if now is None else now.verdicts)
            if one.kind in _CHAMPION_CHANGED
        ]
        return TrendCharts(self.trends, marks)

    @cached_property
    def ended_at(self) -> float | None:
        """When the last session ended, in seconds since 1970; None: one goes on, or was killed."""
        for entry in reversed(self.view.recent):
            if isinstance(entry.e, _ENDS):
                return entry.t
            if isinstance(entry.e, _GOES_ON):
                return None
        return None

    @property
    def unit(self) -> str:
        """What the run learns from."""
        return "segments" if self.kind == "server" else "matches"


def _always(_: RunReading) -> bool:
    return True


def _nothing(_: RunReading) -> None:
    return None


class Page(NamedTuple):
    """A page of a run."""

    key: str
    """In its address: `/runs/NAME/KEY`."""
    title: str
    parts: Callable[[RunReading], Iterable[PagePart]]
    offered: Callable[[RunReading], bool] = _always
    """Whether this run has anything of the kind."""
    of_match: Callable[[RunReading, str], Iterable[PagePart]] | None = None
    """The parts where a match is chosen: `/runs/NAME/KEY?match=ID`."""
    beside: Callable[[RunReading], Hashable] = _nothing
    """What changes with files that are written without a word in the journal: the page is made
    again then, though the reading is the same."""


def part(key: str, heading: str, *body: HtmlNode, words: str = "") -> PagePart:
    """A part with a heading and a sentence below it."""
    explained = [explains(words)] if words else []
    return PagePart(key, tag("div", tag("h2", heading), *explained, *body))


def empty(key: str, heading: str, words: str) -> PagePart:
    """A part that says why there is nothing to show yet."""
    return PagePart(key, tag("div", tag("h2", heading), tag("p", words, class_="empty")))


def file_stamp(path: Path) -> Hashable:
    """What changes when a file does: its size and time, or None where it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
