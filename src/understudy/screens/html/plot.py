"""The frame that charts are drawn in: plot area, scales, axes, and what a script reads values by.

The `<svg>` of a chart says in `data-` attributes where its plot area lies and what its scales are,
so that a script can turn the drawn lines back into values and the page need not hold them twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from understudy.screens.html.axis import PERCENT, Axis, joined, nice_step, number_text
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.telemetry.text import duration, plain

Unit: TypeAlias = Literal["win rate", "share", "number", "microseconds", "seconds"]
Point: TypeAlias = tuple[float, float]

WIDTH, HEIGHT = 520.0, 236.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 14.0, 10.0, 28.0
COLOURS = 6
"""Lines, layers and runs that can be told apart by colour."""
_POINTS = 160
_MOST_DIGITS = 7
_LOG = 1_000.0
"""Positive values that differ by more than this are drawn on a logarithmic scale."""
_LOG_TIME = 20.0
"""The same of durations."""
_LOWEST = 1e6
"""What is smaller than the largest by more than this is drawn at the bottom."""
_MARKS, _MARK_WORDS, _LETTER = 60, 16, 7.2
"""Of an axis, at most; characters of the name of one, and how wide one is."""
_TIMES = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
)  # fmt: skip
"""Steps that people count time in, in seconds; then days."""


class AxisMark(NamedTuple):
    """A place on the horizontal axis with a name, such as the beginning of a stage."""

    at: float
    name: str


class ChartLevel(NamedTuple):
    """A value that is marked across a chart, such as a target."""

    value: float
    name: str


@dataclass(frozen=True)
class ChartAxis:
    """The horizontal axis, from 0 to `end`."""

    end: float
    counts: str = ""
    """What it counts, such as `matches`; empty: seconds of play."""
    pauses: Sequence[float] = ()
    marks: Sequence[AxisMark] = ()

    def x(self, at: float) -> float:
        share = min(max(at / self.end, 0.0), 1.0) if self.end > 0 else 1.0
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Places with their words."""
        if self.end <= 0:
            return
        step = max(nice_step(self.end / 4), 1.0) if self.counts else _round_time(self.end / 4)
        for count in range(int(self.end / step + 1e-9) + 1):
            if self.counts:
                words = number_text(count * step) if count else f"0 {self.counts}"
            else:
                long = duration(count * step)
                short = long.removesuffix(" 0s").removesuffix(" 0m").removesuffix(" 0h")
                words = short.replace("m", " min") if count else "0"
            yield count * step, words


