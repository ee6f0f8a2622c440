"""A match of swarm in shapes: two bases, their armies on the lane between, and what each side has.

Our side is on the left. Every unit, worker, larva and static defence is one dot. Below the map,
bars compare both sides, and a white mark on the enemy's says what was scouted of it.
"""

from __future__ import annotations

import math
from functools import cache

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.games.shapes import (
    FIRST,
    GREEN,
    GREY,
    RED,
    SECOND,
    WHITE,
    YELLOW,
    Box,
    Disc,
    Drawing,
    Label,
    Line,
    Paint,
    Shape,
    View,
)
from understudy.games.swarm import tables
from understudy.games.swarm.features import map_control
from understudy.games.swarm.state import State

VIEW = View(0.0, 0.0, 24.0, 17.4)
_GROUND, _TABLE = Paint(0x1B, 0x20, 0x2E, " "), Paint(0x16, 0x1A, 0x27, " ")
_LANE, _PATCH = Paint(0x24, 0x2B, 0x3B, " "), Paint(0x3E, 0x8E, 0x9E, "'")
_TRACK, _FIRE = Paint(0x26, 0x2C, 0x3E, "."), Paint(0xFF, 0xA8, 0x5A, "*")
_SIDES = (FIRST, SECOND)
_DARK = (Paint(0x8A, 0x4A, 0x22, "a"), Paint(0x26, 0x62, 0x8C, "b"))
_LIGHT = (Paint(0xFF, 0xC4, 0x94, "o"), Paint(0x9E, 0xD8, 0xFF, "o"))
_CLAIMED = (Paint(0x33, 0x28, 0x28, " "), Paint(0x1E, 0x2C, 0x40, " "))
"""Ground that an army has under control."""

_FLOOR, _LANE_Y = 5.9, 11.6
"""Where the map begins above the bars, and where armies walk."""
_HOME_X = 5.4
"""Where an army stands at home; the enemy's is mirrored, as all places are."""
_HALLS = ((3.1, 11.6), (2.3, 14.9), (2.3, 8.3), (6.0, 15.7), (6.0, 7.5), (9.2, 15.9))
_PATCHES = ((-1.7, 0.9), (-2.0, 0.3), (-2.0, -0.3), (-1.7, -0.9))
"""Minerals around a townhall."""
_BARS = (
    ("workers", 75.0),
    ("army", 120.0),
    ("bases", 6.0),
    ("defences", 14.0),
    ("upgrades", 10.0),
    ("minerals", 1000.0),
)
"""What the sides are compared by, each with what fills its bar."""
_PITCH, _INNER, _OUTER = 0.9, 9.7, 2.0
"""Of the bars: from one to the next, and from where to where they reach on the left."""
_APART = 0.24
"""How far the units of an army stand from each other."""
_SIEGE = _CONTACT = 0.7
"""Where `combat` lets an army reach a base, and two armies each other."""
_GOLDEN = math.pi * (3.0 - math.sqrt(5.0))


def drawn(state: State, *, orders: str, opponent: str) -> Drawing:
    """One match, a batch of one; `orders` are what the enemy follows, `opponent` who it is."""
    fixed = _fixed()
    shapes: list[Shape] = [*fixed, *_claims(state)]
    for part in (_base, _army):
        shapes += [shape for side in (0, 1) for shape in part(state, side)]
    shapes += [*_battle(state), *_army_words(state, 0), *_army_words(state, 1), *_bars(state)]
    return Drawing(
        VIEW,
        shapes,
        notes=(_ours(state), f"{orders.replace('_', ' ').lower()}  {_scouted(state)}"),
        clock=clock(int(state.frame[0]) * tables.SECONDS_PER_FRAME),
        opponent=opponent,
        fixed=len(fixed),
    )


def told(before: State, after: State, index: int) -> list[str]:
    """What happened between two states of match `index`, in words."""
    words = []
    for side, (we, ours) in enumerate((("the swarm", "the swarm's"), ("the enemy", "the enemy's"))):
        had, has = (float(state.halls[side, index]) for state in (before, after))
        if math.floor(has + 1e-3) > math.floor(had + 1e-3):
            words.append(f"{we} has {math.floor(has + 1e-3)} bases")
        if math.ceil(has - 1e-3) < math.ceil(had - 1e-3):
            words.append(f"one of {ours} bases falls")
        far = [float(state.front[side, index]) > _SIEGE for state in (before, after)]
        if far == [False, True]:
            words.append(f"{we} lays siege")
    apart = [float(state.front[:, index].sum()) <= _CONTACT for state in (before, after)]
    afield = float(after.front[:, index].max()) <= _SIEGE
    if apart == [True, False] and afield:  # a siege says it already
        words.append("the armies meet")
    return words


def clock(seconds: int) -> str:
    """The time so far, `8:12`."""
    return f"{seconds // 60}:{seconds % 60:02d}"


