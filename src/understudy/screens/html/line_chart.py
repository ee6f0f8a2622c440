"""Line charts of trends as SVG: sharp at every width, light and dark, without a library.

The horizontal axis is the time of play, where pauses between sessions are cut out and marked, or
counts something, such as matches.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from understudy.core.statistics import wilson
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.plot import (
    COLOURS,
    AxisMark,
    ChartAxis,
    ChartLevel,
    Scale,
    Unit,
    area,
    curve,
    drawing,
    keys,
)
from understudy.telemetry.trends import Trend, Trends

_CALM = 0.04
"""The share of the values that a thick line is averaged over."""
_CALM_WINS, _FEWEST = 0.1, 30.0
"""A point of a win rate is over this share of the matches, and over so many at least."""
_BANDS = 3
"""Lines that have a band for their interval: more would hide each other."""
_PAUSE_S, _PAUSE_TIMES = 300.0, 8.0


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
        """Seconds of play before a moment; 0 before the first."""
        index = bisect_right(self._starts, (t, math.inf)) - 1
        if index < 0:
            return 0.0
        begin, before = self._starts[index]
        return before + t - begin

    def axis(self, marks: Sequence[AxisMark] = ()) -> ChartAxis:
        """The time of play as the axis of a chart."""
        return ChartAxis(self.seconds, pauses=self.pauses, marks=marks)

    def along(self, trend: Trend) -> list[float]:
        """Where each bin lies on that axis."""
        return [self.at(one.t) for one in trend.bins]


@dataclass(frozen=True)
class ChartLine:
    """One trend in a chart."""

    name: str
    trend: Trend
    along: Sequence[float] | None = None
    """Where each bin lies on the axis; None: at its time of play."""
    colour: int | None = None
    """From 1 to 6, the same in several charts; None: by its place."""


def line_chart(
    lines: Sequence[ChartLine],
    over: PlayTime | ChartAxis,
    *,
    title: str,
    explains: str,
    unit: Unit = "number",
    levels: Sequence[ChartLevel] = (),
    calm: bool = False,
) -> Element | None:
    """A figure with its heading, its explanation and a key; None where there is nothing to draw.

    Args:
        over: The horizontal axis; one that is no `PlayTime` needs the `along` of each line.
        levels: Values that are marked across the chart.
        calm: Moving averages alone, without single values behind them.
    """
    axis = over.axis() if isinstance(over, PlayTime) else over
    shown = [one for one in lines if len(one.trend.bins) > 1][:COLOURS]
    if not shown:
        return None
    wins = unit == "win rate"
    curves = [rolling(one.trend, over=_over(one.trend, wins=wins)) for one in shown]
    raw = [] if wins or calm else [one.trend.means() for one in shown]
    values = [value for row in curves for value in row]
    scale = Scale.of([*values, *(one.value for one in levels)], unit, raw)
    colours = [one.colour or place for place, one in enumerate(shown, start=1)]
    marks: list[HtmlNode] = []
    begins = [_sure(one.trend) if wins else 0 for one in shown]
    for line, row, colour, begin in zip(shown, curves, colours, begins, strict=True):
        places = _places(line, over, axis)
        if wins and len(shown) <= _BANDS:
            marks.append(_band(line.trend, places, row, scale, colour, begin))
        elif not wins and not calm:
            single = curve(places, line.trend.means(), scale)
            marks.append(tag("path", d=single, class_=f"thin s{colour}"))
        mean = curve(places[begin:], row[begin:], scale)
        named = {"data-name": line.name}
        marks.append(tag("path", d=mean, class_=f"thick s{colour}", **named))
    ends = [
        f"{one.name} from {scale.text(row[begin])} to {scale.text(row[-1])}"
        for one, row, begin in zip(shown, curves, begins, strict=True)
    ]
    ends += [f"{one.name} {scale.text(one.value)}" for one in levels]
    label = f"Line chart. {title}: {'; '.join(ends)}."
    return tag(
        "figure",
        tag("h3", title),
        tag("figcaption", explains),
        drawing(marks, scale=scale, axis=axis, label=label, levels=levels),
        *keys([one.name for one in shown], colours, always=any(one.colour for one in shown)),
    )


def _places(line: ChartLine, over: PlayTime | ChartAxis, axis: ChartAxis) -> list[float]:
    along = line.along
    if along is None:
        assert isinstance(over, PlayTime), f"{line.name}: expected `along` on this axis"
        along = over.along(line.trend)
    return [axis.x(at) for at in along]


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
    return max(_CALM_WINS * trend.weight, _FEWEST) if wins else _CALM * trend.weight


def _sure(trend: Trend) -> int:
    """The bin from which a win rate is more than that of a match or two."""
    weight, enough = 0.0, _over(trend, wins=True) / 2
    for index, one in enumerate(trend.bins):
        weight += one.weight
        if weight >= enough:
            return min(index, len(trend.bins) - 2)
    return 0


def _band(
    trend: Trend,
    places: Sequence[float],
    values: Sequence[float],
    scale: Scale,
    colour: int,
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
        for value, count in zip(values, weights, strict=True)
    ]
    places, bounds = places[begin:], bounds[begin:]
    top = [(x, scale.y(high)) for x, (_, high) in zip(places, bounds, strict=True)]
    low = [(x, scale.y(low)) for x, (low, _) in zip(places, bounds, strict=True)]
    return tag("path", d=area(top, low), class_=f"band f{colour}")
