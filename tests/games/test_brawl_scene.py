"""What is drawn is what happened: fighters, weapons, blows and events, on every screen alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.brawl import tables
from understudy.games.brawl.drawing.match import MatchDrawing
from understudy.games.brawl.drawing.scene import HIGH, LOW, VIEW, WIDE, Palette, clock
from understudy.games.brawl.state import State
from understudy.games.shapes import Box, Disc, Line, Paint, Scene, Shape
from understudy.match.duel import Duel, witnessed
from understudy.match.players import BotPlayer
from understudy.screens.terminal import PixelGrid

GAME = catalog.make("brawl")
START: State = GAME.start(NUMPY, np.array([3], np.uint32))
GRID = PixelGrid(106, 60, VIEW)


def changed(**fields: tuple[float, float]) -> State:
    """The start of a match with some fields of both players set."""
    values = {
        name: np.array(pair).reshape(2, 1).astype(getattr(START, name).dtype)
        for name, pair in fields.items()
    }
    return START._replace(**values)


def scene(state: State, slots: tuple[int, int] = (0, 1)) -> Scene:
    return MatchDrawing(("one", "two"), slots).scene(state)


def painted(shapes: Sequence[Shape], *paints: Paint) -> NDArray:
    """Which pixels have one of these colours, bool [rows, columns]."""
    pixels, there = GRID.drawn(shapes, Palette.SKY)
    return np.isin(pixels, [there.index(paint) for paint in paints if paint in there])


def middle(one: Scene, paint: Paint) -> tuple[float, float]:
    """Where the pixels of a colour are, on average, in units of the game."""
    rows, columns = np.nonzero(painted(one.shapes, paint))
    assert len(rows), paint
    x, y = (columns.mean() + 0.5) / GRID.per_x, (rows.mean() + 0.5) / GRID.per_y
    return float(x - WIDE), float(HIGH - y)


@pytest.mark.parametrize("x", [-6.0, -0.5, 3.0])
def test_a_fighter_is_drawn_where_it_is(x: float) -> None:
    one = scene(changed(x=(x, x + 4.0), y=(1.0, 4.0)))
    assert middle(one, Palette.LEFT) == pytest.approx((x, 1.5), abs=0.35)
    assert middle(one, Palette.RIGHT) == pytest.approx((x + 4.0, 4.5), abs=0.35)
    swapped = scene(changed(x=(x, x + 4.0), y=(1.0, 4.0)), slots=(1, 0))
    assert middle(swapped, Palette.LEFT) == middle(one, Palette.RIGHT)


def test_the_stage_is_that_of_the_rules() -> None:
    shapes = scene(changed(x=(-5.0, 5.0), y=(3.0, 3.0))).shapes
    solid = painted(shapes, Palette.BLOCK, Palette.EDGE)
    for x, y, inside in (
        (-4.5, -1.0, True),
        (4.5, -1.0, True),
        (0.0, -1.0, False),
        (8.5, -1.0, False),
        (-4.5, 1.0, False),
    ):
        row, column = int((HIGH - y) * GRID.per_y), int((x + WIDE) * GRID.per_x)
        assert solid[row, column] == inside, (x, y)
    # The wall begins where the rules have it, to half a pixel.
    edges = np.flatnonzero(np.diff(solid[int((HIGH + 1.0) * GRID.per_y)].astype(int)))
    places = (edges + 1) / GRID.per_x - WIDE
    pit, ledge = float(tables.PIT), float(tables.LEDGE)
    assert places == pytest.approx([-ledge, -pit, pit, ledge], abs=0.5 / GRID.per_x + 1e-6)


def test_a_blow_is_drawn_where_it_hits() -> None:
    """A fighter who stands in the box and is open is hit in that frame; so the box is true."""
    move = tables.FIRST_MOVE + tables.MOVES.index("heavy_side")
    startup = float(tables.MOVE_TABLE[tables.STARTUP, move])
    for facing in (1.0, -1.0):
        before = changed(x=(3.0, 3.0 + 1.2 * facing), facing=(facing, facing),
                         move=(move, 0), move_clock=(startup, 0.0))  # fmt: skip
        after = GAME.step(NUMPY, before, np.zeros((2, 1, 1), np.int32))
        assert after.dealt[0, 0] > 0
        boxes = [s for s in scene(after).shapes if isinstance(s, Box) and s.paint is Palette.GLOW]
        (box,) = boxes
        ahead, width = tables.MOVE_TABLE[[tables.AHEAD, tables.WIDTH], move]
        assert (box.left + box.right) / 2 == pytest.approx(after.x[0, 0] + facing * ahead, abs=1e-4)
        assert box.right - box.left == pytest.approx(2 * width, abs=1e-4)
        assert box.left - 0.4 < before.x[1, 0] < box.right + 0.4
        assert scene(after).panels[1].notes == "stunned"


def flashing(one: Scene) -> list[float]:
    """Where bodies are that are drawn white."""
    boxes = [s for s in one.shapes if isinstance(s, Box) and s.paint is Palette.FLASH]
    return [(box.left + box.right) / 2 for box in boxes]


def test_who_is_hit_flashes_for_three_frames_and_nobody_else_does() -> None:
    move = tables.FIRST_MOVE + tables.MOVES.index("light_side")
    startup = float(tables.MOVE_TABLE[tables.STARTUP, move])
    for slots in ((0, 1), (1, 0)):
        drawing = MatchDrawing(("one", "two"), slots)
        state = changed(x=(3.0, 4.2), facing=(1.0, 1.0), wait=(0.0, 0.0))
        flashes, victims = [], []
        for frame in range(12):
            flashes.append(flashing(drawing.scene(state)))
            victims.append(float(state.x[1, 0]))
            if frame == 5:  # a blow that lands in frame 6
                state = state._replace(
                    move=np.array([[move], [0]], np.int32),
                    move_clock=np.array([[startup], [0.0]], np.float32),
                )
            state = GAME.step(NUMPY, state, np.zeros((2, 1, 1), np.int32))
            assert (state.dealt[0, 0] > 0) == (frame == 5)
        assert [len(places) for places in flashes] == [0] * 6 + [1] * 3 + [0] * 3
        for frame in (6, 7, 8):
            assert flashes[frame] == [pytest.approx(victims[frame], abs=1e-4)]


def test_who_is_out_of_view_is_shown_at_its_edge() -> None:
    one = scene(changed(x=(12.5, -1.0), y=(2.0, -6.0)))
    x, y = middle(one, Palette.LEFT)
    assert x > WIDE - 1.5 and y == pytest.approx(2.5, abs=0.5)
    x, y = middle(one, Palette.RIGHT)
    assert y < LOW + 1.5 and x == pytest.approx(-1.0, abs=0.5)


def test_panels_say_what_the_state_says() -> None:
    state = changed(damage=(12.6, 99.0), stocks=(3, 1), weapon=(0, 2), stun=(0, 4), out=(30, 0))
    state = state._replace(frame=np.array([900], np.int32))
    one, two = scene(state).panels
    assert (one.name, one.lives, one.value) == ("one", (3, 3), " 13%")
    assert (two.name, two.lives, two.value) == ("two", (1, 3), " 99%")
    assert (one.notes, two.notes) == ("back in 1.0 s", "hammer  stunned")
    assert (one.notes, two.notes) == ("back in 1.0 s", "hammer  stunned")
    assert scene(state).clock == "1:00"
    assert clock(0.1) == "0:01"
    assert not any(s.paint is Palette.LEFT for s in scene(state).shapes)  # out: not on the stage


def test_every_shape_of_a_whole_match_is_finite_and_events_agree_with_the_state() -> None:
    bots = catalog.bots("brawl")
    duel = Duel(GAME, BotPlayer(bots["aggressive"]), ((BotPlayer(bots["random"]), 1),))
    drawing = MatchDrawing(("aggressive", "random"))
    counted = dict.fromkeys(("knocked_out", "equipped", "dropped", "combo"), 0)
    state: Any = None
    for state in witnessed(duel, np.array([5], np.uint32), np.zeros(1, np.bool_)):
        one = drawing.scene(state)
        for shape in one.shapes if one.frame % 7 == 0 else ():
            numbers = [part for part in shape if isinstance(part, float)]
            assert isinstance(shape, Box | Disc | Line) and np.isfinite(numbers).all()
        for name in counted:
            counted[name] += int(getattr(state, name).sum())
    assert drawing.over
    told = {name: sum(e.event == name for e in drawing.events) for name in counted}
    assert told == counted and counted["knocked_out"] >= 1
    end = drawing.events[-1]
    lost = [
        name for name, stocks in zip(drawing.names, state.stocks[:, 0], strict=True) if not stocks
    ]
    assert (end.event, end.role) == ("won", "winner") and [end.who] != lost
    victims = [e.who for e in drawing.events if e.event == "knocked_out"]
    assert victims.count("random") == 3 - int(state.stocks[1, 0])
    assert [e.frame for e in drawing.events] == sorted(e.frame for e in drawing.events)


def test_two_of_one_name_can_be_told_apart() -> None:
    assert MatchDrawing(("based", "based")).names == ("based (left)", "based (right)")
