"""A small line without axes: the course of a trend at a glance."""

from __future__ import annotations

from understudy.screens.html.elements import Element, tag
from understudy.screens.html.line_chart import rolling
from understudy.telemetry.trends import Trend

_WIDTH, _HEIGHT, _EDGE = 240.0, 48.0, 3.0
_CALM = 0.1
_POINTS = 60


def spark_line(trend: Trend, *, share: bool) -> Element | None:
    """A moving average; `share`: from 0 to 1, else from its least to its most. None: too short."""
    values = rolling(trend, over=max(_CALM * trend.weight, 1.0))
    values = [*values[: -1 : max(1, len(values) // _POINTS)], *values[-1:]]
    if len(values) < 2:
        return None
    low, high = (0.0, 1.0) if share else (min(values), max(values))
    span = (high - low) or 1.0
    points = [
        (
            _EDGE + index / (len(values) - 1) * (_WIDTH - 2 * _EDGE),
            _EDGE + (1.0 - (value - low) / span) * (_HEIGHT - 2 * _EDGE),
        )
        for index, value in enumerate(values)
    ]
    form = "{:.0%}" if share else "{:.3g}"
    name = "Win rate" if share else "Reward of a match"
    return tag(
        "svg",
        tag("path", d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points), class_="thick s1"),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        class_="spark",
        role="img",
        aria__label=f"{name} from {form.format(values[0])} to {form.format(values[-1])}.",
    )
