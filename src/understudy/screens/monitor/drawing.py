"""Panels as lines of a given width and height: the layout, without any terminal.

Below `WIDE` columns panels stand below each other, above it side by side in boxes. Rows of the
highest rank are left out until everything fits; the log gets what is left.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence

from understudy.screens.monitor.log_lines import LogLine, clock_time
from understudy.screens.monitor.rows import Line, Panel, Row, Tone, TonedText
from understudy.screens.monitor.sparkline import (
    UNICODE,
    Glyphs,
    meter,
    resampled,
    sparkline,
)

WIDE = 110
_LABEL = 12
_LEAST_TREND = 8
_BAR = 20
_LEAST_BAR = 4
_LOG_ROWS = 3
"""The log has at least so many lines, and a title."""
_BY = 8


def text_width(text: str) -> int:
    """Columns on a terminal: East Asian characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, width: int, *, glyphs: Glyphs = UNICODE) -> str:
    """The text in at most `width` columns; what is cut off ends in a sign that says so."""
    if text_width(text) <= width:
        return text
    room, kept = width - len(glyphs.cut), []
    for char in text:
        room -= _char_width(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept) + glyphs.cut if width > 0 else ""


def line_width(line: Line) -> int:
    """Columns of a whole line."""
    return sum(text_width(span.text) for span in line)


def fitted(line: Line, width: int, *, glyphs: Glyphs = UNICODE) -> Line:
    """The line in exactly `width` columns: cut, or filled with spaces."""
    spans: list[TonedText] = []
    left = width
    for span in line:
        kept = cut(span.text, left, glyphs=glyphs)
        spans.append(span._replace(text=kept))
        left -= text_width(kept)
        if kept != span.text:
            break
    return (*spans, TonedText(" " * left)) if left > 0 else tuple(spans)


