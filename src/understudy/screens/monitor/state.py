"""What the monitor shows at this moment, without any terminal: views, tab, filter, chosen run.

`lines` is the whole screen; the app puts it on a terminal, and tests read it as text.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from understudy.screens.monitor.drawing import drawn, fitted, line_width
from understudy.screens.monitor.growth import Growth, RecentGrowth
from understudy.screens.monitor.log_lines import clock_time, log_lines
from understudy.screens.monitor.rows import Line, Tone, TonedText
from understudy.screens.monitor.run_table import last_heard, run_table
from understudy.screens.monitor.sources import Reading, RunLine
from understudy.screens.monitor.sparkline import UNICODE, Glyphs
from understudy.screens.monitor.tabs import Tab, kind, panels, tab_name, tabs
from understudy.telemetry.run_view import RunView
from understudy.telemetry.text import duration, plain

_NOTE_S = 15.0
_TOLD = 3
_QUIET_S = 30.0
"""After so long without an event a run counts as quiet."""


@dataclass
class RunState:
    """The screen of one run."""

    name: str
    began: float
    """When it was opened, in seconds since 1970."""
    glyphs: Glyphs = UNICODE
    view: RunView | None = None
    error: str = ""
    note: str = ""
    """What was done last from this screen."""
    noted: float = 0.0
    """When, in seconds since 1970; a note is shown for a while."""
    words: str = ""
    """The filter of the log."""
    chosen: Tab | None = None
    new: Growth = field(default_factory=Growth)
    scrolled: int = 0
    """Lines of the log below the last one that is shown."""
    progress: float | None = None
    """How much of the first reading is over."""
    _growth: RecentGrowth = field(default_factory=RecentGrowth)

    def take(self, reading: Reading[RunView]) -> None:
        """One more reading; what was read before stays where there is none now."""
        self.error = reading.error
        if reading.value is not None:
            self.view = reading.value
            self.new = self._growth.add(reading.value)

    @property
    def tabs(self) -> tuple[Tab, ...]:
        return () if self.view is None else tabs(self.view)

    @property
    def tab(self) -> Tab:
        """The one that is open: the chosen one while it is offered, else that of the run."""
        offered = self.tabs
        if self.chosen in offered and self.chosen is not None:
            return self.chosen
        return offered[0] if offered else "ring"

    def turn(self, by: int) -> None:
        """Open the next tab, or the one before."""
        if offered := self.tabs:
            self.chosen = offered[(offered.index(self.tab) + by) % len(offered)]

    def scroll(self, by: int) -> None:
        """Show earlier lines of the log, or later ones."""
        count = 0 if self.view is None else len(log_lines(self.view.recent, words=self.words))
        self.scrolled = min(max(self.scrolled + by, 0), max(count - 1, 0))

    def filter_by(self, words: str) -> None:
        """Show the newest lines of the log that have these words; all have the empty ones."""
        if words != self.words:
            self.words, self.scrolled = words, 0

    def lines(self, *, width: int, height: int, now: float, keys: Line) -> list[Line]:
        """The whole screen: exactly `height` lines."""
        head = [self._header(width, now), self._tab_line(width, now)]
        foot = [fitted(keys, width, glyphs=self.glyphs)]
        if self.error:
            foot[:0] = _told(_lost(self.error), "problem", width)
        elif self.note and now - self.noted < _NOTE_S:
            foot[:0] = _told(self.note, "warning", width)
        room = max(height - len(head) - len(foot), 0)
        return [*head, *self._body(width, room), *foot][:height]

    def _body(self, width: int, height: int) -> list[Line]:
        if self.view is None:
            words = "waiting for the first reading" if self.error else "reading the journal"
            if self.progress is not None and not self.error:
                words += f", {self.progress:.0%}"
            blank: Line = (TonedText(" " * width),)
            first = fitted((TonedText(f" {words} {self.glyphs.cut}", "muted"),), width)
            return [blank, first, *[blank] * height][:height]
        log = log_lines(self.view.recent, words=self.words)
        title = "Log" if not self.words else f"Log with {plain(self.words, limit=40)!r}"
        if below := min(self.scrolled, max(len(log) - 1, 0)):  # the log may have become shorter
            log = log[:-below]
            title += f", {below:,} newer below"
        return drawn(
            panels(self.view, self.tab, self.new), log,
            width=width, height=height, log_title=title, glyphs=self.glyphs,
        )  # fmt: skip

    def _header(self, width: int, now: float) -> Line:
        words, tone = self._pulse(now)
        right = (TonedText(words, tone), TonedText(f" {self.glyphs.dot} {clock_time(now)} "))
        said = "" if self.view is None else f" {self.glyphs.dot} {_described(self.view)}"
        return _ends(_titled(self.name, said, right, width, self.glyphs), right, width, self.glyphs)

    def _pulse(self, now: float) -> tuple[str, Tone]:
        """Whether anything happens, in one word."""
        if self.error:
            return "LOST", "problem"
        if self.view is None:
            return "READING", "muted"
        heard, status = last_heard(self.view), self.view.status
        if status.learning == "stalled":
            return "STALLED", "problem"
        if status.paused_since is not None:
            return "PAUSED", "warning"
        if self.view.server is not None:
            return "LIVE", "good"
        if heard is None:
            return "NO DATA", "muted"
        if now - heard < _QUIET_S:
            return "LIVE", "good"
        return f"QUIET for {duration(now - heard)}", "muted"

    def _tab_line(self, width: int, now: float) -> Line:
        spans = [TonedText(" ")]
        for number, one in enumerate(self.tabs, 1):
            name = one if self.view is None else tab_name(self.view, one)
            if one == self.tab:
                spans.append(TonedText(f"[{number} {name}]", "chosen", f"tab('{one}')"))
            else:
                spans.append(TonedText(f" {number} {name} ", "muted", f"tab('{one}')"))
        watched = (TonedText(f"watched {duration(int(now - self.began))} ", "muted"),)
        return _ends(tuple(spans), watched, width, self.glyphs)


def _described(view: RunView) -> str:
    mode = plain(view.status.mode, limit=20)
    if view.server is not None:
        return f"server, {plain(view.server.game, limit=30)}"
    return f"{kind(view)}, mode {mode}" if mode and mode != "serve" else kind(view)


def _lost(error: str) -> str:
    return f"LOST, tried again: {error}"


def _told(words: str, tone: Tone, width: int) -> list[Line]:
    """Words above the keys, in a few lines at most."""
    said = textwrap.wrap(words, max(width - 2, 10))[:_TOLD]
    return [fitted((TonedText(f" {text}", tone),), width) for text in said]


def _titled(name: str, said: str, right: Line, width: int, glyphs: Glyphs) -> Line:
    """The name at the left end of the first line. Of a long path the end is shown, which is what
    tells runs apart."""
    title, text = " understudy ", plain(name, limit=4096)
    room = width - line_width(right) - len(title) - 1
    if len(text) > room:
        text = glyphs.cut + text[len(text) - max(room - 1, 0) :]
    return TonedText(title, "title"), TonedText(text), TonedText(said, "muted")


def _ends(left: Line, right: Line, width: int, glyphs: Glyphs) -> Line:
    """One text at the left end of a line, another at its right end; the left one gives way."""
    room = width - line_width(right) - 1
    if room < 0:
        return fitted(right, width, glyphs=glyphs)
    return (*fitted(left, room, glyphs=glyphs), TonedText(" "), *right)


@dataclass
class FolderState:
    """The screen of a folder of runs."""

    name: str
    began: float
    glyphs: Glyphs = UNICODE
    runs: tuple[RunLine, ...] = ()
    error: str = ""
    words: str = ""
    read: bool = False
    _chosen: str = ""

    def take(self, reading: Reading[Sequence[RunLine]]) -> None:
        self.error = reading.error
        if reading.value is not None:
            self.runs, self.read = tuple(reading.value), True

    def filter_by(self, words: str) -> None:
        """Show the runs whose name has these words; all have the empty ones."""
        self.words = words

    @property
    def shown(self) -> list[RunLine]:
        """Those whose name has the words of the filter."""
        return [one for one in self.runs if self.words.casefold() in one.name.casefold()]

    @property
    def chosen(self) -> str:
        """The name of the chosen run; empty where there is none."""
        names = [one.name for one in self.shown]
        return self._chosen if self._chosen in names else next(iter(names), "")

    def choose(self, place: int) -> None:
        """Choose the run in this line."""
        shown = self.shown
        if 0 <= place < len(shown):
            self._chosen = shown[place].name

    def move(self, by: int) -> None:
        """Choose a run so many lines below."""
        names = [one.name for one in self.shown]
        if names:
            place = min(max(names.index(self.chosen) + by, 0), len(names) - 1)
            self._chosen = names[place]

    def lines(self, *, width: int, height: int, now: float, keys: Line) -> list[Line]:
        count = f"{len(self.shown)} of {len(self.runs)}" if self.words else f"{len(self.runs)}"
        right = (
            TonedText(f"{count} {'run' if count == '1' else 'runs'}", "muted"),
            TonedText(f" {self.glyphs.dot} watched {duration(int(now - self.began))}", "muted"),
            TonedText(f" {self.glyphs.dot} {clock_time(now)} "),
        )
        left = _titled(self.name, "", right, width, self.glyphs)
        head = [_ends(left, right, width, self.glyphs), (TonedText(" " * width),)]
        foot = [fitted(keys, width, glyphs=self.glyphs)]
        if self.error:
            foot[:0] = _told(_lost(self.error), "problem", width)
        elif self.words:
            words = f"only runs with {plain(self.words, limit=40)!r}"
            foot[:0] = _told(words, "warning", width)
        room = max(height - len(head) - len(foot), 0)
        names = [one.name for one in self.shown]
        place = names.index(self.chosen) if self.chosen in names else 0
        if not self.read and not self.error:
            body = [fitted((TonedText("  reading the runs", "muted"),), width)]
            body += [(TonedText(" " * width),)] * (room - 1)
        else:
            body = run_table(self.shown, width=width, height=room, chosen=place, glyphs=self.glyphs)
        return [*head, *body, *foot][:height]
