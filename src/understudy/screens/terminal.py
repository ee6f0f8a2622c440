"""Scenes in a terminal: half-blocks in colour where it can show them, letters elsewhere.

`PixelGrid` draws shapes on the coarse grid of a terminal, `text` renders one scene, and
`AnimatedTerminal` draws one scene over the other and restores the terminal.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import TracebackType
from typing import Self, TextIO, TypeAlias

import numpy as np

from understudy.core.arrays import NDArray
from understudy.games.shapes import YELLOW, Box, Disc, Label, Line, Paint, Panel, Scene, Shape, View
from understudy.screens.console import supports_cursor
from understudy.telemetry.layout import cells, padded
from understudy.telemetry.text import plain

_WORDS = 4
"""Lines of words around the picture: names, what they do, a headline, and one for the cursor."""
_LEAST_WORDS = 60
"""Columns that names and headline get beside a narrow picture."""
_Letter: TypeAlias = tuple[str, Paint]
_Cell: TypeAlias = tuple[str, Paint, Paint]
"""A letter, its colour, and the colour behind it."""
_NEEDED = "\u2580\u25cf\u25cb"


@dataclass(frozen=True)
class PixelGrid:
    """The pixels of a view. A shape in view that is not `fine` covers at least one."""

    columns: int
    rows: int
    view: View

    @property
    def per_x(self) -> float:
        """Pixels a unit across."""
        return self.columns / self.view.width

    @property
    def per_y(self) -> float:
        """Pixels a unit down."""
        return self.rows / self.view.height

    def drawn(self, shapes: Iterable[Shape], background: Paint) -> tuple[NDArray, list[Paint]]:
        """uint16 [rows, columns], the top row first: the place of each pixel's paint in the list.

        Labels are not pixels: see `labels`.
        """
        paints = [background]
        numbers = {background: 0}
        pixels = np.zeros((self.rows, self.columns), np.uint16)
        for shape in shapes:
            if shape.fine or isinstance(shape, Label):
                continue
            if shape.paint not in numbers:
                numbers[shape.paint] = len(paints)
                paints.append(shape.paint)
            self._draw(pixels, shape, numbers[shape.paint])
        return pixels, paints

    def labels(self, shapes: Iterable[Shape], *, tall: int) -> dict[tuple[int, int], _Letter]:
        """The letters of all labels by line and column, where a line is `tall` pixels high."""
        placed = {}
        for shape in shapes:
            if isinstance(shape, Label) and not shape.fine:
                words = plain(shape.text, limit=self.columns)
                line = int((self.view.top - shape.y) * self.per_y) // tall
                first = round((shape.x - self.view.left) * self.per_x - len(words) / 2)
                for offset, letter in enumerate(words):
                    placed[line, first + offset] = letter, shape.paint
        return placed

    def _draw(self, pixels: NDArray, shape: Box | Disc | Line, number: int) -> None:
        view = self.view
        left, bottom, right, top = _bounds(shape)
        across = _span(
            (left - view.left) * self.per_x, (right - view.left) * self.per_x, self.columns
        )
        down = _span((view.top - top) * self.per_y, (view.top - bottom) * self.per_y, self.rows)
        part = pixels[down, across]
        if not part.size:
            return
        if isinstance(shape, Box):
            inner = part[1:-1, 1:-1].copy() if shape.hollow else None
            part[:] = number
            if inner is not None:
                part[1:-1, 1:-1] = inner
            return
        x = (np.arange(across.start, across.stop) + 0.5) / self.per_x + view.left
        y = view.top - (np.arange(down.start, down.stop) + 0.5) / self.per_y
        distance = _distance(shape, x[None, :], y[:, None])
        radius = shape.radius if isinstance(shape, Disc) else shape.width / 2
        # Thin shapes slip between the middles of pixels; the nearest ones are theirs.
        part[distance <= max(radius, 0.5 / max(self.per_x, self.per_y))] = number
        part[distance == distance.min()] = number


def _bounds(shape: Box | Disc | Line) -> tuple[float, float, float, float]:
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
    def tall(self) -> int:
        """Pixels that one line is high."""
        return 2 if self.blocks else 1

    def grid(self, view: View) -> PixelGrid:
        """The pixels that fit; a letter is about twice as tall as it is wide."""
        aspect = view.width / view.height
        rows = max(self.rows - _WORDS, 4)
        columns = max(min(self.columns, int(2 * rows * aspect)), 20)
        lines = min(max(round(columns / aspect / 2), 4), rows)
        return PixelGrid(columns, self.tall * lines, view)


def text(scene: Scene, style: TextStyle) -> list[str]:
    """The lines of one frame, top to bottom."""
    grid = style.grid(scene.view)
    pixels, paints = grid.drawn(scene.shapes, scene.background)
    labels = grid.labels(scene.shapes, tall=style.tall)
    rows = []
    for line, start in enumerate(range(0, grid.rows, style.tall)):
        top, bottom = pixels[start], pixels[start + style.tall - 1]
        cells = [
            _cell(paints[a], paints[b], labels.get((line, column)), style)
            for column, (a, b) in enumerate(zip(top, bottom, strict=True))
        ]
        rows.append(_line(cells, style))
    width = max(grid.columns, min(style.columns, _LEAST_WORDS))
    return [*_panels(scene, width, style), *rows, _headline(scene, width, style)]


def _cell(top: Paint, bottom: Paint, label: _Letter | None, style: TextStyle) -> _Cell:
    """One letter of the picture: a label, two pixels as a half-block, or a pixel's letter."""
    if label is not None:
        return label[0], label[1], bottom
    if style.blocks:
        return (" " if top == bottom else "\u2580"), top, bottom
    return top.letter, top, bottom


