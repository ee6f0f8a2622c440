"""How sessions and long commands look in a terminal: a line that moves, and lines that stay."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn, Protocol

import typer

from understudy.cli.doctor import closing_lines
from understudy.screens.console import escapes
from understudy.supervise.interrupts import INTERRUPTED
from understudy.supervise.sessions import S, SessionProgress, SessionSummary
from understudy.telemetry.text import duration, say, say_json

_LINE_EVERY_S = 5.0
_MOVE_EVERY_S = 0.1
_BAR = 24


class Moving(Protocol):
    """What a screen reads of any session."""

    @property
    def share(self) -> float:
        """How much of it is over, 0 to 1."""

    @property
    def version(self) -> int:
        """The newest version."""


class Screen:
    """Prints to stderr, so that `--json` owns stdout."""

    def __init__(self, *, quiet: bool, before: int | None = 0, tells_new: bool = True) -> None:
        """`before`: the newest version when the session begins; None: the first one shown.
        `tells_new`: lines that stay end with the number of new versions."""
        self._quiet = quiet
        self._tells_new = tells_new
        self._moving = sys.stderr.isatty()
        self._last_line = time.monotonic()
        self._last_move = 0.0
        self._version = before

    def move(self, line: str, progress: Moving) -> None:
        """Redraw the moving line; keep one every few seconds."""
        now = time.monotonic()
        if self._quiet:
            return
        if self._version is None:
            self._version = progress.version
        if now - self._last_line >= _LINE_EVERY_S or progress.share >= 1.0:
            self._last_line = now
            self._print(line + self._news(self._version, progress.version))
        elif self._moving and now - self._last_move >= _MOVE_EVERY_S:
            self._last_move = now
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{line[:width]}")
            sys.stderr.flush()

    def note(self, text: str) -> None:
        """One line that stays."""
        if not self._quiet:
            self._print(text)

    def close(
        self, summary: SessionSummary, text: str, *, run: Path | str | None = None
    ) -> NoReturn:
        """Print the summary, as text or with `--json` as such, and exit with its code.

        `run`: the run folder, whose worst finding is the last line.
        """
        if self._quiet:
            say_json(summary.as_dict())
        else:
            self._print(text)
            self.name_worst_finding(run)
        raise typer.Exit(summary.code)

    def name_worst_finding(self, run: Path | str | None) -> None:
        """A line on what is worst in a run folder; none where nothing is wrong."""
        if self._quiet or run is None:
            return
        for line in closing_lines(Path(run)):
            self._print(line)

    def _news(self, before: int, now: int) -> str:
        # After a rollback a session resumes from a version that is older than the newest one.
        self._version = max(before, now)
        return f"  +{now - before} new" if now > before and self._tells_new else ""

    def _print(self, text: str) -> None:
        if self._moving:
            sys.stderr.write("\r\x1b[K")
        say(text, file=sys.stderr)


def bar(share: float, *, width: int = _BAR) -> str:
    """A share of 1, drawn."""
    filled = round(width * share)
    return f"[{'#' * filled}{'.' * (width - filled)}]"


def timing(progress: SessionProgress[S], *, width: int = _BAR) -> str:
    """How far a session is, drawn in so many columns, and how long it will take."""
    left = progress.left_s
    return (
        f"{bar(progress.share, width=width)} {duration(progress.elapsed_s):>6}"
        f"  left {duration(left) if left is not None else '?':>6}"
    )


def ending(summary: SessionSummary) -> list[str]:
    """The first lines of a summary."""
    return ["", "Interrupted: everything up to here is kept." if summary.interrupted else "Done."]


class Meter:
    """A line on stderr with how far a command is and how long it will take. In a terminal the line
    moves; elsewhere one is printed now and then. `--json` is silent."""

    def __init__(self, words: str, *, quiet: bool) -> None:
        self._words = words
        self._quiet = quiet
        self._console = ExitStack()
        self._moving = not quiet and self._console.enter_context(escapes(sys.stderr))
        self._began = self._shown = time.monotonic()
        self._first: tuple[float, float] | None = None

    def show(self, share: float) -> None:
        """Show a share of 0 to 1 as done."""
        now = time.monotonic()
        # The first part includes compiling; what is left goes at the pace of the others.
        since, from_share = self._first = self._first or (now, share)
        if self._quiet or now - self._shown < (_MOVE_EVERY_S if self._moving else _LINE_EVERY_S):
            return
        self._shown = now
        elapsed = now - self._began
        done = share - from_share
        left = duration((now - since) * (1.0 - share) / done) if done > 0 else "?"
        line = (
            f"{bar(share)} {share:>4.0%}  {self._words}  {duration(elapsed)}, at most {left} left"
        )
        if self._moving:
            # A line that wraps cannot be drawn over.
            sys.stderr.write(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}")
            sys.stderr.flush()
        else:
            say(line, file=sys.stderr)

    def __enter__(self) -> Callable[[float], None]:
        return self.show

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Clear the moving line."""
        with self._console:
            if self._moving:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()


@contextmanager
def metered(words: str, *, quiet: bool) -> Iterator[Callable[[float], None]]:
    """A meter around work that Ctrl-C ends without a result."""
    try:
        with Meter(words, quiet=quiet) as show:
            yield show
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
