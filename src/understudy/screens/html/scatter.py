"""Scatter charts as SVG: points in groups, each group with a colour and a shape of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from understudy.screens.html.axis import Axis
from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.figure import chart_figure

_WIDTH, _HEIGHT = 520.0, 380.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 12.0, 10.0, 46.0
_MARGIN = 0.05
"""Beyond the outermost points, as a share of their range."""
_MOST = 1_500
"""Points; of more, some are left out evenly."""
GROUPS = 12
"""As many as can be told apart: six colours, two shapes."""
_COLOURS = 6


class ScatterGroup(NamedTuple):
    """Points of one kind."""

    name: str
    points: Sequence[tuple[float, float]]


def scatter(
    groups: Sequence[ScatterGroup],
    *,
    title: str,
    explains: str,
    across: str,
    up: str,
    path: bool = False,
) -> Element | None:
    """A figure with its heading, its explanation and a key; None without points.

    Args:
        across: What the horizontal axis is.
        up: What the vertical axis is.
        path: Points of a group are joined in their order, and grow stronger towards the last.
    """
    shown = [one for one in groups if one.points][:GROUPS]
    if not shown:
        return None
    every = [point for one in shown for point in one.points]
    horizontal = Axis.tight(min(x for x, _ in every), max(x for x, _ in every), margin=_MARGIN)
    vertical = Axis.tight(min(y for _, y in every), max(y for _, y in every), margin=_MARGIN)
    each = -(-len(every) // _MOST)

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x = _LEFT + horizontal.share(point[0]) * (_WIDTH - _LEFT - _RIGHT)
        y = _TOP + (1.0 - vertical.share(point[1])) * (_HEIGHT - _TOP - _BOTTOM)
        return round(x, 1), round(y, 1)

    marks: list[HtmlNode] = [*_frame(horizontal, vertical, across, up)]
    for index, one in enumerate(shown):
        kept = [place(point) for point in one.points[::-1][::each]][::-1]
        marks.extend(_group(one.name, kept, index, path=path))
    told = ", ".join(f"{one.name} ({len(one.points):,})" for one in shown)
    left = f"; {len(groups) - len(shown)} more groups are left out" if groups[GROUPS:] else ""
    drawing = tag(
        "svg", *marks, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", role="img",
        aria__label=f"Scatter chart. {title}: points by group: {told}{left}. Across: {across}; "
        f"up: {up}.",
    )  # fmt: skip
    keys = [
        (one.name, f"{_shape(index)} k{index % _COLOURS + 1}") for index, one in enumerate(shown)
    ]
    return chart_figure(drawing, title=title, explains=explains, keys=keys, kind="scatter")


def _shape(index: int) -> str:
    return "disc" if index < _COLOURS else "diamond"


def _frame(horizontal: Axis, vertical: Axis, across: str, up: str) -> Iterable[Element]:
    bottom = _HEIGHT - _BOTTOM
    for value in vertical.ticks:
        y = round(_TOP + (1.0 - vertical.share(value)) * (bottom - _TOP), 1)
        yield tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid")
        yield tag("text", vertical.text(value), x=_LEFT - 6, y=y + 4.5, text__anchor="end")
    for value in horizontal.ticks:
        x = round(_LEFT + horizontal.share(value) * (_WIDTH - _LEFT - _RIGHT), 1)
        yield tag("line", x1=x, x2=x, y1=_TOP, y2=bottom, class_="grid")
        yield tag("text", horizontal.text(value), x=x, y=bottom + 17, text__anchor="middle")
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield tag("text", f"across: {across}; up: {up}", x=middle, y=_HEIGHT - 8, text__anchor="middle")


def _group(
    name: str, points: Sequence[tuple[float, float]], index: int, *, path: bool
) -> Iterable[Element]:
    colour, last = index % _COLOURS + 1, len(points) - 1
    if path and last:
        joined = "L".join(f"{x:g} {y:g}" for x, y in points)
        yield tag("path", d=f"M{joined}", class_=f"thin s{colour}")
    for number, (x, y) in enumerate(points):
        end = path and number == last
        strength = 0.9 if end else 0.25 + 0.5 * number / max(last, 1) if path else 0.65
        size = 6.5 if end else 3.2
        kind, opacity = f"f{colour}", round(strength, 2)
        if _shape(index) == "disc":
            yield tag(
                "circle", tag("title", name), cx=x, cy=y, r=size, class_=kind, fill__opacity=opacity
            )
        else:
            corners = f"M{x} {y - size}L{x + size} {y}L{x} {y + size}L{x - size} {y}Z"
            yield tag("path", tag("title", name), d=corners, class_=kind, fill__opacity=opacity)