@cache
def _fixed() -> tuple[Shape, ...]:
    """The ground, the lane, minerals, and the tracks of the bars."""
    shapes: list[Shape] = [
        Box(VIEW.left, _FLOOR, VIEW.right, VIEW.top, _GROUND),
        Line(3.0, _LANE_Y, 21.0, _LANE_Y, 3.4, _LANE, fine=True),
        Box(VIEW.left, VIEW.bottom, VIEW.right, _FLOOR, _TABLE),
    ]
    for row, (name, _) in enumerate(_BARS):
        y = _row(row)
        shapes += [Box(x0, y - 0.26, x1, y + 0.26, _TRACK) for x0, x1 in ((2.0, 9.7), (14.3, 22.0))]
        shapes.append(Label(12.0, y, name, 0.5, GREY))
    return tuple(shapes)


def _claims(state: State) -> list[Shape]:
    """The ground that each side has under control, and the patches on it."""
    ours = float(map_control(NUMPY, state.front)[0])
    theirs = float(map_control(NUMPY, state.front[::-1])[0])
    if ours + theirs > 1.0:
        ours, theirs = ours / (ours + theirs), theirs / (ours + theirs)
    width = VIEW.width
    shapes: list[Shape] = [
        Box(0.0, _FLOOR, ours * width, VIEW.top, _CLAIMED[0], fine=True),
        Box(width - theirs * width, _FLOOR, width, VIEW.top, _CLAIMED[1], fine=True),
    ]
    for x, y in _HALLS:
        for dx, dy in _PATCHES:
            for at in (x + dx, width - x - dx):
                shapes.append(
                    Box(at - 0.16, y + dy - 0.13, at + 0.16, y + dy + 0.13, _PATCH, fine=True)
                )
    return shapes


