"""Line charts of trends as SVG: sharp at every width, light and dark, without a library.

The horizontal axis is the time of play: pauses between sessions are cut out and marked.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

from understudy.core.statistics import wilson
from understudy.screens.report.html import Element, HtmlNode, tag
from understudy.telemetry.text import duration
from understudy.telemetry.trends import Trend, Trends

Unit: TypeAlias = Literal["win rate", "share", "number", "microseconds"]

_WIDTH, _HEIGHT = 520.0, 236.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 14.0, 10.0, 28.0
_LINES = 6
"""As many as there are colours."""
_POINTS = 160
_CALM = 0.04
"""The share of the values that a thick line is averaged over."""
_FEWEST = 20.0
"""Matches that a point of a win rate is over, at least, once there have been so many."""
_PAUSE_S, _PAUSE_TIMES = 300.0, 8.0
_LOG = 1_000.0
"""Positive values that differ by more than this are drawn on a logarithmic scale."""
_LOG_TIME = 20.0
"""The same of durations."""
_LOWEST = 1e6
"""What is smaller than the largest by more than this is drawn at the bottom."""


_TIMES = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
)  # fmt: skip
"""Steps that people count time in, in seconds; then days."""


class PlayTime:
    """Moments as seconds of play since the run began, without the pauses."""

    def __init__(self, trends: Trends) -> None:
        moments = sorted({one.t for trend in trends.values() for one in trend.bins})
        gaps = [after - before for before, after in pairwise(moments)]
        usual = statistics.median(gaps) if gaps else 0.0
        longest = max(_PAUSE_S, _PAUSE_TIMES * usual)
        self._starts: list[tuple[float, float]] = []
        """When each stretch of play began, and the seconds of play before it."""
        self.pauses: list[float] = []
        played = 0.0
        for index, moment in enumerate(moments):
            gap = gaps[index - 1] if index else 0.0
            if not index or gap > longest:
                if index:
                    self.pauses.append(played)
                self._starts.append((moment, played))
            else:
                played += gap
        self.seconds = played

    def at(self, t: float) -> float:
        begin, before = next((one for one in reversed(self._starts) if one[0] <= t), (t, 0.0))
        return before + t - begin


@dataclass(frozen=True)
class ChartLine:
    """One trend in a chart."""

    name: str
    trend: Trend


def line_chart(
    lines: Sequence[ChartLine], time: PlayTime, *, title: str, explains: str, unit: Unit = "number"
) -> Element | None:
    """A figure with its heading, its explanation and a key; None where there is nothing to draw."""
    shown = [one for one in lines if len(one.trend.bins) > 1][:_LINES]
    if not shown:
        return None
    wins = unit == "win rate"
    curves = [rolling(one.trend, over=_over(one.trend, wins=wins)) for one in shown]
    raw = [] if wins else [one.trend.means() for one in shown]
    scale = _Scale.of([value for curve in curves for value in curve] or [0.0], unit, raw)
    marks: list[HtmlNode] = [*_frame(scale, time)]
    for index, (line, curve) in enumerate(zip(shown, curves, strict=True), start=1):
        places = [_x(time, one.t) for one in line.trend.bins]
        begin = 0
        if wins:
            begin = _sure(line.trend)
            marks.append(_band(line.trend, places, curve, scale, index, begin))
        else:
            marks.append(_path(places, line.trend.means(), scale, f"thin s{index}"))
        marks.append(_path(places[begin:], curve[begin:], scale, f"thick s{index}"))
    text = _form(unit)
    ends = "; ".join(
        f"{one.name} from {text(curve[_sure(one.trend) if wins else 0])} to {text(curve[-1])}"
        for one, curve in zip(shown, curves, strict=True)
    )
    drawing = tag(
        "svg", *marks, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", role="img",
        aria__label=f"Line chart. {title}: {ends}.",
    )  # fmt: skip
    keys = [tag("li", one.name, class_=f"k{index}") for index, one in enumerate(shown, 1)]
    return tag(
        "figure",
        tag("h3", title),
        tag("figcaption", explains),
        drawing,
        *([tag("ul", *keys, class_="keys")] if len(keys) > 1 else []),
    )


def rolling(trend: Trend, *, over: float) -> list[float]:
    """At each bin the mean of it and of those before it that together weigh `over` at least."""
    values, begin, weight = [], 0, 0.0
    for end, one in enumerate(trend.bins, start=1):
        weight += one.weight
        while begin < end - 1 and weight - trend.bins[begin].weight >= over:
            weight -= trend.bins[begin].weight
            begin += 1
        within = trend.bins[begin:end]  # summed anew: differences of large totals would drift
        values.append(sum(each.total for each in within) / sum(each.weight for each in within))
    return values


def _over(trend: Trend, *, wins: bool) -> float:
    return max(_CALM * trend.weight, _FEWEST if wins else 0.0)


def _sure(trend: Trend) -> int:
    """The bin from which a win rate is more than that of a match or two."""
    weight, enough = 0.0, _over(trend, wins=True) / 2
    for index, one in enumerate(trend.bins):
        weight += one.weight
        if weight >= enough:
            return min(index, len(trend.bins) - 2)
    return 0


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    ticks: tuple[float, ...]
    text: Callable[[float], str]
    log: bool = False

    @classmethod
    def of(cls, values: Sequence[float], unit: Unit, raw: Iterable[Sequence[float]]) -> _Scale:
        if unit in ("win rate", "share"):
            return cls(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), _form(unit))
        everything = sorted([*values, *(one for row in raw for one in row)])
        # One outlier must not flatten the rest.
        low = min(*values, everything[len(everything) // 50])
        high = max(*values, everything[-1 - len(everything) // 50])
        if low > 0:
            low = max(low, high / _LOWEST)
        if low > 0 and high / low > (_LOG if unit == "number" else _LOG_TIME):
            powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            ticks = tuple(10.0**power for power in powers)
            shown = ticks[:: 1 + len(ticks) // 6]
            return cls(ticks[0], ticks[-1], shown, _form(unit), log=True)
        if low >= 0 and low < 0.4 * high:
            low = 0.0
        if high - low < 1e-12 * max(abs(high), 1e-300):
            low, high = low - abs(low or 1.0) / 2, high + abs(high or 1.0) / 2
        step = _nice((high - low) / 4)
        first = math.floor(low / step + 1e-9)
        last = math.ceil(high / step - 1e-9)
        ticks = tuple(step * count for count in range(first, last + 1))
        return cls(ticks[0], ticks[-1], ticks, _form(unit))

    def y(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return _TOP + (1.0 - share) * (_HEIGHT - _TOP - _BOTTOM)


def _nice(step: float) -> float:
    """1, 2 or 5 times a power of ten, at least `step`."""
    power = 10.0 ** math.floor(math.log10(max(step, 1e-300)))
    return next(one * power for one in (1.0, 2.0, 5.0, 10.0) if one * power >= step * (1 - 1e-9))


def _form(unit: Unit) -> Callable[[float], str]:
    match unit:
        case "win rate" | "share":
            return lambda value: f"{value:.0%}"
        case "microseconds":
            return lambda us: f"{us / 1000:.3g} ms" if us >= 1000 else f"{us:.3g} µs"
    return _number


def _number(value: float) -> str:
    size = abs(value)
    for scale, letter in ((1e9, "B"), (1e6, "M"), (1e4, "k")):
        if size >= scale:
            return f"{value / min(scale, 1e3 if letter == 'k' else scale):.3g}{letter}"
    if size >= 1e3:
        return f"{value:,.0f}"
    return f"{value:.3g}" if size >= 1e-3 or not size else f"{value:.0e}"


def _x(time: PlayTime, t: float) -> float:
    share = time.at(t) / time.seconds if time.seconds else 1.0
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _frame(scale: _Scale, time: PlayTime) -> Iterable[Element]:
    for value in scale.ticks:
        y = scale.y(value)
        yield tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid")
        yield tag("text", scale.text(value), x=_LEFT - 8, y=y + 4.5, text__anchor="end")
    for played in time.pauses:
        x = _LEFT + played / max(time.seconds, 1e-9) * (_WIDTH - _LEFT - _RIGHT)
        yield tag("line", x1=x, x2=x, y1=_TOP, y2=_HEIGHT - _BOTTOM, class_="pause")
    step = _round_time(time.seconds / 4)
    for count in range(int(time.seconds / step) + 1 if step else 0):
        x = _LEFT + count * step / time.seconds * (_WIDTH - _LEFT - _RIGHT)
        anchor = "start" if not count else "end" if x > _WIDTH - 40 else "middle"
        words = duration(count * step).removesuffix(" 0s").removesuffix(" 0m").removesuffix(" 0h")
        yield tag("text", words if count else "0", x=x, y=_HEIGHT - 8, text__anchor=anchor)


def _round_time(seconds: float) -> float:
    """A step that people count in, at least `seconds` long."""
    for step in (
        1,
        2,
        5,
        10,
        15,
        30,
        60,
        120,
        300,
        600,
        900,
        1800,
        3600,
        7200,
        10800,
        21600,
        43200,
    ):
        if step >= seconds:
            return float(step) if seconds else 0.0
    return 86400.0 * _nice(seconds / 86400.0)


def _path(places: Sequence[float], values: Sequence[float], scale: _Scale, kind: str) -> Element:
    points = _thinned([(x, scale.y(value)) for x, value in zip(places, values, strict=True)])
    return tag("path", d=f"M{_joined(points)}", class_=kind)


def _band(
    trend: Trend,
    places: Sequence[float],
    curve: Sequence[float],
    scale: _Scale,
    index: int,
    begin: int,
) -> Element:
    """The 95% interval of a win rate."""
    over = _over(trend, wins=True)
    weight, weights = 0.0, []
    for one in trend.bins:
        weight += one.weight
        weights.append(min(weight, max(over, one.weight)))
    bounds = [
        wilson(value * count, round(count) or 1)
        for value, count in zip(curve, weights, strict=True)
    ]
    places, bounds = places[begin:], bounds[begin:]
    top = _thinned([(x, scale.y(high)) for x, (_, high) in zip(places, bounds, strict=True)])
    low = _thinned([(x, scale.y(low)) for x, (low, _) in zip(places, bounds, strict=True)])
    return tag("path", d=f"M{_joined([*top, *reversed(low)])}Z", class_=f"band f{index}")


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most `_POINTS`, evenly spread, with the last one."""
    step = max(1, math.ceil(len(points) / _POINTS))
    return [*points[:-1:step], points[-1]]


def _joined(points: Iterable[tuple[float, float]]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
