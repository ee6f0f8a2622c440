"""A line on stderr that says how far a command has come, and how long it will take."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import typer

from understudy.cli.show import bar
from understudy.screens.console import escapes
from understudy.supervise.interrupts import INTERRUPTED
from understudy.telemetry.text import duration, say

_LINE_EVERY_S = 5.0
_MOVE_EVERY_S = 0.1


class Meter:
    """In a terminal the line moves; elsewhere one is printed now and then. `--json` is silent."""

    def __init__(self, words: str, *, quiet: bool) -> None:
        self._words = words
        self._quiet = quiet
        self._console = ExitStack()
        self._moving = not quiet and self._console.enter_context(escapes(sys.stderr))
        self._began = self._shown = time.monotonic()
        self._first: tuple[float, float] | None = None

    def show(self, share: float) -> None:
        """So much is done, 0 to 1."""
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
        """What is told how much is done."""
        return self.show

    def __exit__(self, *error: object) -> None:
        """Make room for what comes next."""
        self.close()

    def close(self) -> None:
        """The same, for whoever holds the meter itself."""
        with self._console:
            if self._moving:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()


@contextmanager
def metered(words: str, *, quiet: bool) -> Iterator[Callable[[float], None]]:
    """A meter around the work of a command that Ctrl-C ends, with nothing to keep."""
    try:
        with Meter(words, quiet=quiet) as show:
            yield show
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