def _base(state: State, side: int) -> list[Shape]:
    """Townhalls with their workers, larvae, and static defences around them."""
    frame = int(state.frame[0])
    halls, workers = float(state.halls[side, 0]), round(float(state.workers[side, 0]))
    shapes: list[Shape] = []
    standing = [min(halls - place, 1.0) for place in range(len(_HALLS)) if halls > place + 1e-3]
    for share, (x, y) in zip(standing, _HALLS, strict=False):
        shapes += _hall(_mirror(x, side), y, share, side)
    for number in range(workers if standing else 0):
        x, y = _HALLS[number % len(standing)]
        dx, dy = _PATCHES[number // len(standing) % len(_PATCHES)]
        # Back and forth between the townhall and a patch, each at its own time.
        turn = (0.23 * frame + 0.618 * number) % 1.0
        way = 0.42 + 0.5 * abs(1.0 - 2.0 * turn)
        shapes.append(Disc(_mirror(x + way * dx, side), y + way * dy, 0.1, _LIGHT[side], fine=True))
    x, y = _HALLS[0]
    for number in range(round(float(state.larva[side, 0])) if standing else 0):
        place = x - 0.75 + 0.3 * (number % 6), y - 1.0 - 0.26 * (number // 6)
        shapes.append(Disc(_mirror(place[0], side), place[1], 0.09, GREEN, fine=True))
    for number in range(round(float(state.defence[side, 0]))):
        angle = (-1) ** number * (0.12 + 0.155 * (number // 2 * 1.0))
        at_x, at_y = x + 4.0 * math.cos(angle), y + 3.6 * math.sin(angle)
        at_x = _mirror(at_x, side)
        shapes += [
            Box(at_x - 0.2, at_y - 0.2, at_x + 0.2, at_y + 0.2, _DARK[side]),
            Disc(at_x, at_y, 0.1, WHITE, fine=True),
        ]
    return shapes


def _hall(x: float, y: float, share: float, side: int) -> list[Shape]:
    """A townhall; one that is being built, or was hit, is smaller than its outline."""
    wide, high = 0.95, 0.68
    shapes: list[Shape] = []
    if share < 0.995:
        shapes.append(Box(x - wide, y - high, x + wide, y + high, _DARK[side], hollow=True))
        wide, high = wide * max(share, 0.15), high * max(share, 0.15)
    return [
        *shapes,
        Box(x - wide, y - high, x + wide, y + high, _DARK[side]),
        Box(x - wide, y - 0.2 * high, x + wide, y + high, _SIDES[side]),
        Disc(x, y + 0.35 * high, 0.3 * high, _LIGHT[side], fine=True),
    ]


def _army(state: State, side: int) -> list[Shape]:
    """A dot for every unit, packed around the middle of the army like the seeds of a sunflower."""
    x = _army_x(float(state.front[side, 0]), side)
    places = _packed(round(float(state.army[side, 0])))
    return [
        Disc(x + dx, _LANE_Y + dy, 0.15, _SIDES[side] if number % 3 else _LIGHT[side])
        for number, (dx, dy) in enumerate(places)
    ]


def _army_words(state: State, side: int) -> list[Shape]:
    units, upgrades = float(state.army[side, 0]), int(state.upgrades[side, 0])
    if units < 0.5:
        return []
    words = f"{units:.0f} +{upgrades}" if upgrades else f"{units:.0f}"
    above = _LANE_Y + _APART * math.sqrt(units) + 0.55
    return [Label(_army_x(float(state.front[side, 0]), side), above, words, 0.62, _LIGHT[side])]


def _army_x(front: float, side: int) -> float:
    return _mirror(_HOME_X + (VIEW.width - 2.0 * _HOME_X) * front, side)


@cache
def _packed(count: int) -> tuple[tuple[float, float], ...]:
    return tuple(
        (
            _APART * math.sqrt(number + 0.5) * math.cos(_GOLDEN * number),
            _APART * math.sqrt(number + 0.5) * math.sin(_GOLDEN * number),
        )
        for number in range(count)
    )


def _battle(state: State) -> list[Shape]:
    """Sparks where armies meet, fire in a base that is besieged."""
    shapes: list[Shape] = []
    frame = int(state.frame[0])
    fronts, armies = _pair(state.front), _pair(state.army)
    meet = min(max((sum(fronts) - _CONTACT) * 5.0, 0.0), 1.0)
    if meet > 0.0 and min(armies) > 0.5:
        x = (_army_x(fronts[0], 0) + _army_x(fronts[1], 1)) / 2.0
        for number in range(3 + round(6 * meet)):
            turn, far = _scatter(frame, number)
            y = _LANE_Y + 2.2 * (far - 0.5)
            dx, dy = 0.5 * math.cos(turn), 0.5 * math.sin(turn)
            at = x + 0.8 * math.cos(3.0 * turn)
            shapes.append(Line(at - dx, y - dy, at + dx, y + dy, 0.12, YELLOW, fine=number > 2))
    for side in (0, 1):
        if fronts[side] <= _SIEGE or armies[side] <= 0.5:
            continue
        x, y = _mirror(_HALLS[0][0], 1 - side), _HALLS[0][1]
        for number in range(4):
            turn, far = _scatter(frame, 31 + number)
            at_x, at_y = x + 1.1 * math.cos(turn), y + 0.3 + 0.8 * far
            shapes.append(Disc(at_x, at_y, 0.14 + 0.2 * far, RED if number % 2 else _FIRE))
    return shapes


def _scatter(frame: int, number: int) -> tuple[float, float]:
    """An angle and a share that look random, and are the same whenever the frame is drawn."""
    turn = (0.754877 * frame + 0.569840 * number + 0.31 * frame * number) % 1.0
    return 2.0 * math.pi * turn, (0.4142 * frame + 0.7320 * number) % 1.0


def _bars(state: State) -> list[Shape]:
    sides = (
        state.workers, state.army, state.halls, state.defence, state.upgrades, state.minerals,
    )  # fmt: skip
    scouted = {1: float(state.seen[2, 0]) / tables.UNIT_HP, 2: float(state.seen[1, 0])}
    shapes: list[Shape] = []
    for row, ((_, full), both) in enumerate(zip(_BARS, sides, strict=True)):
        y = _row(row)
        for side, amount in enumerate(_pair(both)):
            length = min(amount / full, 1.0) * (_INNER - _OUTER)
            x0, x1 = sorted((_mirror(_INNER, side), _mirror(_INNER - length, side)))
            if length > 0.02:
                shapes.append(Box(x0, y - 0.26, x1, y + 0.26, _SIDES[side]))
            words = f"{amount:.1f}" if full <= 10 else f"{amount:.0f}"
            shapes.append(Label(_mirror(1.0, side), y, words, 0.5, WHITE))
        if row in scouted:
            x = _mirror(_INNER - min(scouted[row] / full, 1.0) * (_INNER - _OUTER), 1)
            shapes.append(Line(x, y - 0.34, x, y + 0.34, 0.12, WHITE, fine=True))
    return shapes


def _row(row: int) -> float:
    return _FLOOR - 0.55 - _PITCH * row


def _ours(state: State) -> str:
    used = float(state.workers[0, 0] + state.army[0, 0])
    return (
        f"{float(state.vespene[0, 0]):.0f} gas  "
        f"supply {used:.0f}/{float(state.supply_cap[0, 0]):.0f}  "
        f"larvae {float(state.larva[0, 0]):.0f}"
    )


def _scouted(state: State) -> str:
    heads, bases = float(state.seen[0, 0]), float(state.seen[1, 0])
    return f"scouted: {heads:.0f} units, {bases:.1f} bases"


def _pair(both: NDArray) -> tuple[float, float]:
    return float(both[0, 0]), float(both[1, 0])


def _mirror(x: float, side: int) -> float:
    return VIEW.width - x if side else x
