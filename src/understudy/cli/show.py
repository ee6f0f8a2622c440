"""How a session of play looks in a terminal: a line that moves, and a summary that stays."""

from __future__ import annotations

import shutil
import sys
import time
from typing import Protocol

from understudy.match.tally import Tally
from understudy.run.play import PlayProgress, PlaySummary
from understudy.telemetry.status import Status
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

    def show(self, progress: PlayProgress) -> None:
        """A session of play."""
        self.move(_line(progress), progress)

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


def _line(progress: PlayProgress) -> str:
    left = progress.left_s
    return (
        f"{bar(progress.share)} {duration(progress.elapsed_s):>6}"
        f"  left {duration(left) if left is not None else '?':>6}"
        f"  match {progress.played:>5}"
        f"  wins of last {len(progress.recent)}: {progress.win_rate:>4.0%}"
        f"  version {progress.version}"
    )


def summary_text(summary: PlaySummary, *, opponent: str) -> str:
    """What a person wants to know at the end."""
    s = summary.status
    lines = ["", "Interrupted: everything up to here is kept." if summary.interrupted else "Done."]
    if summary.before and summary.after and summary.rules:
        n = summary.after.matches
        lines += [
            "",
            f"Win rate v {opponent}, {n} frozen matches (95% interval):",
            f"  at the start  {_rate(summary.before)}",
            f"  now           {_rate(summary.after)}",
            f"  the rules     {_rate(summary.rules)}",
        ]
    lines += [
        "",
        f"While playing   {_share(s.win_rate_first)} in the first fifth, "
        f"{_share(s.win_rate_last)} in the last",
        f"Matches         {s.matches}",
        f"Versions        {s.versions}",
        f"A decision      {_milliseconds(s)}",
        f"Run folder      {s.run}",
        "",
        f"More: understudy status --run {s.run}   understudy models list --run {s.run}",
    ]
    return "\n".join(lines)


def _rate(tally: Tally) -> str:
    low, high = tally.interval
    return f"{bar(tally.win_rate)} {tally.win_rate:>6.1%}  ({low:.1%} to {high:.1%})"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _milliseconds(status: Status) -> str:
    took = status.decision_ms
    return "-" if took is None else f"p50 {took.p50:.3f} ms, p99 {took.p99:.3f} ms"