@dataclass(frozen=True)
class Scale:
    """The vertical axis."""

    axis: Axis
    unit: Unit

    @classmethod
    def of(cls, values: Sequence[float], unit: Unit, raw: Iterable[Sequence[float]] = ()) -> Scale:
        """One that shows all `values`, and all but the outliers of `raw`."""
        if unit in ("win rate", "share"):
            return cls(PERCENT, unit)
        everything = sorted([*values, *(one for row in raw for one in row)])
        # One outlier must not flatten the rest.
        low = min(*values, everything[len(everything) // 50])
        high = max(*values, everything[-1 - len(everything) // 50])
        if low > 0:
            low = max(low, high / _LOWEST)
        if low > 0 and high / low > (_LOG if unit == "number" else _LOG_TIME):
            return cls(Axis.logarithmic(low, high), unit)
        if low >= 0 and low < 0.4 * high:
            low = 0.0
        return cls(Axis.linear(low, high), unit)

    def text(self, value: float) -> str:
        return value_text(self.unit)(value)

    def tick_texts(self) -> list[str]:
        """The words at the ticks, with as many digits as tell them apart."""
        texts = [self.text(value) for value in self.axis.ticks]
        digits = 3
        while self.unit == "number" and len(set(texts)) < len(texts) and digits < _MOST_DIGITS:
            digits += 1
            texts = [f"{value:.{digits}g}" for value in self.axis.ticks]
        return texts

    def y(self, value: float) -> float:
        return TOP + (1.0 - self.axis.share(value)) * (HEIGHT - TOP - BOTTOM)


def drawing(
    marks: Iterable[HtmlNode],
    *,
    scale: Scale,
    axis: ChartAxis,
    label: str,
    levels: Sequence[ChartLevel] = (),
) -> Element:
    """The `<svg>` of a chart: a frame with marks in it."""
    return tag(
        "svg",
        *_frame(scale, axis),
        *marks,
        *_marks(axis),  # their names must be read above areas
        *(one for level in levels for one in _level(level, scale)),
        viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
        role="img",
        aria__label=label,
        **{
            "data-plot": f"{LEFT:g} {WIDTH - RIGHT:g} {TOP:g} {HEIGHT - BOTTOM:g}",
            "data-low": repr(scale.axis.low),
            "data-high": repr(scale.axis.high),
            "data-log": "" if scale.axis.log else None,
            "data-unit": scale.unit,
            "data-end": repr(float(axis.end)),
            "data-counts": axis.counts or None,
        },
    )


def keys(
    names: Sequence[HtmlNode], colours: Sequence[int], *, always: bool = False
) -> list[HtmlNode]:
    """The key of a chart; one line needs none, unless its colour means the same in other charts."""
    entries = [
        tag("li", name, class_=f"k{colour}") for name, colour in zip(names, colours, strict=True)
    ]
    return [tag("ul", *entries, class_="keys")] if always or len(entries) > 1 else []


def curve(places: Sequence[float], values: Sequence[float], scale: Scale) -> str:
    """The `d` of a path through values at places in the picture."""
    points = [(x, scale.y(value)) for x, value in zip(places, values, strict=True)]
    return f"M{joined(thinned(points))}"


def area(top: Sequence[Point], low: Sequence[Point]) -> str:
    """The `d` of a path around what lies between two lines."""
    return f"M{joined([*thinned(top), *reversed(thinned(low))])}Z"


def thinned(points: Sequence[Point]) -> list[Point]:
    """At most about `_POINTS`, evenly spread, with the last one."""
    step = max(1, math.ceil(len(points) / _POINTS))
    return [*points[:-1:step], points[-1]]


def value_text(unit: Unit) -> Callable[[float], str]:
    """How values of a unit are written."""
    match unit:
        case "win rate" | "share":
            return lambda value: f"{value:.0%}"
        case "microseconds":
            return _microseconds
        case "seconds":
            return duration
    return number_text


def _microseconds(us: float) -> str:
    for scale, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= scale:
            return f"{us / scale:.3g} {unit}"
    return f"{us:.3g} µs"


def _frame(scale: Scale, axis: ChartAxis) -> Iterator[Element]:
    for value, words in zip(scale.axis.ticks, scale.tick_texts(), strict=True):
        y = scale.y(value)
        yield tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid")
        yield tag("text", words, x=LEFT - 8, y=y + 4.5, text__anchor="end")
    for played in axis.pauses:
        yield _upright(axis.x(played), "pause")
    for at, words in axis.ticks():
        x = axis.x(at)
        anchor = "start" if not at else "end" if x > WIDTH - 40 else "middle"
        yield tag("text", words, x=x, y=HEIGHT - 8, text__anchor=anchor)


def _marks(axis: ChartAxis) -> Iterator[Element]:
    """The newest, each with its name where there is room up to the next."""
    shown = [(axis.x(one.at), plain(one.name, limit=_MARK_WORDS)) for one in axis.marks[-_MARKS:]]
    ends = [*(x for x, _ in shown), WIDTH - RIGHT][1:]
    for (x, name), end in zip(shown, ends, strict=True):
        yield _upright(x, "mark")
        if end - x > _LETTER * len(name):
            yield tag("text", name, x=x + 4, y=TOP + 10, class_="mark-name")


def _upright(x: float, kind: str) -> Element:
    return tag("line", x1=x, x2=x, y1=TOP, y2=HEIGHT - BOTTOM, class_=kind)


def _level(level: ChartLevel, scale: Scale) -> Iterator[Element]:
    y = scale.y(level.value)
    # Its words stand below the line where there is no room above it.
    words = y - 5 if y - TOP > 20 else y + 14
    yield tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="level")
    yield tag(
        "text", f"{level.name} {scale.text(level.value)}",
        x=WIDTH - RIGHT - 4, y=words, text__anchor="end", class_="level-name",
    )  # fmt: skip


def _round_time(seconds: float) -> float:
    """A step that people count in, at least `seconds` long."""
    for step in _TIMES:
        if step >= seconds:
            return float(step)
    return 86400.0 * nice_step(seconds / 86400.0)
