"""Heat maps as SVG: a table of values as colours, for example who beats whom, or places of a map.

The strength of a colour is an opacity and its hue a class, so that it fits light and dark pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.figure import chart_figure

_WIDTH = 520.0
_LEFT, _RIGHT, _GAP, _LEGEND = 24.0, 6.0, 1.5, 34.0
_LETTER, _CELL_LETTER, _PERCENT = 8.8, 8.0, 12.0
"""Width of an average letter, of labels and in cells."""
_LONGEST = 18
"""Letters of a label; a longer one is cut, and tells its whole text when pointed at."""
_LOWEST_ROW, _HIGHEST_ROW = 17.0, 40.0
_FAINT, _STRONG, _TURN = 0.05, 0.75, 0.6
"""Opacities: of the ends of the scale, and from where text on it changes its colour."""
_STEPS = 9
"""Of the legend."""


def heat_map(
    cells: Sequence[Sequence[float | None]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    explains: str,
    low: float,
    high: float,
    middle: float | None = None,
    text: Callable[[float], str] | None = None,
    square: bool = False,
) -> Element | None:
    """A figure with its heading, its explanation and a legend; None where no cell has a value.

    Args:
        cells: `[R, C]`, the first row at the top; None is a cell without a value.
        low: The value of the faintest colour, or of the strongest colour below `middle`.
        high: The value of the strongest colour; what lies beyond is drawn like the end.
        middle: The value without a colour; below it the hue is another.
        text: How a value is written.
        square: Cells are as high as wide, as on a map.
    """
    assert len(cells) == len(rows), "a name for each row"
    assert all(len(row) == len(columns) for row in cells), "a name for each column"
    known = [
        (value, rows[r], columns[c])
        for r, row in enumerate(cells)
        for c, value in enumerate(row)
        if value is not None
    ]
    if not known:
        return None
    scale = _Scale(low, high, middle)
    said = text or (lambda value: f"{value:.3g}")
    grid = _Grid.of(rows, columns, square=square)
    marks: list[HtmlNode] = [*_labels(grid, rows, columns)]
    written = _written(grid, [value for value, _, _ in known], said)
    for r, row in enumerate(cells):
        for c, value in enumerate(row):
            names = f"{rows[r]}, {columns[c]}"
            marks.extend(_cell(grid, r, c, value, names, scale, said, written))
    marks.extend(_legend(grid, scale, said))
    drawing = tag(
        "svg", *marks, viewBox=f"0 0 {_WIDTH:g} {grid.total:g}", role="img",
        aria__label=f"Heat map. {title}: {_in_words(known, cells, said)}",
    )  # fmt: skip
    return chart_figure(drawing, title=title, explains=explains, kind="heat-map")


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    middle: float | None

    def colour(self, value: float) -> tuple[str, float]:
        """The class of the hue, and the opacity."""
        if self.middle is None:
            share = (value - self.low) / ((self.high - self.low) or 1.0)
            return "above", _FAINT + (_STRONG - _FAINT) * min(max(share, 0.0), 1.0)
        reach = max(self.high - self.middle, self.middle - self.low) or 1.0
        share = min(abs(value - self.middle) / reach, 1.0)
        return "below" if value < self.middle else "above", _STRONG * share


@dataclass(frozen=True)
class _Grid:
    left: float
    top: float
    width: float
    """Of one cell."""
    height: float
    turned: bool
    """Whether the names of the columns stand at an angle."""
    rows: int

    @classmethod
    def of(cls, rows: Sequence[str], columns: Sequence[str], *, square: bool) -> _Grid:
        left = min(_LEFT + _LETTER * max(_shown(rows)), 0.4 * _WIDTH)
        letters = max(_shown(columns))
        numbers = letters <= len(str(len(columns)))  # some of them say enough
        turned = not numbers and _LETTER * letters > (_WIDTH - left - _RIGHT) / len(columns)
        slant = _LETTER * letters * math.sqrt(0.5) if turned else 0.0
        last = _LETTER * _shown(columns)[-1] * math.sqrt(0.5) if turned else 0.0
        width = (_WIDTH - left - max(_RIGHT, last)) / len(columns)
        if square:
            height = width = min(width, 2 * _HIGHEST_ROW)
        else:
            height = min(max(width, _LOWEST_ROW), _HIGHEST_ROW)
        top = 18.0 + slant if turned else 22.0
        return cls(left, top, width, height, turned, len(rows))

    def x(self, column: float) -> float:
        return self.left + column * self.width

    def y(self, row: float) -> float:
        return self.top + row * self.height

    @property
    def total(self) -> float:
        return self.y(self.rows) + _LEGEND


def _shown(names: Sequence[str]) -> list[int]:
    return [min(len(one), _LONGEST) for one in names] or [0]


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _every(room: float, needed: float) -> int:
    """Of how many labels one is written, so that they do not touch."""
    return max(1, math.ceil(needed / room))


def _labels(grid: _Grid, rows: Sequence[str], columns: Sequence[str]) -> Iterable[Element]:
    for r in range(0, len(rows), _every(grid.height, _LOWEST_ROW - 1)):
        yield tag(
            "text", tag("title", rows[r]), _cut(rows[r]),
            x=grid.left - 6, y=grid.y(r + 0.5) + 4.5, text__anchor="end",
        )  # fmt: skip
    needed = 16.0 if grid.turned else _LETTER * max(_shown(columns)) + 4
    for c in range(0, len(columns), _every(grid.width, needed)):
        x, y = grid.x(c + 0.5), grid.top - 7
        turn = f"rotate(-45 {x:.1f} {y:.1f})" if grid.turned else None
        yield tag(
            "text", tag("title", columns[c]), _cut(columns[c]),
            x=x, y=y, text__anchor="start" if grid.turned else "middle", transform=turn,
        )  # fmt: skip


def _cell(
    grid: _Grid,
    r: int,
    c: int,
    value: float | None,
    names: str,
    scale: _Scale,
    said: Callable[[float], str],
    written: Callable[[float], str] | None,
) -> Iterable[Element]:
    x, y = grid.x(c), grid.y(r)
    width, height = grid.width - _GAP, grid.height - _GAP
    place = {"x": round(x, 2), "y": round(y, 2), "width": width, "height": height}
    if value is None:
        yield tag("rect", tag("title", f"{names}: no value"), **place, class_="missing")
        yield tag("path", d=f"M{x:.1f} {y + height:.1f}L{x + width:.1f} {y:.1f}", class_="missing")
        return
    hue, opacity = scale.colour(value)
    told = tag("title", f"{names}: {said(value)}")
    yield tag("rect", told, **place, rx=2.0, class_=hue, fill__opacity=round(opacity, 3))
    if written is not None:
        yield tag(
            "text", written(value), x=x + width / 2, y=y + height / 2 + 4.5, text__anchor="middle",
            class_="on-strong" if opacity > _TURN else "on-faint",
        )  # fmt: skip


def _written(
    grid: _Grid, values: Iterable[float], said: Callable[[float], str]
) -> Callable[[float], str] | None:
    """How values stand in their cells: as said, or without the sign that the legend has; None:
    there is no room."""

    def bare(value: float) -> str:
        return said(value).removesuffix("%")

    if grid.height < _LOWEST_ROW:
        return None
    values = list(values)
    for words in (said, bare):
        if max(_text_width(words(value)) for value in values) <= grid.width - _GAP:
            return words
    return None


def _text_width(text: str) -> float:
    return sum(_PERCENT if letter == "%" else _CELL_LETTER for letter in text)


def _legend(grid: _Grid, scale: _Scale, said: Callable[[float], str]) -> Iterable[Element]:
    wide, y = 18.0, grid.y(grid.rows) + 12
    begin = grid.left + _LETTER * len(said(scale.low)) + 2
    yield tag("text", said(scale.low), x=begin - 6, y=y + 10, text__anchor="end")
    for step in range(_STEPS):
        value = scale.low + (scale.high - scale.low) * step / (_STEPS - 1)
        hue, opacity = scale.colour(value)
        yield tag(
            "rect", x=begin + step * wide, y=y, width=wide - 1, height=12, class_=hue,
            fill__opacity=round(opacity, 3),
        )  # fmt: skip
    yield tag("text", said(scale.high), x=begin + _STEPS * wide + 5, y=y + 10)


def _in_words(
    known: Sequence[tuple[float, str, str]],
    cells: Sequence[Sequence[float | None]],
    said: Callable[[float], str],
) -> str:
    least, most = min(known), max(known)
    empty = sum(len(row) for row in cells) - len(known)
    size = f"{len(cells)} rows by {len(cells[0])} columns"
    words = (
        f"{size}; lowest {said(least[0])} at {least[1]}, {least[2]}; "
        f"highest {said(most[0])} at {most[1]}, {most[2]}"
    )
    return f"{words}; {empty} without a value." if empty else f"{words}."
