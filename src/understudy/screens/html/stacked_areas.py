"""Stacked areas: what a sum is made of, over time. Layers below 0 are stacked downwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from understudy.screens.html.elements import Element, HtmlNode, tag
from understudy.screens.html.plot import (
    COLOURS,
    ChartAxis,
    Point,
    Scale,
    Unit,
    area,
    curve,
    drawing,
    keys,
)


class AreaLayer(NamedTuple):
    """One part of the sum."""

    name: str
    values: Sequence[float]
    colour: int | None = None
    """From 1 to 6; None: by its place."""


def stacked_areas(
    layers: Sequence[AreaLayer],
    along: Sequence[float],
    axis: ChartAxis,
    *,
    title: str,
    explains: str,
    unit: Unit = "number",
    total: Sequence[float] | None = None,
    total_name: str = "together",
) -> Element | None:
    """A figure with a key; None where there are fewer than two places.

    Args:
        layers: The largest first. Those beyond the sixth are drawn as one.
        along: Where the values lie on the axis.
        total: A line over the areas, which shows their sum.
    """
    if len(along) < 2 or not layers:
        return None
    shown = _joined(layers)
    colours = [one.colour or place for place, one in enumerate(shown, start=1)]
    stacks = _stacked(shown)
    ends = [value for stack in stacks for edge in stack for value in edge.outer]
    scale = Scale.of([0.0, *ends, *(total or ())], unit)
    places = [axis.x(at) for at in along]
    marks: list[HtmlNode] = []
    for layer, colour, stack in zip(shown, colours, stacks, strict=True):
        for edge in stack:
            if edge.outer != edge.inner:
                outer, inner = (_points(places, line, scale) for line in edge)
                named = {"data-name": layer.name}
                marks.append(tag("path", d=area(outer, inner), class_=f"layer f{colour}", **named))
    if total is not None:
        named_total = {"data-name": total_name}
        marks.append(tag("path", d=curve(places, total, scale), class_="total", **named_total))
    label = "; ".join(f"{one.name} {scale.text(one.values[-1])}" for one in shown)
    return tag(
        "figure",
        tag("h3", title),
        tag("figcaption", explains),
        drawing(
            marks, scale=scale, axis=axis, label=f"Stacked areas. {title}, at the end: {label}."
        ),
        *keys([one.name for one in shown], colours),
    )


class _Edge(NamedTuple):
    """What a layer lies between; `inner` is nearer to 0."""

    outer: list[float]
    inner: list[float]


def _stacked(layers: Sequence[AreaLayer]) -> list[tuple[_Edge, _Edge]]:
    """Of each layer the part above 0 and the part below."""
    count = len(layers[0].values)
    above, below, stacks = [0.0] * count, [0.0] * count, []
    for layer in layers:
        up = [sum_ + max(value, 0.0) for sum_, value in zip(above, layer.values, strict=True)]
        down = [sum_ + min(value, 0.0) for sum_, value in zip(below, layer.values, strict=True)]
        stacks.append((_Edge(up, above), _Edge(down, below)))
        above, below = up, down
    return stacks


def _points(places: Sequence[float], values: Sequence[float], scale: Scale) -> list[Point]:
    return [(x, scale.y(value)) for x, value in zip(places, values, strict=True)]


def _joined(layers: Sequence[AreaLayer]) -> list[AreaLayer]:
    """As many as there are colours; the smallest ones together."""
    if len(layers) <= COLOURS:
        return list(layers)
    rest = layers[COLOURS - 1 :]
    others = [sum(values) for values in zip(*(one.values for one in rest), strict=True)]
    return [*layers[: COLOURS - 1], AreaLayer(f"{len(rest)} others", others)]
