"""Shapes on a coarse grid: the pixels of a terminal.

Every shape that is not `fine` covers at least one pixel where it is in view.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from understudy.core.arrays import NDArray
from understudy.games.brawl.drawing.scene import HIGH, LOW, WIDE, Box, Disc, Line, Paint, Shape

PAINTS = tuple(Paint)
_NUMBER = {paint: number for number, paint in enumerate(PAINTS)}


@dataclass(frozen=True)
class Grid:
    """The pixels of the view."""

    columns: int
    rows: int

    @property
    def per_x(self) -> float:
        """Pixels a unit across."""
        return self.columns / (2 * WIDE)

    @property
    def per_y(self) -> float:
        """Pixels a unit down."""
        return self.rows / (HIGH - LOW)

    def drawn(self, shapes: Iterable[Shape]) -> NDArray:
        """uint8 [rows, columns]: the number in `PAINTS` of each pixel, the top row first."""
        pixels = np.full((self.rows, self.columns), _NUMBER[Paint.SKY], np.uint8)
        for shape in shapes:
            if not shape.fine:
                self._draw(pixels, shape)
        return pixels

    def _draw(self, pixels: NDArray, shape: Shape) -> None:
        left, bottom, right, top = _bounds(shape)
        across = _span((left + WIDE) * self.per_x, (right + WIDE) * self.per_x, self.columns)
        down = _span((HIGH - top) * self.per_y, (HIGH - bottom) * self.per_y, self.rows)
        part = pixels[down, across]
        if not part.size:
            return
        number = _NUMBER[shape.paint]
        if isinstance(shape, Box):
            part[:] = number
            return
        x = (np.arange(across.start, across.stop) + 0.5) / self.per_x - WIDE
        y = HIGH - (np.arange(down.start, down.stop) + 0.5) / self.per_y
        distance = _distance(shape, x[None, :], y[:, None])
        radius = shape.radius if isinstance(shape, Disc) else shape.width / 2
        # Thin shapes slip between the middles of pixels; the nearest ones are theirs.
        part[distance <= max(radius, 0.5 / max(self.per_x, self.per_y))] = number
        part[distance == distance.min()] = number


def _bounds(shape: Shape) -> tuple[float, float, float, float]:
    if isinstance(shape, Box):
        return shape[:4]
    if isinstance(shape, Disc):
        r = shape.radius
        return shape.x - r, shape.y - r, shape.x + r, shape.y + r
    half = shape.width / 2
    return (
        min(shape.x0, shape.x1) - half,
        min(shape.y0, shape.y1) - half,
        max(shape.x0, shape.x1) + half,
        max(shape.y0, shape.y1) + half,
    )


def _span(first: float, last: float, size: int) -> slice:
    """The pixels whose middles lie between, at least one; empty outside the view."""
    start, stop = math.ceil(first - 0.5), math.ceil(last - 0.5)
    if stop <= start:
        start = math.floor((first + last) / 2)
        stop = start + 1
    return slice(min(max(start, 0), size), min(max(stop, 0), size))


def _distance(shape: Disc | Line, x: NDArray, y: NDArray) -> NDArray:
    """How far places are from the middle of a disc, or from the middle line of a stroke."""
    if isinstance(shape, Disc):
        middle: NDArray = np.hypot(x - shape.x, y - shape.y)
        return middle
    x0, y0, x1, y1 = shape[:4]
    dx, dy = x1 - x0, y1 - y0
    along = ((x - x0) * dx + (y - y0) * dy) / max(dx * dx + dy * dy, 1e-9)
    along = np.clip(along, 0.0, 1.0)
    aside: NDArray = np.hypot(x - (x0 + along * dx), y - (y0 + along * dy))
    return aside
