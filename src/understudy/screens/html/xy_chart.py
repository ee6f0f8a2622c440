"""Lines over any number, such as matches or steps, with thresholds and intervals, as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from understudy.screens.html.axis import Axis, joined, number_text
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.figure import chart_figure

_WIDTH, _HEIGHT = 520.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 14.0, 22.0, 42.0
_POINTS = 240
_LETTER = 7.4


class XyLine(NamedTuple):
    """One curve. Several lines of one colour and name are one thing, in pieces."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 1
    low: Sequence[float] = ()
    """The lower end of an interval around each value, and the upper one."""
    high: Sequence[float] = ()
    dots: bool = False
    """Mark each point."""


class Threshold(NamedTuple):
    """A dashed horizontal line; without an end it goes through the chart."""

    name: str
    y: float
    colour: int = 1
    begin: float = -math.inf
    end: float = math.inf


class Mark(NamedTuple):
    """A named stretch or place of the horizontal axis."""

    name: str
    begin: float
    end: float
    """The same as `begin`: a place."""


def xy_chart(
    lines: Sequence[XyLine],
    *,
    title: str,
    explains: str,
    across: str,
    y_axis: Axis,
    thresholds: Sequence[Threshold] = (),
    marks: Sequence[Mark] = (),
    x_text: Callable[[float], str] = number_text,
) -> Element | None:
    """A figure with its heading, its explanation and a key; None where there is nothing to draw.

    Args:
        across: What the horizontal axis counts.
    """
    drawn = [one for one in lines if len(one.x)]
    if not drawn:
        return None
    places = [x for one in drawn for x in one.x]
    frame = _Frame(Axis.tight(min(places), max(places), x_text), y_axis)
    inside: list[HtmlNode] = [
        *_bands(frame, marks),
        *_ticks(frame, across),
        *_thresholds(frame, thresholds),
        *_names(frame, marks),
    ]
    for one in drawn:
        inside.extend(_curve(frame, one))
    named = {one.name: one for one in reversed(drawn)}
    ends = "; ".join(
        f"{name} from {y_axis.text(one.y[0])} to {y_axis.text(_last(drawn, name))}"
        for name, one in reversed(named.items())
    )
    limits = {one.name: one for one in thresholds}
    words = [f"{one.name} at {y_axis.text(one.y)}" for one in limits.values()]
    label = f"Line chart over {across}. {title}: {'; '.join([ends, *words])}."
    drawing = tag(
        "svg", *inside, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", role="img", aria__label=label
    )
    keys = [(name, f"k{one.colour}") for name, one in reversed(named.items())]
    keys += [(one.name, f"dashed k{one.colour}") for one in limits.values()]
    return chart_figure(drawing, title=title, explains=explains, keys=keys, kind="xy")


class _Frame(NamedTuple):
    across: Axis
    up: Axis

    def x(self, value: float) -> float:
        return _LEFT + self.across.share(value) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _TOP + (1.0 - self.up.share(value)) * (_HEIGHT - _TOP - _BOTTOM)


def _ticks(frame: _Frame, across: str) -> Iterable[Element]:
    for value in frame.up.ticks:
        y = frame.y(value)
        yield tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid")
        yield tag("text", frame.up.text(value), x=_LEFT - 8, y=y + 4.5, text__anchor="end")
    for value in frame.across.ticks:
        x = frame.x(value)
        anchor = "end" if x > _WIDTH - 30 else "start" if x < _LEFT + 10 else "middle"
        text = frame.across.text(value)
        yield tag("text", text, x=x, y=_HEIGHT - _BOTTOM + 17, text__anchor=anchor)
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield tag("text", across, x=middle, y=_HEIGHT - 7, text__anchor="middle", class_="across")


def _bands(frame: _Frame, marks: Sequence[Mark]) -> Iterable[Element]:
    for index, one in enumerate(marks):
        if one.end > one.begin:
            x, end = frame.x(one.begin), frame.x(one.end)
            yield tag(
                "rect", tag("title", one.name), x=x, y=_TOP, width=max(end - x, 0.5),
                height=_HEIGHT - _TOP - _BOTTOM, class_=f"stretch{index % 2}",
            )  # fmt: skip
        else:
            x = frame.x(one.begin)
            yield tag("line", x1=x, x2=x, y1=_TOP, y2=_HEIGHT - _BOTTOM, class_="pause")


def _names(frame: _Frame, marks: Sequence[Mark]) -> Iterable[Element]:
    """Above the chart, the last ones first, as far as they do not touch."""
    free = _WIDTH - _RIGHT
    for one in reversed(marks):
        width = _LETTER * len(one.name)
        begin = min(frame.x(one.begin), free - width)
        if begin < _LEFT or begin + width > free + 0.1:
            continue
        yield tag("text", one.name, x=begin, y=_TOP - 7, class_="stretch-name")
        free = begin - 10


def _thresholds(frame: _Frame, thresholds: Sequence[Threshold]) -> Iterable[Element]:
    for one in thresholds:
        begin, end = max(one.begin, frame.across.low), min(one.end, frame.across.high)
        y = frame.y(one.y)
        yield tag(
            "line", tag("title", f"{one.name}: {frame.up.text(one.y)}"), x1=frame.x(begin),
            x2=max(frame.x(end), frame.x(begin) + 2), y1=y, y2=y,
            class_=f"threshold s{one.colour}",
        )  # fmt: skip


def _curve(frame: _Frame, line: XyLine) -> Iterable[Element]:
    step = max(1, math.ceil(len(line.x) / _POINTS))
    chosen = [*range(0, len(line.x) - 1, step), len(line.x) - 1]
    points = [(frame.x(line.x[i]), frame.y(line.y[i])) for i in chosen]
    if line.low and line.high:
        top = [(frame.x(line.x[i]), frame.y(line.high[i])) for i in chosen]
        low = [(frame.x(line.x[i]), frame.y(line.low[i])) for i in reversed(chosen)]
        yield tag("path", d=f"M{joined([*top, *low])}Z", class_=f"band f{line.colour}")
    yield tag("path", d=f"M{joined(points)}", class_=f"thick s{line.colour}")
    if line.dots or len(points) == 1:
        for x, y in points:
            yield tag("circle", cx=round(x, 1), cy=round(y, 1), r=3, class_=f"f{line.colour}")


def _last(lines: Sequence[XyLine], name: str) -> float:
    return next(one.y[-1] for one in reversed(lines) if one.name == name)
