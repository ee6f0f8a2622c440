"""A scene: one frame of brawl as plain shapes and words, from which every screen draws.

A renderer sees the scene alone, so the terminal and the pictures cannot disagree. Shapes are in the
units of the game (y up), in the order of drawing. Fighters are *left* (0) and *right* (1), which
need not be the order of the players.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import NamedTuple, TypeAlias

from understudy.games.brawl import tables

WIDE, LOW, HIGH = 10.6, -3.6, 8.3
"""What is in view: |x| up to WIDE, y from LOW to HIGH. A fighter outside is a mark at the edge."""
FRAMES_PER_S, STOCKS = tables.FRAMES_PER_S, tables.STOCKS


class Paint(Enum):
    """Every colour there is, as RGB and as a letter for consoles that know neither."""

    SKY = (0x12, 0x15, 0x22, " ")
    STAR = (0x2A, 0x30, 0x46, " ")
    BLOCK = (0x34, 0x3C, 0x52, "#")
    EDGE = (0x76, 0x84, 0xA6, "#")
    PLATFORM = (0xD0, 0xB0, 0x5C, "=")
    LEFT = (0xFF, 0x8B, 0x3D, "A")
    LEFT_DIM = (0x7A, 0x45, 0x2A, ".")
    RIGHT = (0x45, 0xB4, 0xFF, "B")
    RIGHT_DIM = (0x28, 0x58, 0x80, ".")
    GHOST = (0x9A, 0xA4, 0xBC, "o")
    FLASH = (0xFF, 0xFF, 0xFF, "*")
    EYE = (0x14, 0x16, 0x20, "'")
    WINDUP = (0x6E, 0x62, 0x50, ":")
    STRIKE = (0xFF, 0xE0, 0x66, "*")
    GLOW = (0x6A, 0x58, 0x2C, "*")
    DANGER = (0x5C, 0x20, 0x30, "^")
    STUN = (0xF7, 0xD4, 0x4C, "+")
    STEEL = (0xDC, 0xE2, 0xEE, "|")
    WOOD = (0xA8, 0x7A, 0x50, "-")

    @property
    def rgb(self) -> tuple[int, int, int]:
        """Red, green, blue."""
        return self.value[:3]

    @property
    def letter(self) -> str:
        """Where there are no colours."""
        return self.value[3]


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


Shape: TypeAlias = Box | Disc | Line


class Panel(NamedTuple):
    """What is written of one player."""

    name: str
    paint: Paint
    stocks: int
    damage: int
    weapon: str
    doing: str
    """`stunned`, `dodges`, `heavy side`, `back in 1.2 s`; empty when there is nothing to say."""

    @property
    def notes(self) -> str:
        """Weapon and deed, as they are written below the name."""
        return "  ".join(word for word in (self.weapon, self.doing) if word)


class Scene(NamedTuple):
    """One frame."""

    frame: int
    shapes: tuple[Shape, ...]
    panels: tuple[Panel, Panel]
    left_s: float
    """Seconds until the time is up."""
    headline: str
    """What just happened: `based is knocked out`."""

    @property
    def clock(self) -> str:
        """The time left, `1:30`: up to the next whole second, so that 0:00 is the end."""
        minutes, seconds = divmod(math.ceil(self.left_s), 60)
        return f"{minutes}:{seconds:02d}"


STAGE: tuple[Shape, ...] = (
    Box(-WIDE, LOW - 1.0, WIDE, LOW + 0.14, Paint.DANGER),
    *(
        Disc(x, y, 0.045, Paint.STAR, fine=True)
        for x, y in (
            (-9.1, 6.2), (-7.4, 3.9), (-5.2, 6.9), (-3.6, 4.6), (-1.7, 6.1), (0.4, 4.8),
            (2.3, 6.6), (3.9, 3.6), (5.6, 5.5), (7.2, 6.8), (8.6, 4.1), (9.7, 5.9),
        )
    ),
    *(
        Box(
            min(side * float(tables.PIT), side * float(tables.LEDGE)), LOW - 1.0,
            max(side * float(tables.PIT), side * float(tables.LEDGE)), 0.0, Paint.BLOCK,
        )
        for side in (-1, 1)
    ),
    *(
        Box(
            min(side * float(tables.PIT), side * float(tables.LEDGE)), -0.22,
            max(side * float(tables.PIT), side * float(tables.LEDGE)), 0.0, Paint.EDGE,
        )
        for side in (-1, 1)
    ),
)  # fmt: skip
"""What never changes: two blocks with endless walls, a pit between them, and below all the end."""


def platform(x: float, y: float) -> Box:
    """The platform; x and y are the middle of its top."""
    half = float(tables.PLATFORM_HALF)
    return Box(x - half, y - 0.2, x + half, y, Paint.PLATFORM)


def weapon(kind: str, x: float, y: float, along: tuple[float, float]) -> tuple[Shape, ...]:
    """A weapon whose grip is at (x, y), pointing along a unit vector."""
    dx, dy = along
    if kind == "spear":
        tip = (x + 1.25 * dx, y + 1.25 * dy)
        return (
            Line(x - 0.5 * dx, y - 0.5 * dy, *tip, 0.09, Paint.WOOD),
            Line(x + 0.95 * dx, y + 0.95 * dy, *tip, 0.16, Paint.STEEL),
        )
    if kind == "hammer":
        head = (x + 0.8 * dx, y + 0.8 * dy)
        across = (-0.3 * dy, 0.3 * dx)
        ends = (head[0] - across[0], head[1] - across[1], head[0] + across[0], head[1] + across[1])
        return Line(x - 0.2 * dx, y - 0.2 * dy, *head, 0.1, Paint.WOOD), Line(
            *ends, 0.32, Paint.STEEL
        )
    return ()


def lying(kind: str, x: float) -> tuple[Shape, ...]:
    """A weapon on the ground, with a glint above it."""
    shapes = weapon(kind, x - 0.35, 0.12, (1.0, 0.0))
    return (*shapes, Disc(x, 0.62, 0.07, Paint.STUN)) if shapes else ()
