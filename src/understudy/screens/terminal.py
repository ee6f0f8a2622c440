"""Scenes in a terminal: half-blocks in colour where it can show them, letters elsewhere.

`PixelGrid` draws shapes on the coarse grid of a terminal, `text` renders one scene, and
`AnimatedTerminal` draws one scene over the other and restores the terminal.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self, TextIO

import numpy as np

from understudy.core.arrays import NDArray
from understudy.games.brawl.drawing.scene import (
    HIGH,
    LOW,
    STOCKS,
    WIDE,
    Box,
    Disc,
    Line,
    Paint,
    Panel,
    Scene,
    Shape,
)
from understudy.screens.console import supports_cursor
from understudy.telemetry.layout import cells, padded
from understudy.telemetry.text import plain

_ASPECT = 2 * WIDE / (HIGH - LOW)
_WORDS = 4
"""Lines of words around the picture: names, what they do, a headline, and one for the cursor."""
PAINTS = tuple(Paint)
_NUMBER = {paint: number for number, paint in enumerate(PAINTS)}
_NEEDED = "\u2580\u25cf\u25cb"


@dataclass(frozen=True)
class PixelGrid:
    """The pixels of the view. A shape in view that is not `fine` covers at least one."""

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


@dataclass(frozen=True)
class TextStyle:
    """What a console can show."""

    colour: bool
    blocks: bool
    deep: bool = False
    """Any colour, not only the 216 and 24 greys that every colour terminal has."""
    animated: bool = False
    """The cursor can move: one frame can be drawn over another."""
    columns: int = 80
    rows: int = 24

    @classmethod
    def of(cls, stream: TextIO) -> TextStyle:
        """Of this console: its size, its colours, and whether its encoding has half-blocks."""
        size = shutil.get_terminal_size()
        animated = supports_cursor(stream)
        colour = animated and not os.environ.get("NO_COLOR")
        return cls(
            colour=colour,
            blocks=colour and _can_encode(stream, _NEEDED),
            deep=colour and os.environ.get("COLORTERM", "") in ("truecolor", "24bit"),
            animated=animated,
            columns=size.columns,
            rows=size.lines,
        )

    @property
    def still(self) -> TextStyle:
        """The same console, without a single escape code."""
        return replace(self, colour=False, blocks=False, deep=False, animated=False)

    @property
    def grid(self) -> PixelGrid:
        """The pixels that fit; a letter is about twice as tall as it is wide."""
        tall = 2 if self.blocks else 1
        rows = max(self.rows - _WORDS, 4)
        columns = max(min(self.columns, int(2 * rows * _ASPECT)), 20)
        return PixelGrid(columns, tall * max(round(columns / _ASPECT / 2), 4))


def text(scene: Scene, style: TextStyle) -> list[str]:
    """The lines of one frame, top to bottom."""
    grid = style.grid
    pixels = grid.drawn(scene.shapes)
    if style.blocks:
        rows = [
            _blocks(above, below, style)
            for above, below in zip(pixels[::2], pixels[1::2], strict=True)
        ]
    else:
        rows = [_letters(row, style) for row in pixels]
    return [*_panels(scene, grid.columns, style), *rows, _headline(scene, grid.columns, style)]


def _blocks(above: NDArray, below: NDArray, style: TextStyle) -> str:
    """One line of half-blocks: two pixels in each letter."""
    parts, before = [], None
    for top, bottom in zip(above, below, strict=True):
        now = (top, bottom)
        if now != before:
            parts.append(_colour(PAINTS[top], style) + _colour(PAINTS[bottom], style, layer=48))
            before = now
        parts.append(" " if top == bottom else "\u2580")
    return "".join(parts) + "\x1b[0m"


def _letters(row: NDArray, style: TextStyle) -> str:
    if not style.colour:
        return "".join(PAINTS[number].letter for number in row).rstrip()
    parts, before = [], None
    for number in row:
        if number != before:
            parts.append(_colour(PAINTS[number], style))
            before = number
        parts.append(PAINTS[number].letter)
    return "".join(parts) + "\x1b[0m"


def _panels(scene: Scene, columns: int, style: TextStyle) -> list[str]:
    """Two lines: who has what, and what they are doing."""
    room = (columns - len(scene.clock) - 2) // 2
    left, right = (
        _side(panel, room, style, mirrored=bool(side)) for side, panel in enumerate(scene.panels)
    )
    one, two = scene.panels
    gap = columns - 2 * room
    first = left + scene.clock.center(gap) + right
    second = padded(one.notes, room) + " " * gap + padded(two.notes, room, right=True)
    return [first, second]


def _side(panel: Panel, room: int, style: TextStyle, *, mirrored: bool) -> str:
    """`based (A) ●●○  34%`, padded to its half of the line; the right one the other way round."""
    full, empty = ("\u25cf", "\u25cb") if style.blocks else ("O", ".")
    stocks = full * panel.stocks + empty * (STOCKS - panel.stocks)
    letter = "" if style.colour else f"({panel.paint.letter}) "
    damage = f"{panel.damage:>3}%"
    name = plain(panel.name, limit=len(panel.name))
    name = _cut(name, max(room - len(letter) - len(stocks) - len(damage) - 2, 3))
    outwards = [f"{letter}{name}", stocks, damage]
    words = " ".join(outwards[::-1] if mirrored else outwards)
    return _coloured(padded(words, room, right=mirrored), panel.paint, style)


def _headline(scene: Scene, columns: int, style: TextStyle) -> str:
    words = _cut(plain(scene.headline), columns)
    return _coloured(words.center(columns).rstrip(), Paint.STRIKE, style)


def _coloured(words: str, paint: Paint, style: TextStyle) -> str:
    return f"{_colour(paint, style)}{words}\x1b[0m" if style.colour and words else words


def _cut(words: str, room: int) -> str:
    while cells(words) > room:
        words = words[1:]  # the end of a path says more than its start
    return words


def _colour(paint: Paint, style: TextStyle, *, layer: int = 38) -> str:
    """The escape code of a colour in front (38) or behind (48)."""
    if style.deep:
        red, green, blue = paint.rgb
        return f"\x1b[{layer};2;{red};{green};{blue}m"
    return f"\x1b[{layer};5;{_CODES[paint]}m"


def _nearest(rgb: tuple[int, int, int]) -> int:
    """Of the 216 colours and 24 greys."""
    levels = (0, 95, 135, 175, 215, 255)
    cube = {
        16 + 36 * r + 6 * g + b: (levels[r], levels[g], levels[b])
        for r in range(6)
        for g in range(6)
        for b in range(6)
    }
    greys = {232 + step: (8 + 10 * step,) * 3 for step in range(24)}
    known = cube | greys
    return min(
        known, key=lambda code: sum((a - b) ** 2 for a, b in zip(known[code], rgb, strict=True))
    )


_CODES = {paint: _nearest(paint.rgb) for paint in Paint}


def _can_encode(stream: TextIO, words: str) -> bool:
    try:
        words.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


class AnimatedTerminal:
    """Hides the cursor and takes a screen of its own; both come back, whatever happens.

    Only for a stream that takes escape codes (`console.escapes`).
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __enter__(self) -> Self:
        self._write("\x1b[?1049h\x1b[?25l\x1b[2J")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._write("\x1b[0m\x1b[?25h\x1b[?1049l")

    def show(self, scene: Scene) -> None:
        """Draw over the frame before, in the size that the terminal has now."""
        lines = "\x1b[K\r\n".join(text(scene, TextStyle.of(self._stream)))
        self._write(f"\x1b[H{lines}\x1b[J")

    def _write(self, words: str) -> None:
        encoding = self._stream.encoding or "ascii"
        self._stream.write(words.encode(encoding, "replace").decode(encoding))
        self._stream.flush()
