"""Estimates with their intervals as SVG: one row each, a dot and the range of the true value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from understudy.screens.html.axis import Axis
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.figure import chart_figure

_WIDTH, _ROW = 520.0, 26.0
_RIGHT, _TOP, _BOTTOM = 16.0, 8.0, 28.0
_LETTER, _DIGIT, _LONGEST = 8.6, 8.6, 22


class IntervalRow(NamedTuple):
    """One estimate."""

    name: str
    value: float
    low: float
    high: float
    note: str
    """Behind the row: the value in words."""
    colour: int = 1
    """Of `groups`, from 1."""


def interval_chart(
    rows: Sequence[IntervalRow],
    *,
    title: str,
    explains: str,
    axis: Axis,
    groups: Sequence[str] = (),
    middle: float | None = None,
) -> Element | None:
    """A figure with its heading, its explanation and a key; None without rows.

    Args:
        groups: What the colours mean.
        middle: A value with a line through all rows, such as an even chance.
    """
    if not rows:
        return None
    left = 14 + _LETTER * max(min(len(one.name), _LONGEST) for one in rows)
    right = _RIGHT + _DIGIT * max(len(one.note) for one in rows)
    height = _TOP + _ROW * len(rows) + _BOTTOM

    def x(value: float) -> float:
        return round(left + axis.share(value) * (_WIDTH - left - right), 1)

    marks: list[HtmlNode] = []
    for value in axis.ticks:
        marks += [
            tag("line", x1=x(value), x2=x(value), y1=_TOP, y2=height - _BOTTOM, class_="grid"),
            tag("text", axis.text(value), x=x(value), y=height - 8, text__anchor="middle"),
        ]
    if middle is not None:
        marks.append(
            tag("line", x1=x(middle), x2=x(middle), y1=_TOP, y2=height - _BOTTOM, class_="pause")
        )
    for index, one in enumerate(rows):
        y = _TOP + _ROW * (index + 0.5)
        marks.extend(_row(one, y, left, x(one.low), x(one.value), x(one.high), _WIDTH - right))
    told = "; ".join(f"{one.name} {one.note}" for one in rows[:12])
    more = f"; and {len(rows) - 12} more" if len(rows) > 12 else ""
    drawing = tag(
        "svg", *marks, viewBox=f"0 0 {_WIDTH:g} {height:g}", role="img",
        aria__label=f"Estimates with intervals. {title}: {told}{more}.",
    )  # fmt: skip
    keys = [(name, f"k{index}") for index, name in enumerate(groups, 1)]
    return chart_figure(drawing, title=title, explains=explains, keys=keys, kind="interval-chart")


def _row(
    one: IntervalRow, y: float, left: float, low: float, at: float, high: float, end: float
) -> Iterable[Element]:
    name = one.name if len(one.name) <= _LONGEST else f"{one.name[: _LONGEST - 1]}…"
    yield tag("text", tag("title", one.name), name, x=left - 10, y=y + 4.5, text__anchor="end")
    yield tag("line", x1=low, x2=high, y1=y, y2=y, class_=f"range s{one.colour}")
    yield tag(
        "circle", tag("title", f"{one.name}: {one.note}"), cx=at, cy=y, r=5,
        class_=f"f{one.colour}",
    )  # fmt: skip
    yield tag("text", one.note, x=end + 10, y=y + 4.5)