def _line(cells: Sequence[_Cell], style: TextStyle) -> str:
    if not style.colour:
        return "".join(letter for letter, _, _ in cells).rstrip()
    parts, before = [], None
    for letter, front, back in cells:
        now = (front, back if style.blocks else None)
        if now != before:
            behind = _colour(back, style, layer=48) if style.blocks else ""
            parts.append(_colour(front, style) + behind)
            before = now
        parts.append(letter)
    return "".join(parts) + "\x1b[0m"


def _panels(scene: Scene, columns: int, style: TextStyle) -> list[str]:
    """Two lines: who has what, and what they are doing."""
    if len(scene.panels) == 1:
        (one,) = scene.panels
        room = columns - len(scene.clock) - 1
        return [_side(one, room, style, mirrored=False) + " " + scene.clock, one.notes]
    room = (columns - len(scene.clock) - 2) // 2
    left, right = (
        _side(panel, room, style, mirrored=bool(side)) for side, panel in enumerate(scene.panels)
    )
    one, two = scene.panels
    gap = columns - 2 * room
    first = left + scene.clock.center(gap) + right
    second = padded(one.notes, room) + " " * gap + padded(two.notes, room, right=True)
    return [first, second.rstrip()]


def _side(panel: Panel, room: int, style: TextStyle, *, mirrored: bool) -> str:
    """`based (A) ●●○  34%`, padded to its half of the line; the right one the other way round."""
    parts = []
    if panel.lives is not None:
        full, empty = ("\u25cf", "\u25cb") if style.blocks else ("O", ".")
        left, all_ = panel.lives
        parts.append(full * left + empty * (all_ - left))
    if panel.value:
        parts.append(panel.value)
    letter = "" if style.colour else f"({panel.paint.letter}) "
    name = plain(panel.name, limit=len(panel.name))
    taken = len(letter) + sum(len(part) + 1 for part in parts)
    outwards = [letter + _cut(name, max(room - taken, 3)), *parts]
    words = " ".join(outwards[::-1] if mirrored else outwards)
    return _coloured(padded(words, room, right=mirrored), panel.paint, style)


def _headline(scene: Scene, columns: int, style: TextStyle) -> str:
    words = _cut(plain(scene.headline), columns)
    return _coloured(words.center(columns).rstrip(), YELLOW, style)


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
    return f"\x1b[{layer};5;{_nearest(paint.rgb)}m"


@lru_cache
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
