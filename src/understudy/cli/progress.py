"""Shows on stderr how far a command is and how long it will take, so that `--json` owns stdout.

In a terminal one line is redrawn, fitted to the width; elsewhere a plain line comes every few
seconds, without control characters. The cursor stays visible all the time: a process that is killed
leaves the terminal as it was.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, TextIO

import typer

from understudy.cli.output import width_of
from understudy.screens.console import escapes, supports_cursor
from understudy.supervise.sessions import S, SessionProgress, SessionSummary
from understudy.telemetry.layout import Part, Width, fitted, hanging, wrapped
from understudy.telemetry.text import duration, plain, say, say_json

if TYPE_CHECKING:
    from rich.live import Live

_BAR = 24
_SHORT_BAR = 6
_REDRAW_EVERY_S = 0.1
_TICK_S = 0.5
_PATIENCE_S = 1.0
"""Work that takes less time shows nothing."""
_LINE_EVERY_S = 5.0
_LINE_EVERY_AT_MOST_S = 60.0
_LINE_EVERY_SHARE = 0.05
"""Lines that stay come every 5% of the time so far, between both bounds: a long session is a page
of them, not a thousand."""


@dataclass(frozen=True)
class ProgressLine:
    """What a command says of itself at one moment."""

    parts: Sequence[Part] = ()
    """What is known, in the order of reading; the least important have the highest `drop`."""
    share: float | None = None
    """How much of it is over, 0 to 1; None: it has no end."""
    elapsed_s: float = 0.0
    left_s: float | None = None
    version: int | None = None
    """The newest version, where lines that stay tell how many are new."""

    def text(self, width: Width) -> str:
        """One line; a bar only where there is a console."""
        timing = [Part(f"{duration(self.elapsed_s):>6}", 60 if self.share is not None else 25)]
        if self.share is None:
            return plain(fitted([*timing, *self.parts], width), limit=1000)
        left = "?" if self.left_s is None else duration(self.left_s)
        timing = [Part(f"{self.share:>4.0%}"), *timing, Part(f"left {left:>6}", 10)]
        if width is None:
            return plain(fitted([*timing, *self.parts], None).lstrip(), limit=1000)
        short = bar(self.share, width=_SHORT_BAR)
        line = fitted([Part(short, 55), *timing, *self.parts], width)
        if line.startswith(short):
            free = min(width - len(line), _BAR - _SHORT_BAR)
            line = bar(self.share, width=_SHORT_BAR + max(free, 0)) + line[len(short) :]
        return plain(line, limit=1000)


class CommandResult(Protocol):
    """What a command that took long ends with."""

    @property
    def code(self) -> int:
        """The exit code."""

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""


class ProgressDisplay:
    """One line that is redrawn at the bottom, and lines that stay above it.

    `ticks`: a thread redraws it twice a second, so that the time goes on while a step takes long.
    A bot that decides in this process goes without: the thread would take turns with it.
    `keeps`: in a terminal too, a line stays now and then; without, work of less than a second shows
    nothing. `before`: the newest version when the
    session begins; None: the first one shown. `tells_new`: lines that stay end with the number of
    versions that are new since the one before.
    """

    def __init__(
        self,
        *,
        quiet: bool,
        ticks: bool = False,
        keeps: bool = True,
        before: int | None = 0,
        tells_new: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._quiet = quiet
        self._keeps = keeps
        self._tells_new = tells_new
        self._clock = clock
        self._version = before
        self._began = self._kept_at = self._drawn_at = clock()
        self._line = ProgressLine([Part("starting")])
        self._line_at = self._began
        self._kept: ProgressLine | None = None
        self._pace: tuple[float, float] | None = None
        self._lock = threading.RLock()
        self._live: Live | None = None
        self._resources = contextlib.ExitStack()
        self._stopped = threading.Event()
        stream: TextIO | None = sys.stderr
        self._moves = not quiet and stream is not None and supports_cursor(stream)
        if ticks and not quiet:
            threading.Thread(target=self._tick, daemon=True).start()

    def show(self, line: ProgressLine) -> None:
        """Take this for the present state, and draw it if it is time."""
        if self._quiet:
            return
        with self._lock:
            now = self._clock()
            self._line, self._line_at = line, now
            if self._version is None:
                self._version = line.version
            if self._due(now) or (self._keeps and line.share == 1.0):
                self._keep(now)
            elif not self._keeps and now - self._began < _PATIENCE_S:
                return
            elif self._moves and now - self._drawn_at >= _REDRAW_EVERY_S:
                self._draw(now)

    def show_share(self, share: float, words: str) -> None:
        """`show` for work of which only the share is known, 0 to 1."""
        now = self._clock()
        # The first part includes compiling; what is left goes at the pace of the others.
        if self._pace is None or share < self._pace[1]:  # or the next work begins
            self._pace = (now, share)
        since, first = self._pace
        done = share - first
        left = (now - since) * (1.0 - share) / done if done > 0 else None
        self.show(ProgressLine([Part(words, 20)], min(share, 1.0), now - self._began, left))

    def note(self, text: str) -> None:
        """Lines that stay."""
        if self._quiet:
            return
        with self._lock:
            if self._live is None:
                say(text, file=sys.stderr)
            else:
                from rich.text import Text

                self._live.console.print(Text(text), soft_wrap=True)

    def note_wrapped(self, text: str) -> None:
        """A note in the width of the console."""
        self.note("\n".join(wrapped(text, width_of(sys.stderr))))

    def note_news(self, text: str) -> None:
        """A note under the lines that stay: two columns in, its lines after the first four."""
        self.note("\n".join(hanging(text, width=width_of(sys.stderr), indent=2)))

    def end(
        self,
        summary: CommandResult,
        text: Callable[[Width], str],
        *,
        run: Path | str | None = None,
    ) -> NoReturn:
        """Print the summary, as text or with `--json` as such, and exit with its code.

        `run`: the run folder, whose worst finding is the last line.
        """
        self.close()
        if self._quiet:
            say_json(summary.as_dict())
        else:
            width = width_of(sys.stderr)
            say(text(width), file=sys.stderr)
            if run is not None:
                self._name_worst_finding(Path(run), width)
        raise typer.Exit(summary.code)

    @staticmethod
    def _name_worst_finding(run: Path, width: Width) -> None:
        from understudy.cli.doctor import closing_lines

        with working("examining the run", quiet=False):
            lines = closing_lines(run, width=width)
        for line in lines:
            say(line, file=sys.stderr)

    def close(self) -> None:
        """Clear the line that is redrawn."""
        self._stopped.set()
        with self._lock:
            live, self._live = self._live, None
            self._moves = False
            with self._resources:
                if live is not None:
                    live.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _tick(self) -> None:
        while not self._stopped.wait(_TICK_S):
            with self._lock:
                now = self._clock()
                if self._stopped.is_set() or now - self._began < _PATIENCE_S:
                    continue
                if self._due(now):
                    self._keep(now)
                elif self._moves:
                    self._draw(now)

    def _due(self, now: float) -> bool:
        """Whether it is time for a line that stays."""
        if self._moves and (not self._keeps or self._line is self._kept):
            return False  # nothing is new but the time, which the line that is redrawn has
        every = min(
            max(_LINE_EVERY_S, _LINE_EVERY_SHARE * (now - self._began)), _LINE_EVERY_AT_MOST_S
        )
        return now - self._kept_at >= every

    def _keep(self, now: float) -> None:
        if self._moves and not self._keeps:
            return
        self._kept_at, self._kept = now, self._line
        line = self._present(now)
        parts = [*line.parts, *self._news(line.version)]
        self.note(ProgressLine(parts, line.share, line.elapsed_s, line.left_s).text(_room()))

    def _news(self, version: int | None) -> list[Part]:
        if version is None or self._version is None:
            return []
        before = self._version
        # After a rollback a session resumes from a version that is older than the newest one.
        self._version = max(before, version)
        new = version - before
        return [Part(f"+{new} new", 15)] if new > 0 and self._tells_new else []

    def _present(self, now: float) -> ProgressLine:
        """The line, with the time that has gone by since it was given."""
        line, since = self._line, now - self._line_at
        left = None if line.left_s is None else max(line.left_s - since, 0.0)
        elapsed = line.elapsed_s + since if line.elapsed_s else now - self._began
        return ProgressLine(line.parts, line.share, elapsed, left, line.version)

    def _draw(self, now: float) -> None:
        self._drawn_at = now
        if self._live is None and not self._start():
            return
        assert self._live is not None
        self._live.refresh()

    def _start(self) -> bool:
        """Begin to redraw a line; False where the console cannot."""
        if not self._resources.enter_context(escapes(sys.stderr)):
            self._moves = False
            return False
        self._live = _live(sys.stderr, lambda: self._present(self._clock()))
        self._live.start()
        return True


@contextlib.contextmanager
def working(words: str, *, quiet: bool) -> Iterator[Callable[[float], None]]:
    """Shows work that is called with its share, 0 to 1, now and then; or never, and then only the
    time. Work of less than a second shows nothing."""
    with ProgressDisplay(quiet=quiet, ticks=True, keeps=False) as display:
        display.show(ProgressLine(parts=[Part(words, 20)]))
        yield lambda share: display.show_share(share, words)


def session_line(
    progress: SessionProgress[S], parts: Sequence[Part], *, version: int | None = None
) -> ProgressLine:
    """How far a session is, with what else is known of it."""
    return ProgressLine(
        parts=parts,
        share=progress.share,
        elapsed_s=progress.elapsed_s,
        left_s=progress.left_s,
        version=progress.version if version is None else version,
    )


def bar(share: float, *, width: int = _BAR) -> str:
    """A share of 1, drawn in ASCII, with a bracket on either side."""
    filled = round(width * share)
    return f"[{'#' * filled}{'.' * (width - filled)}]"


def ending(summary: SessionSummary) -> list[str]:
    """The first lines of a summary."""
    return ["", "Interrupted: everything up to here is kept." if summary.interrupted else "Done."]


def _live(stream: TextIO, line: Callable[[], ProgressLine]) -> Live:
    """What redraws the line. Other words on stderr appear above it."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    class VisibleCursor(Console):
        def show_cursor(self, show: bool = True) -> bool:
            return False  # a process that is killed could not show it again

    console = VisibleCursor(
        file=_AnyEncoding(stream),  # type: ignore[arg-type]  # it has what rich uses
        force_terminal=True, color_system=None, legacy_windows=False, highlight=False,
        markup=False, emoji=False,
    )  # fmt: skip

    return Live(
        console=console,
        get_renderable=lambda: Text(line().text(_room()), no_wrap=True),
        auto_refresh=False,
        transient=True,
        redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
        redirect_stderr=True,
    )


def _room() -> Width:
    """The columns for a line; the last one stays free, where some consoles wrap already."""
    width = width_of(sys.stderr)
    return None if width is None else width - 1


class _AnyEncoding:
    """A stream that writes what its encoding lacks as `\\u2713`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        encoding = self._stream.encoding or "ascii"
        return self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
