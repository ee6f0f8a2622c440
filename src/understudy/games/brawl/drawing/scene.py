"""What brawl is drawn with: its colours, its stage and its weapons as shapes (`games.shapes`).

Fighters are *left* (0) and *right* (1), which need not be the order of the players.
"""

from __future__ import annotations

import math

from understudy.games.brawl import tables
from understudy.games.shapes import RED, WHITE, Box, Disc, Line, Paint, Shape, View

WIDE, LOW, HIGH = 10.6, -3.6, 8.3
"""What is in view: |x| up to WIDE, y from LOW to HIGH. A fighter outside is a mark at the edge."""
VIEW = View(-WIDE, LOW, WIDE, HIGH)
FRAMES_PER_S, STOCKS = tables.FRAMES_PER_S, tables.STOCKS


class Palette:
    """Every colour there is, as RGB and as a letter for consoles that show none."""

    SKY = Paint(0x12, 0x15, 0x22, " ")
    STAR = Paint(0x2A, 0x30, 0x46, " ")
    BLOCK = Paint(0x34, 0x3C, 0x52, "#")
    EDGE = Paint(0x76, 0x84, 0xA6, "#")
    PLATFORM = Paint(0xD0, 0xB0, 0x5C, "=")
    LEFT = Paint(0xFF, 0x8B, 0x3D, "A")
    LEFT_DIM = Paint(0x7A, 0x45, 0x2A, ".")
    RIGHT = Paint(0x45, 0xB4, 0xFF, "B")
    RIGHT_DIM = Paint(0x28, 0x58, 0x80, ".")
    GHOST = Paint(0x9A, 0xA4, 0xBC, "o")
    FLASH = Paint(0xFF, 0xFF, 0xFF, "*")
    EYE = Paint(0x14, 0x16, 0x20, "'")
    WINDUP = Paint(0x6E, 0x62, 0x50, ":")
    STRIKE = Paint(0xFF, 0xE0, 0x66, "*")
    GLOW = Paint(0x6A, 0x58, 0x2C, "*")
    DANGER = Paint(0x5C, 0x20, 0x30, "^")
    STUN = Paint(0xF7, 0xD4, 0x4C, "+")
    STEEL = Paint(0xDC, 0xE2, 0xEE, "|")
    WOOD = Paint(0xA8, 0x7A, 0x50, "-")
    WARM = Paint(0xFF, 0xE0, 0x8A, "%")
    HOT = Paint(0xFF, 0xA8, 0x5A, "%")


def heat(damage: int) -> Paint:
    """White when fresh, red when the next blow flies far; in steps, to keep the colours few."""
    steps = ((30, WHITE), (60, Palette.WARM), (100, Palette.HOT))
    return next((paint for limit, paint in steps if damage < limit), RED)


def clock(left_s: float) -> str:
    """The time left, `1:30`: up to the next whole second, so that 0:00 is the end."""
    minutes, seconds = divmod(math.ceil(left_s), 60)
    return f"{minutes}:{seconds:02d}"


STAGE: tuple[Shape, ...] = (
    Box(-WIDE, LOW - 1.0, WIDE, LOW + 0.14, Palette.DANGER),
    *(
        Disc(x, y, 0.045, Palette.STAR, fine=True)
        for x, y in (
            (-9.1, 6.2), (-7.4, 3.9), (-5.2, 6.9), (-3.6, 4.6), (-1.7, 6.1), (0.4, 4.8),
            (2.3, 6.6), (3.9, 3.6), (5.6, 5.5), (7.2, 6.8), (8.6, 4.1), (9.7, 5.9),
        )
    ),
    *(
        Box(
            min(side * float(tables.PIT), side * float(tables.LEDGE)), LOW - 1.0,
            max(side * float(tables.PIT), side * float(tables.LEDGE)), 0.0, Palette.BLOCK,
        )
        for side in (-1, 1)
    ),
    *(
        Box(
            min(side * float(tables.PIT), side * float(tables.LEDGE)), -0.22,
            max(side * float(tables.PIT), side * float(tables.LEDGE)), 0.0, Palette.EDGE,
        )
        for side in (-1, 1)
    ),
)  # fmt: skip
"""What never changes: two blocks with endless walls, a pit between them, and below all the end."""


def platform(x: float, y: float) -> Box:
    """The platform; x and y are the middle of its top."""
    half = float(tables.PLATFORM_HALF)
    return Box(x - half, y - 0.2, x + half, y, Palette.PLATFORM)


def weapon(kind: str, x: float, y: float, along: tuple[float, float]) -> tuple[Shape, ...]:
    """A weapon whose grip is at (x, y), pointing along a unit vector."""
    dx, dy = along
    if kind == "spear":
        tip = (x + 1.25 * dx, y + 1.25 * dy)
        return (
            Line(x - 0.5 * dx, y - 0.5 * dy, *tip, 0.09, Palette.WOOD),
            Line(x + 0.95 * dx, y + 0.95 * dy, *tip, 0.16, Palette.STEEL),
        )
    if kind == "hammer":
        head = (x + 0.8 * dx, y + 0.8 * dy)
        across = (-0.3 * dy, 0.3 * dx)
        ends = (head[0] - across[0], head[1] - across[1], head[0] + across[0], head[1] + across[1])
        return Line(x - 0.2 * dx, y - 0.2 * dy, *head, 0.1, Palette.WOOD), Line(
            *ends, 0.32, Palette.STEEL
        )
    return ()


def lying(kind: str, x: float) -> tuple[Shape, ...]:
    """A weapon on the ground, with a glint above it."""
    shapes = weapon(kind, x - 0.35, 0.12, (1.0, 0.0))
    return (*shapes, Disc(x, 0.62, 0.07, Palette.STUN)) if shapes else ()
