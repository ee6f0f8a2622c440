"""The table of all runs of a folder: what each is, how it goes, and when it was last heard of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from understudy.screens.monitor import parts
from understudy.screens.monitor.drawing import cut, fitted, text_width
from understudy.screens.monitor.rows import Line, Tone, TonedText
from understudy.screens.monitor.sources import RunLine
from understudy.screens.monitor.sparkline import UNICODE, Glyphs, resampled, sparkline
from understudy.screens.monitor.tabs import kind
from understudy.telemetry.run_view import RunView
from understudy.telemetry.text import duration, plain

_GAP = 2
_TREND = 16
_SHORT = {"waiting for experience": "waits", "not started": "none"}
"""States of the learner in fewer letters."""


class _Column(NamedTuple):
    title: str
    rank: int
    """Columns of the highest rank are left out first where the screen is narrow."""
    right: bool = False


_COLUMNS = (
    _Column("run", 0),
    _Column("kind", 3),
    _Column("matches", 4, right=True),
    _Column("win rate", 1),
    _Column("trend", 6),
    _Column("version", 2, right=True),
    _Column("learner", 1),
    _Column("waiting", 5, right=True),
    _Column("problems", 1, right=True),
    _Column("last", 2, right=True),
)


def last_heard(view: RunView) -> float | None:
    """When anything happened last; None: nothing did."""
    return max((one.t for one in view.recent), default=view.status.last_version_time)


def _cells(one: RunLine, glyphs: Glyphs) -> list[tuple[str, Tone]]:
    view = one.view
    name = plain(one.name, limit=60)
    if view is None:
        return [(name, "plain"), (f"cannot be read: {one.error}", "problem")]
    now = view.status
    finished = now.wins + now.defeats + now.ties
    trend = view.trends.get("win_rate") or view.trends.get("return") or view.trends.get("loss")
    drawn = "" if trend is None else sparkline(resampled(trend, _TREND, values=5), glyphs=glyphs)
    state = "PAUSED" if now.paused_since is not None else str(now.learner)
    if now.learning == "stalled":
        state = "STALLED"
    state = _SHORT.get(state, state)
    heard = last_heard(view)
    count = now.ledger.opened if now.ledger is not None else now.matches
    return [
        (name, "plain"),
        (kind(view), "muted"),
        (f"{count:,}", "plain"),
        (parts.won(now.wins, finished) if finished else "-", "plain"),
        (drawn, "trend"),
        (f"{now.version}", "plain"),
        (state, "problem" if state in {"STALLED", "dead"} else "plain"),
        (f"{now.buffer_file_count:,}", "plain"),
        (f"{now.errors:,}", "problem" if now.errors else "plain"),
        ("never" if heard is None else duration(now.at - heard), "muted"),
    ]


def run_table(
    runs: Sequence[RunLine], *, width: int, height: int, chosen: int, glyphs: Glyphs = UNICODE
) -> list[Line]:
    """A header and one line a run, with the chosen one in sight; exactly `height` lines."""
    cells = [_cells(one, glyphs) for one in runs]
    whole = [row for row in cells if len(row) == len(_COLUMNS)]
    widths = [
        max([text_width(column.title), *(text_width(row[place][0]) for row in whole)])
        for place, column in enumerate(_COLUMNS)
    ]
    widths[0] = max([widths[0], *(text_width(row[0][0]) for row in cells)])
    shown = list(range(len(_COLUMNS)))
    while sum(widths[place] + _GAP for place in shown) > width - 2 and len(shown) > 1:
        shown.remove(max(shown, key=lambda place: _COLUMNS[place].rank))
    head = tuple(
        TonedText(_aligned(_COLUMNS[place].title, widths[place], _COLUMNS[place].right), "label")
        for place in shown
    )
    lines: list[Line] = [fitted((TonedText("  "), *head), width, glyphs=glyphs)]
    room = max(height - 1, 1)
    first = min(max(chosen - room + 1, 0), max(len(cells) - room, 0))
    for index, row in enumerate(cells[first : first + room], first):
        line = _line(row, widths, shown, index == chosen, width, glyphs)
        lines.append(tuple(span._replace(action=f"pick({index})") for span in line))
    if not cells:
        lines.append(fitted((TonedText("  no run here yet", "muted"),), width, glyphs=glyphs))
    lines = lines[:height]
    return lines + [(TonedText(" " * width),)] * (height - len(lines))


def _line(
    row: list[tuple[str, Tone]],
    widths: list[int],
    shown: list[int],
    chosen: bool,
    width: int,
    glyphs: Glyphs,
) -> Line:
    mark = TonedText("> " if chosen else "  ", "title")
    if len(row) < len(_COLUMNS):
        text = f"{_aligned(row[0][0], widths[0], False)}{row[1][0]}"
        line: Line = (mark, TonedText(cut(text, width - 2, glyphs=glyphs), row[1][1]))
    else:
        line = (
            mark,
            *(
                TonedText(
                    _aligned(row[place][0], widths[place], _COLUMNS[place].right), row[place][1]
                )
                for place in shown
            ),
        )
    line = fitted(line, width, glyphs=glyphs)
    return tuple(span._replace(tone="chosen") for span in line) if chosen else line


def _aligned(text: str, width: int, right: bool) -> str:
    gap = " " * (width - text_width(text))
    return (gap + text if right else text + gap) + " " * _GAP
