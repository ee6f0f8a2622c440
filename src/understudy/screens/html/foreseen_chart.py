"""What was foreseen against what followed, as SVG: on the dashed line both are the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from understudy.screens.html.axis import Axis
from understudy.screens.html.elements import Element, HtmlNode, tag

_WIDTH, _HEIGHT = 520.0, 320.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 66.0, 14.0, 12.0, 50.0


class ForeseenPoint(NamedTuple):
    """Cases that were foreseen alike: the mean of what was foreseen and of what followed."""

    foreseen: float
    followed: float
    low: float
    high: float
    """95% interval of what followed."""
    cases: int
    group: int
    """From 0: its colour and its place in the key."""


def foreseen_chart(
    points: Sequence[ForeseenPoint], groups: Sequence[str], *, title: str, explains: str
) -> Element | None:
    """A figure with its heading, its explanation and a key; None without points."""
    if not points:
        return None
    values = [value for one in points for value in (one.foreseen, one.low, one.high)]
    axis = Axis.linear(min(values), max(values))
    marks: list[HtmlNode] = [*_frame(axis)]
    for one in points:
        x, tone = _x(axis, one.foreseen), one.group % 6 + 1
        told = f"{groups[one.group]}: foreseen {one.foreseen:.3g}, followed {one.followed:.3g}"
        marks += [
            tag(
                "line", x1=x, x2=x, y1=_y(axis, one.low), y2=_y(axis, one.high),
                class_=f"whisker s{tone}",
            ),
            tag(
                "circle", tag("title", f"{told}, of {one.cases:,}"), cx=x,
                cy=_y(axis, one.followed), r=5.5, class_=f"f{tone}",
            ),
        ]  # fmt: skip
    words = "; ".join(
        f"{groups[one.group]}, foreseen {one.foreseen:.3g}, followed {one.followed:.3g}"
        for one in points
    )
    used = sorted({one.group for one in points})
    keys = [tag("li", groups[group], class_=f"k{group % 6 + 1}") for group in used]
    return tag(
        "figure",
        tag("h3", title),
        tag("figcaption", explains),
        tag(
            "svg", *marks, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", role="img",
            aria__label=f"Chart of points. {title}: {words}.",
        ),
        tag("ul", *keys, class_="keys"),
        class_="foreseen",
    )  # fmt: skip


def _x(axis: Axis, value: float) -> float:
    return round(_LEFT + axis.share(value) * (_WIDTH - _LEFT - _RIGHT), 1)


def _y(axis: Axis, value: float) -> float:
    return round(_TOP + (1.0 - axis.share(value)) * (_HEIGHT - _TOP - _BOTTOM), 1)


def _frame(axis: Axis) -> Iterable[Element]:
    left, right, bottom = _x(axis, axis.low), _x(axis, axis.high), _y(axis, axis.low)
    for value in axis.ticks:
        x, y = _x(axis, value), _y(axis, value)
        yield tag("line", x1=left, x2=right, y1=y, y2=y, class_="grid")
        yield tag("text", axis.text(value), x=left - 8, y=y + 5, text__anchor="end")
        anchor = "end" if value == axis.ticks[-1] else "middle"
        yield tag("text", axis.text(value), x=x, y=bottom + 20, text__anchor=anchor)
    yield tag("line", x1=left, x2=right, y1=bottom, y2=_y(axis, axis.high), class_="pause")
    yield tag("text", "foreseen", x=(left + right) / 2, y=_HEIGHT - 8, text__anchor="middle")
    middle = (_TOP + bottom) / 2
    yield tag(
        "text", "followed", x=14, y=middle, text__anchor="middle",
        transform=f"rotate(-90 14 {middle:.1f})",
    )  # fmt: skip