def row_lines(row: Row, width: int, *, glyphs: Glyphs = UNICODE, label: int = _LABEL) -> list[Line]:
    """One row; its trend stands at the right where there is room for it."""
    name = TonedText(f"{row.label:<{label}}", "label")
    if row.wraps:
        rows = textwrap.wrap(row.text, max(width - label, 20), break_long_words=True) or [""]
        first = (name, TonedText(rows[0], row.tone))
        return [first, *((TonedText(" " * label), TonedText(text, row.tone)) for text in rows[1:])]
    spans = [name, TonedText(row.text, row.tone)]
    if row.new:
        spans.append(TonedText(f"  {row.new}", "good"))
    taken = line_width(tuple(spans))
    if row.bars:
        words = sum(text_width(word) + 1 for word, _ in row.bars)
        wide = min(_BAR, (width - taken - words) // len(row.bars) - 2)
        for word, share in row.bars if wide >= _LEAST_BAR else ():
            drawn_bar = meter(share, wide, glyphs=glyphs)
            spans += [
                TonedText(f"{word} " if word else ""),
                TonedText(drawn_bar, "trend"),
                TonedText("  "),
            ]
    if row.trend is not None and (left := min(width - taken - 2, width // 2)) >= _LEAST_TREND:
        means = resampled(row.trend, left, values=row.values)
        drawn = sparkline(means, bounds=row.bounds, glyphs=glyphs)
        gap = " " * (width - taken - left)
        spans += [TonedText(gap + " " * (left - len(drawn))), TonedText(drawn, "trend")]
    return [tuple(spans)]


def panel_lines(panel: Panel, width: int, *, glyphs: Glyphs = UNICODE) -> list[Line]:
    """A panel under a line with its title."""
    lines = [_rule(panel.title, width, panel.tone, glyphs)]
    for row in panel.rows:
        lines += row_lines(row, width, glyphs=glyphs)
    return lines


def _rule(title: str, width: int, tone: Tone, glyphs: Glyphs) -> Line:
    head = f"{glyphs.line} {title} "
    rest = glyphs.line * max(width - text_width(head), 0)
    return (
        TonedText(f"{glyphs.line} ", "muted"),
        TonedText(title, tone),
        TonedText(f" {rest}", "muted"),
    )


def boxed(panel: Panel, width: int, *, glyphs: Glyphs = UNICODE, label: int = _LABEL) -> list[Line]:
    """A panel in a box of so many columns, with labels in `label` of them."""
    rows = [
        line for row in panel.rows for line in row_lines(row, width - 4, glyphs=glyphs, label=label)
    ]
    return _box(panel.title, panel.tone, rows, width, glyphs)


def _box(title: str, tone: Tone, rows: Iterable[Line], width: int, glyphs: Glyphs) -> list[Line]:
    a, b, c, d, side = glyphs.box
    top = glyphs.line * max(width - text_width(title) - 5, 0)
    bar = TonedText(side, "muted")
    return [
        (
            TonedText(f"{a}{glyphs.line} ", "muted"),
            TonedText(title, tone),
            TonedText(f" {top}{b}", "muted"),
        ),
        *(
            (bar, TonedText(" "), *fitted(row, width - 4, glyphs=glyphs), TonedText(" "), bar)
            for row in rows
        ),
        (TonedText(f"{c}{glyphs.line * (width - 2)}{d}", "muted"),),
    ]


def without_last(panels: Sequence[Panel]) -> list[Panel]:
    """Without the row that is missed least: the last one of the highest rank; empty panels go."""
    highest = max((row.rank for panel in panels for row in panel.rows), default=0)
    if highest == 0:
        return list(panels)
    place = max(
        index for index, panel in enumerate(panels) if any(r.rank == highest for r in panel.rows)
    )
    rows = list(panels[place].rows)
    last = max(index for index, row in enumerate(rows) if row.rank == highest)
    del rows[last]
    smaller = [panels[place]._replace(rows=tuple(rows))] if rows else []
    return [*panels[:place], *smaller, *panels[place + 1 :]]


def drawn(
    panels: Sequence[Panel],
    log: Sequence[LogLine],
    *,
    width: int,
    height: int,
    log_title: str = "Log",
    glyphs: Glyphs = UNICODE,
) -> list[Line]:
    """The body of the screen: exactly `height` lines of at most `width` columns."""
    wide = width >= WIDE
    arrange = _side_by_side if wide else _stacked
    frame = 2 if wide else 1
    least = min(_LOG_ROWS, height) + frame
    kept = list(panels)
    lines = arrange(kept, width, glyphs)
    while len(lines) > height - least:
        fewer = without_last(kept)
        if fewer == kept:
            break
        kept, lines = fewer, arrange(fewer, width, glyphs)
    lines = lines[: max(height - least, 0)]
    room = height - len(lines) - frame
    shown = [log_line(one, glyphs) for one in log[-room:]] if room > 0 else []
    if wide:
        blank: Line = (TonedText(""),)
        inner = shown + [blank] * (room - len(shown))
        lines += _box(log_title, "title", inner, width, glyphs)
    else:
        lines += [_rule(log_title, width, "title", glyphs), *shown]
    lines = [fitted(line, width, glyphs=glyphs) for line in lines[:height]]
    return lines + [(TonedText(" " * width),)] * (height - len(lines))


def log_line(one: LogLine, glyphs: Glyphs = UNICODE) -> Line:
    """`14:32:05 learner  version 12 published`"""
    by = cut(one.by, _BY, glyphs=glyphs)
    gap = " " * (_BY - text_width(by))
    return (
        TonedText(f"{clock_time(one.t)} ", "muted"), TonedText(f"{by}{gap} ", "label"),
        TonedText(one.text, one.tone),
    )  # fmt: skip


def _stacked(panels: Sequence[Panel], width: int, glyphs: Glyphs) -> list[Line]:
    return [line for panel in panels for line in panel_lines(panel, width, glyphs=glyphs)]


def _side_by_side(panels: Sequence[Panel], width: int, glyphs: Glyphs) -> list[Line]:
    half = width // 2
    left, right = (
        [
            line
            for panel in panels
            if panel.side == side
            for line in boxed(panel, columns, glyphs=glyphs)
        ]
        for side, columns in (("left", half), ("right", width - half))
    )
    if not left or not right:
        return _boxes(panels, width, glyphs)
    rows = max(len(left), len(right))
    left = _lengthened(left, rows, half, glyphs)
    right = _lengthened(right, rows, width - half, glyphs)
    return [(*a, *b) for a, b in zip(left, right, strict=True)]


def _lengthened(lines: list[Line], rows: int, width: int, glyphs: Glyphs) -> list[Line]:
    """A column of boxes in so many lines: the last box gets empty rows."""
    bar = TonedText(glyphs.box[-1], "muted")
    empty: Line = (bar, TonedText(" " * (width - 2)), bar)
    return [*lines[:-1], *[empty] * (rows - len(lines)), lines[-1]]


def _boxes(panels: Sequence[Panel], width: int, glyphs: Glyphs) -> list[Line]:
    return [line for panel in panels for line in boxed(panel, width, glyphs=glyphs)]
