"""Shapes: what a game draws a match with, and every screen paints from.

    class TicTacToe:
        def draw(self, state, index):
            cells = [Disc(cell % 3, 2 - cell // 3, 0.4, FIRST)
                     for cell in range(9) if state.board[cell, index] == 1]
            return Drawing(View(-0.5, -0.5, 2.5, 2.5), cells)

A drawing is plain data in the units of the game, y up, in the order of painting. A painter sees the
scene alone, so that the terminal and the pictures cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias


class Paint(NamedTuple):
    """A colour, and a letter for consoles that show none."""

    red: int
    green: int
    blue: int
    letter: str = "#"

    @property
    def rgb(self) -> tuple[int, int, int]:
        """Red, green, blue, 0 to 255 each."""
        return self.red, self.green, self.blue


BACKGROUND = Paint(0x12, 0x15, 0x22, " ")
FIRST, SECOND = Paint(0xFF, 0x8B, 0x3D, "A"), Paint(0x45, 0xB4, 0xFF, "B")
"""Of the first and of the second player."""
WHITE, GREY = Paint(0xF2, 0xF4, 0xFA, "*"), Paint(0x76, 0x84, 0xA6, ".")
RED, GREEN = Paint(0xFF, 0x5A, 0x5A, "x"), Paint(0x6C, 0xD4, 0x6C, "+")
YELLOW, BROWN = Paint(0xFF, 0xE0, 0x66, "="), Paint(0xA8, 0x7A, 0x50, "-")


class Box(NamedTuple):
    """A rectangle; `hollow` is an outline alone."""

    left: float
    bottom: float
    right: float
    top: float
    paint: Paint
    hollow: bool = False
    fine: bool = False
    """Too small for a terminal."""


class Disc(NamedTuple):
    """A filled circle."""

    x: float
    y: float
    radius: float
    paint: Paint
    fine: bool = False


class Line(NamedTuple):
    """A thick stroke."""

    x0: float
    y0: float
    x1: float
    y1: float
    width: float
    paint: Paint
    fine: bool = False


class Label(NamedTuple):
    """Words around the place (x, y); `size` is the height of a letter."""

    x: float
    y: float
    text: str
    size: float
    paint: Paint
    fine: bool = False


Shape: TypeAlias = Box | Disc | Line | Label


class View(NamedTuple):
    """What is in view, in the units of the game."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.top - self.bottom


class Drawing(NamedTuple):
    """One frame of a match: what a game's `draw(state, index)` returns."""

    view: View
    shapes: Sequence[Shape]
    """Back to front."""
    notes: Sequence[str] = ()
    """A line for each player, below its name."""
    background: Paint = BACKGROUND
    clock: str = ""
    """The time in the match; the number of the frame where it is empty."""
    opponent: str = ""
    """In a game of one player, whom it plays against; the second note is about them."""
    fixed: int = 0
    """So many of the first shapes are the same in every drawing of the match."""


class Panel(NamedTuple):
    """What is written of one player."""

    name: str
    paint: Paint
    notes: str = ""
    """Below the name."""
    lives: tuple[int, int] | None = None
    """How many are left, of how many."""
    value: str = ""
    """A number to follow, such as the damage so far."""
    value_paint: Paint = WHITE


class Scene(NamedTuple):
    """One frame as it is watched: a drawing, the players, the time, and what just happened."""

    frame: int
    shapes: tuple[Shape, ...]
    panels: tuple[Panel, ...]
    """Of the left player and the right one; of one player in a game of one."""
    view: View
    clock: str = ""
    headline: str = ""
    """What just happened: `based is knocked out`."""
    background: Paint = BACKGROUND
    fixed: int = 0
    """So many of the first shapes are the same in every scene of the match."""
