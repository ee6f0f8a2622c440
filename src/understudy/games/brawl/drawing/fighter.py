"""A fighter of brawl: its state as plain numbers, and the shapes that it is drawn with.

Body, facing, weapon, blow and stun; outside the view, a mark at the edge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from understudy.games.brawl import tables
from understudy.games.brawl.drawing.scene import HIGH, LOW, WIDE, Palette, weapon
from understudy.games.brawl.state import State
from understudy.games.shapes import Box, Disc, Line, Paint, Shape

_LIVERY = ((Palette.LEFT, Palette.LEFT_DIM), (Palette.RIGHT, Palette.RIGHT_DIM))
_UNIT_NOTHING = 1e-6


@dataclass(frozen=True)
class Fighter:
    """One player of match 0 of a batch, as plain numbers."""

    x: float
    y: float
    facing: float
    speed: float
    grounded: bool
    dodging: bool
    safe: bool
    dashing: bool
    stun: float
    out: float
    move: int
    clock: float
    """Frames of the move that have been played, or -1."""
    weapon: str
    damage: float
    stocks: int

    @property
    def phase(self) -> str:
        """`startup`, `active` or `recovery` of the move under way; empty without one."""
        if self.move in (tables.NO_MOVE, tables.TAUNT_MOVE) or self.clock < 0:
            return ""
        startup, active = tables.MOVE_TABLE[: tables.RECOVERING, self.move]
        if self.clock < startup:
            return "startup"
        return "active" if self.clock < startup + active else "recovery"

    @property
    def doing(self) -> str:
        """In words: what the panel below the name says."""
        if self.stocks == 0:
            return "beaten"
        if self.out > 0:
            return f"back in {self.out / tables.FRAMES_PER_S:.1f} s"
        if self.stun > 0:
            return "stunned"
        if self.dodging:
            return "dodges"
        if self.move == tables.TAUNT_MOVE:
            return "taunts"
        if self.move != tables.NO_MOVE:
            name = tables.MOVES[(self.move - tables.FIRST_MOVE) % len(tables.MOVES)]
            return name.replace("_", " ")
        return "dashes" if self.dashing else ""

    @property
    def reach(self) -> tuple[float, float, float, float]:
        """What the move hits: middle x and y, half width and half height."""
        numbers = tables.MOVE_TABLE[:, self.move]
        middle = self.y + float(tables.HALF_HEIGHT) + float(numbers[tables.ABOVE])
        ahead = self.x + self.facing * float(numbers[tables.AHEAD])
        return ahead, middle, float(numbers[tables.WIDTH]), float(numbers[tables.HEIGHT])


def fighter(state: State, slot: int) -> Fighter:
    """The player in a slot of the first match."""

    def number(field: str) -> float:
        return float(getattr(state, field)[slot, 0])

    return Fighter(
        x=number("x"),
        y=number("y"),
        facing=number("facing"),
        speed=number("vx"),
        grounded=number("grounded") > 0,
        dodging=number("dodge") > 0,
        safe=number("safe") > 0,
        dashing=number("dash") > 0,
        stun=number("stun"),
        out=number("out"),
        move=int(number("move")),
        # The clock has run on since the blow of this frame was struck.
        clock=number("move_clock") - 1,
        weapon=tables.WEAPONS[int(number("weapon"))],
        damage=number("damage"),
        stocks=int(number("stocks")),
    )


def drawn(
    one: Fighter, side: int, *, flash: bool, trail: Sequence[tuple[float, float]]
) -> list[Shape]:
    """Back to front; side 0 is left. `trail` is where the fighter was, oldest first."""
    paint, dim = _LIVERY[side]
    shapes: list[Shape] = [
        Disc(x, y + 0.5, 0.05 + 0.14 * (age + 1) / len(trail), dim, fine=True)
        for age, (x, y) in enumerate(trail)
    ]
    if one.out > 0 or one.stocks == 0:
        return shapes
    if not (abs(one.x) < WIDE and LOW < one.y + 0.5 < HIGH):
        return [*shapes, *_mark(one, paint)]
    colour = Palette.FLASH if flash else Palette.GHOST if one.dodging else paint
    return [
        *shapes,
        *_blow(one),
        *_legs(one, dim),
        Box(one.x - 0.34, one.y + 0.22, one.x + 0.34, one.y + 0.7, colour),
        Disc(one.x + 0.04 * one.facing, one.y + 0.8, 0.27, colour),
        Disc(one.x + 0.17 * one.facing, one.y + 0.84, 0.065, Palette.EYE, fine=True),
        *_arms(one, colour),
        *_stars(one),
        *_shield(one),
    ]


def _mark(one: Fighter, paint: Paint) -> list[Shape]:
    """Outside the view: a bubble at the edge with a tail towards the fighter."""
    x = min(max(one.x, -WIDE + 0.6), WIDE - 0.6)
    y = min(max(one.y + 0.5, LOW + 0.6), HIGH - 2.0)
    away = math.hypot(one.x - x, one.y + 0.5 - y) or 1.0
    dx, dy = (one.x - x) / away, (one.y + 0.5 - y) / away
    return [
        Line(x, y, x + 0.55 * dx, y + 0.55 * dy, 0.2, paint),
        Disc(x, y, 0.4, paint),
        Disc(x, y, 0.26, Palette.SKY, fine=True),
        Disc(x, y, 0.14, paint, fine=True),
    ]


def _blow(one: Fighter) -> list[Shape]:
    if one.phase not in ("startup", "active"):
        return []
    x, y, half_width, half_height = one.reach
    edges = (x - half_width, y - half_height, x + half_width, y + half_height)
    if one.phase == "startup":
        return [Box(*edges, Palette.WINDUP, hollow=True, fine=True)]
    return [Box(*edges, Palette.GLOW), Box(*edges, Palette.STRIKE, hollow=True, fine=True)]


def _legs(one: Fighter, dim: Paint) -> list[Shape]:
    """They swing with the ground that was covered."""
    swing = 0.2 * math.sin(2.6 * one.x) if one.grounded and abs(one.speed) > 1.0 else 0.1
    lift = 0.0 if one.grounded else 0.1
    return [
        Line(one.x - 0.14, one.y + 0.3, one.x - 0.14 - swing, one.y + lift + 0.1, 0.17, dim),
        Line(one.x + 0.14, one.y + 0.3, one.x + 0.14 + swing, one.y + lift + 0.1, 0.17, dim),
    ]


def _arms(one: Fighter, colour: Paint) -> list[Shape]:
    """A fist or a weapon in front; where the blow lands while there is one."""
    x, y, along = one.x + 0.4 * one.facing, one.y + 0.45, (one.facing, 0.25)
    if one.phase in ("startup", "active"):
        at_x, at_y, _, _ = one.reach
        dx, dy = at_x - one.x, at_y - (one.y + 0.5)
        size = math.hypot(dx, dy)
        if size > _UNIT_NOTHING:
            along = (dx / size, dy / size)
        if one.phase == "startup":
            along = (-0.5 * along[0], 0.87)
        elif one.weapon == tables.WEAPONS[0]:
            x, y = one.x + 0.9 * dx, one.y + 0.5 + 0.9 * dy
    held = weapon(one.weapon, x, y, along)
    return [*held, Disc(x, y, 0.13, colour)]


def _stars(one: Fighter) -> list[Shape]:
    if one.stun <= 0:
        return []
    turn = 0.6 * one.stun
    return [
        Disc(one.x + 0.42 * math.cos(turn + at), one.y + 1.25 + 0.1 * math.sin(turn + at), 0.09,
             Palette.STUN)
        for at in (0.0, 2.1, 4.2)
    ]  # fmt: skip


def _shield(one: Fighter) -> list[Shape]:
    if not one.safe:
        return []
    return [
        Box(one.x - 0.62, one.y - 0.05, one.x + 0.62, one.y + 1.2, Palette.GHOST, hollow=True,
            fine=True)
    ]  # fmt: skip
