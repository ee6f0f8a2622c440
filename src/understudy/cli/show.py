"""How a session looks in a terminal: a line that moves, and lines that stay."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Protocol

from understudy.supervise.sessions import S, SessionProgress, SessionSummary
from understudy.telemetry.text import duration, say

_LINE_EVERY_S = 5.0
_BAR = 24


class Moving(Protocol):
    """What a screen needs to know of any session."""

    @property
    def share(self) -> float:
        """How much of it is over, 0 to 1."""

    @property
    def version(self) -> int:
        """The newest one."""


class Screen:
    """Prints to stderr, so that `--json` owns stdout."""

    def __init__(self, *, quiet: bool, before: int | None = 0) -> None:
        """`before`: the newest version when the session begins; None: the first one shown."""
        self._quiet = quiet
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
        elif self._moving and now - self._last_move >= 0.1:
            self._last_move = now
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\x1b[K{line[:width]}")
            sys.stderr.flush()

    def note(self, text: str) -> None:
        """One line that stays."""
        if not self._quiet:
            self._print(text)

    def _news(self, before: int, now: int) -> str:
        # After a rollback the version that is gone on from is older than the newest one.
        self._version = max(before, now)
        return f"  +{now - before} new" if now > before else ""

    def _print(self, text: str) -> None:
        if self._moving:
            sys.stderr.write("\r\x1b[K")
        say(text, file=sys.stderr)


def bar(share: float) -> str:
    """A share of 1, drawn."""
    filled = round(_BAR * share)
    return f"[{'#' * filled}{'.' * (_BAR - filled)}]"


def timing(progress: SessionProgress[S]) -> str:
    """How far a session is, and how long it will take."""
    left = progress.left_s
    return (
        f"{bar(progress.share)} {duration(progress.elapsed_s):>6}"
        f"  left {duration(left) if left is not None else '?':>6}"
    )


def ending(summary: SessionSummary) -> list[str]:
    """The first lines of a summary."""
    return ["", "Interrupted: everything up to here is kept." if summary.interrupted else "Done."]
