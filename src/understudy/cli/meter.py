"""A line on stderr that says how far a command has come, and how long it will take."""

from __future__ import annotations

import sys
import time

from understudy.telemetry.text import duration, say

_LINE_EVERY_S = 5.0
_MOVE_EVERY_S = 0.1
_BAR = 24


class Meter:
    """In a terminal the line moves; elsewhere one is printed now and then. `--json` is silent."""

    def __init__(self, words: str, *, quiet: bool) -> None:
        self._words = words
        self._quiet = quiet
        self._moving = sys.stderr.isatty()
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
        filled = round(_BAR * share)
        line = (
            f"[{'#' * filled}{'.' * (_BAR - filled)}] {share:>4.0%}  {self._words}"
            f"  {duration(elapsed)}, at most {left} left"
        )
        if self._moving:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
        else:
            say(line, file=sys.stderr)

    def close(self) -> None:
        """Make room for what comes next."""
        if self._moving and not self._quiet:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
