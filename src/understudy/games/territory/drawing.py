"""A match of territory in shapes: the map of chunks with all that is on it, and who has what.

The queen is the first player (orange and red parasites), the player whose workers mine is the
second (blue). Units that share a chunk stand side by side in it.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np

from understudy.core.arrays import NDArray
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
from understudy.games.territory import tables
from understudy.games.territory.state import State, at_work, on_guard

_GRID = tables.GRID
VIEW = View(-0.4, -0.4, 22.4, 16.4)
_GROUND, _GRID_LINE = Paint(0x19, 0x1F, 0x2B, " "), Paint(0x25, 0x2C, 0x3B, " ")
_REACH, _TRACK = Paint(0x22, 0x30, 0x46, " "), Paint(0x26, 0x2C, 0x3E, ".")
_ORE, _VEIN = Paint(0x2E, 0x7D, 0x74, "%"), Paint(0x1F, 0x40, 0x45, "-")
_IDLE, _MINES = Paint(0x5F, 0x78, 0x96, "i"), Paint(0x9E, 0xD8, 0xFF, "o")
_BASE, _GUARD = Paint(0x2B, 0x5F, 0x8C, "H"), Paint(0xEE, 0xF4, 0xFF, "P")
_HALO = Paint(0x7A, 0x45, 0x2A, ":")
_SIDE_X = 17.2
"""Where the column beside the map begins."""
_PLACES = (
    (0.0, 0.0), (-0.27, 0.27), (0.27, -0.27), (0.27, 0.27), (-0.27, -0.27),
    (0.0, 0.3), (0.0, -0.3), (-0.3, 0.0), (0.3, 0.0),
)  # fmt: skip
"""Where units stand in their chunk, in the order in which they are drawn."""


def drawn(state: State, *, lost_above: float, won_below: float) -> Drawing:
    """One match, a batch of one; the two shares of all ore decide it in the end."""
    fixed = _fixed()
    taken: Counter[tuple[int, int]] = Counter()
    shapes: list[Shape] = [*fixed, *_protectors_reach(state), *_veins(state), *_player_base(state)]
    shapes += _workers(state, taken)
    shapes += _parasites(state, taken)
    shapes += _protectors(state)
    shapes += _beside(state, lost_above=lost_above, won_below=won_below)
    style = tables.STYLES[int(state.style[0])]
    return Drawing(
        VIEW,
        shapes,
        notes=(_spawned(state), _population(state)),
        clock=_clock(int(state.frame[0]) * tables.SECONDS_PER_TICK),
        opponent=style.name,
        fixed=len(fixed),
    )


def told(before: State, after: State, index: int) -> list[str]:
    """What happened between two states of match `index`, in words."""
    words = []
    killed = int((after.absence[:, index] > before.absence[:, index]).sum())
    if killed:
        words.append("a protector is killed" if killed == 1 else f"{killed} protectors are killed")
    energy = [float(state.player_energy[1, index]) for state in (before, after)]
    if energy[0] > 0.0 >= energy[1]:
        words.append("the player has no energy left")
    return words


@cache
def _fixed() -> tuple[Shape, ...]:
    """Ground and chunks."""
    far = float(_GRID)
    lines = [Line(at, 0.0, at, far, 0.03, _GRID_LINE, fine=True) for at in range(_GRID + 1)]
    lines += [Line(0.0, at, far, at, 0.03, _GRID_LINE, fine=True) for at in range(_GRID + 1)]
    return Box(0.0, 0.0, far, far, _GROUND), *lines


def _at(place: NDArray) -> tuple[float, float]:
    """The middle of a chunk int [2]; row 0 is the top one."""
    return float(place[0]) + 0.5, _GRID - 0.5 - float(place[1])


def _in_chunk(place: NDArray, taken: Counter[tuple[int, int]]) -> tuple[float, float]:
    """A place of its own for the next unit in a chunk."""
    chunk = int(place[0]), int(place[1])
    dx, dy = _PLACES[taken[chunk] % len(_PLACES)]
    taken[chunk] += 1
    x, y = _at(place)
    return x + dx, y + dy


def _veins(state: State) -> list[Shape]:
    """A vein is as full as it is high."""
    shapes: list[Shape] = []
    for number in range(tables.VEINS):
        x, y = _at(state.vein[:, number, 0])
        share = min(max(float(state.ore[number, 0]) / tables.ORE_MOST, 0.0), 1.0)
        shapes += [
            Box(x - 0.46, y - 0.46, x + 0.46, y + 0.46, _VEIN),
            Box(x - 0.46, y - 0.46, x + 0.46, y - 0.46 + 0.92 * share, _ORE, fine=share < 0.3),
        ]
    return shapes


def _protectors_reach(state: State) -> list[Shape]:
    """The chunks in which a protector strikes, within the map."""
    reach, far = tables.KILL_RANGE + 0.5, float(_GRID)
    shapes: list[Shape] = []
    for number in np.flatnonzero(on_guard(state)[:, 0]):
        x, y = _at(state.protector[:, number, 0])
        edges = max(x - reach, 0.0), max(y - reach, 0.0), min(x + reach, far), min(y + reach, far)
        shapes.append(Box(*edges, _REACH, fine=True))
    return shapes


def _player_base(state: State) -> list[Shape]:
    x, y = _at(state.base[:, 0])
    return [
        Box(x - 0.48, y - 0.48, x + 0.48, y + 0.48, _BASE),
        Box(x - 0.48, y - 0.48, x + 0.48, y + 0.48, SECOND, hollow=True, fine=True),
    ]


def _workers(state: State, taken: Counter[tuple[int, int]]) -> list[Shape]:
    """Bright ones mine."""
    shapes: list[Shape] = []
    for number in np.flatnonzero(at_work(state)[:, 0]):
        x, y = _in_chunk(state.worker[:, number, 0], taken)
        shapes.append(Disc(x, y, 0.14, _MINES if state.mining[number, 0] else _IDLE))
    return shapes


def _protectors(state: State) -> list[Shape]:
    taken: Counter[tuple[int, int]] = Counter()
    shapes: list[Shape] = []
    for number in np.flatnonzero(on_guard(state)[:, 0]):
        x, y = _in_chunk(state.protector[:, number, 0], taken)
        shapes += [Disc(x, y, 0.32, SECOND), Disc(x, y, 0.19, _GUARD, fine=True)]
    return shapes


def _parasites(state: State, taken: Counter[tuple[int, int]]) -> list[Shape]:
    """Energy parasites are orange, combat ones red with a dot for each blow that they stand."""
    shapes: list[Shape] = []
    age = (int(state.frame[0]) - 1 - np.arange(tables.LIFETIME)) % tables.LIFETIME
    for number in np.flatnonzero(state.health[:, 0] > 0.0):
        x, y = _in_chunk(state.parasite[:, number, 0], taken)
        combat = int(state.kind[number, 0]) == tables.COMBAT
        size = (0.34 if combat else 0.27) * (1.0 - 0.4 * age[number] / tables.LIFETIME)
        if age[number] == 0:
            shapes.append(Box(x - 0.5, y - 0.5, x + 0.5, y + 0.5, YELLOW, hollow=True, fine=True))
        shapes += [
            Disc(x, y, size + 0.07, _HALO, fine=True),
            Disc(x, y, size, RED if combat else FIRST),
        ]
        if combat:
            shapes += [
                Disc(x - 0.16 + 0.16 * blow, y, 0.055, WHITE, fine=True)
                for blow in range(round(float(state.health[number, 0])))
            ]
    return shapes


def _beside(state: State, *, lost_above: float, won_below: float) -> list[Shape]:
    """Energies, and how much was mined of what the workers could have mined by now."""
    ticks = max(int(state.frame[0]), 1)
    mined = float(state.minerals[1, 0]) / max(float(state.workers[0]) * ticks, 1.0)
    paint = GREEN if mined < won_below else RED if mined > lost_above else YELLOW
    working = float(state.mining[:, 0].sum()) / max(float(state.workers[0]), 1.0)
    queen, player = float(state.queen_energy[0]), float(state.player_energy[1, 0])
    prices = tuple(cost / tables.QUEEN_ENERGY_MAX for cost in tables.COSTS)
    shapes: list[Shape] = []
    for row, (name, share, words, colour, marks) in enumerate(
        (
            ("queen's energy", queen / tables.QUEEN_ENERGY_MAX, f"{queen:.0f}", FIRST, prices),
            ("player's energy", player / tables.PLAYER_ENERGY_MAX, f"{player:.0f}", SECOND, ()),
            ("workers mining", working, f"{working:.0%}", _MINES, ()),
            ("mined so far", mined, f"{mined:.0%}", paint, (won_below, lost_above)),
        )
    ):
        y = 14.6 - 3.0 * row
        middle = (_SIDE_X + 22.0) / 2.0
        shapes += [
            Label(middle, y + 0.75, name, 0.58, GREY),
            *_bar(y, share, colour, marks),
            Label(middle, y - 0.85, words, 0.7, WHITE),
        ]
    shapes += _legend()
    return shapes


def _bar(y: float, share: float, paint: Paint, marks: tuple[float, ...]) -> list[Shape]:
    wide = 22.0 - _SIDE_X
    share = min(max(share, 0.0), 1.0)
    return [
        Box(_SIDE_X, y - 0.3, 22.0, y + 0.3, _TRACK),
        *([Box(_SIDE_X, y - 0.3, _SIDE_X + wide * share, y + 0.3, paint)] if share else []),
        *(
            Line(
                _SIDE_X + wide * at, y - 0.42, _SIDE_X + wide * at, y + 0.42, 0.07, WHITE, fine=True
            )
            for at in marks
        ),
    ]


@cache
def _legend() -> tuple[Shape, ...]:
    rows = (
        ("worker", _MINES),
        ("protector", _GUARD),
        ("energy parasite", FIRST),
        ("combat parasite", RED),
    )
    shapes: list[Shape] = []
    for number, (name, paint) in enumerate(rows):
        x, y = _SIDE_X + 1.0, 2.9 - 0.85 * number
        shapes += [
            Disc(x, y, 0.17, paint, fine=True),
            Label(x + 2.0, y, name, 0.46, GREY, fine=True),
        ]
    return tuple(shapes)


def _spawned(state: State) -> str:
    """The queen's last action, and how many parasites she has."""
    alive = state.health[:, 0] > 0.0
    combat = int((alive & (state.kind[:, 0] == tables.COMBAT)).sum())
    counts = f"{int(alive.sum()) - combat} energy, {combat} combat"
    action = int(state.spawned[0])
    if int(state.frame[0]) == 0 or action == tables.NO_SPAWN:
        return counts
    return f"{counts}  last: {tables.action_names()[action]}"


def _population(state: State) -> str:
    guards, all_ = int(on_guard(state)[:, 0].sum()), int(state.protectors[0])
    return f"{int(state.workers[0])} workers  {guards} of {all_} protectors"


def _clock(seconds: int) -> str:
    return f"{seconds // 60}:{seconds % 60:02d}"
