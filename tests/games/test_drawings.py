"""Swarm and territory are drawn as they are: every shape in view, every unit in its place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.base import State
from understudy.games.frame import bot_frames
from understudy.games.match_drawing import ShapesDrawing
from understudy.games.shapes import FIRST, RED, SECOND, Box, Disc, Label, Line, Scene, Shape, View
from understudy.games.swarm import Swarm
from understudy.games.swarm import drawing as swarm_drawing
from understudy.games.territory import Territory, tables
from understudy.games.territory.state import at_work, on_guard
from understudy.screens.terminal import TextStyle, text

PLAYED = [("swarm", "rules", 5), ("swarm", "all_in", 2), ("territory", "wary", 5)]


@cache
def states_of(name: str, bot: str, seed: int) -> list[State]:
    game, seeds = catalog.make(name), np.array([seed], np.uint32)
    frames = bot_frames(game, [catalog.bots(name)[bot]], seeds, np.zeros(1, np.bool_))
    return [game.start(NUMPY, seeds), *(frame.moment.after for _, frame in frames)]


def scenes_of(name: str, bot: str, seed: int) -> tuple[ShapesDrawing, list[Scene]]:
    drawing = ShapesDrawing(catalog.make(name), ("agent",))
    return drawing, [drawing.scene(state) for state in states_of(name, bot, seed)]


def edges(shape: Shape) -> tuple[float, float, float, float]:
    if isinstance(shape, Box):
        return shape[:4]
    if isinstance(shape, Line):
        return (
            min(shape.x0, shape.x1), min(shape.y0, shape.y1),
            max(shape.x0, shape.x1), max(shape.y0, shape.y1),
        )  # fmt: skip
    half = shape.radius if isinstance(shape, Disc) else shape.size / 2
    return shape.x - half, shape.y - half, shape.x + half, shape.y + half


def inside(shape: Shape, view: View) -> bool:
    left, bottom, right, top = edges(shape)
    return bool(
        view.left <= left <= right <= view.right and view.bottom <= bottom <= top <= view.top
    )


@pytest.mark.parametrize("played", PLAYED)
def test_every_shape_of_a_match_is_in_view(played: tuple[str, str, int]) -> None:
    drawing, scenes = scenes_of(*played)
    assert drawing.over and scenes[0].fixed > 0
    for scene in scenes:
        outside = [shape for shape in scene.shapes if not inside(shape, scene.view)]
        assert not outside, (scene.frame, outside[:3])
        assert scene.shapes[: scene.fixed] == scenes[0].shapes[: scene.fixed]


@pytest.mark.parametrize("played", PLAYED)
def test_a_match_names_both_sides_its_time_and_its_end(played: tuple[str, str, int]) -> None:
    game: Any = catalog.make(played[0])
    drawing, scenes = scenes_of(*played)
    tags = game.tags(states_of(*played)[0], 0)
    assert [panel.name for panel in scenes[-1].panels] == ["agent", tags["opponent"]]
    assert [panel.paint for panel in scenes[-1].panels] == [FIRST, SECOND]
    seconds = (len(scenes) - 1) * game.seconds_per_frame
    assert scenes[-1].clock == f"{seconds // 60}:{seconds % 60:02d}"
    assert drawing.events[-1].time_s == seconds
    assert scenes[-1].headline == str(drawing.events[-1]) != ""


def discs(shapes: Sequence[Shape], *, radius: float) -> list[Disc]:
    return [shape for shape in shapes if isinstance(shape, Disc) and shape.radius == radius]


def test_swarm_has_a_dot_for_every_unit_worker_and_larva() -> None:
    for state in states_of("swarm", "rules", 5)[::20]:
        shapes = Swarm().draw(state, 0).shapes
        for radius, counts in ((0.15, state.army), (0.1, state.workers), (0.09, state.larva)):
            expected = sum(round(float(count)) for count in counts[:, 0])
            defences = sum(round(float(count)) for count in state.defence[:, 0])
            # A static defence has a white dot of a worker's size.
            assert len(discs(shapes, radius=radius)) == expected + (radius == 0.1) * defences


def test_swarms_army_stands_where_its_front_is() -> None:
    start = states_of("swarm", "rules", 5)[0]
    for front, at in ((0.0, 5.4), (0.5, 12.0), (1.0, 18.6)):
        moved = start._replace(front=np.array([[front], [0.0]], np.float32))
        dots = discs(Swarm().draw(moved, 0).shapes, radius=0.15)[:2]
        assert np.mean([dot.x for dot in dots]) == pytest.approx(at, abs=0.3)


def test_swarm_tells_of_bases_sieges_and_battles() -> None:
    start = states_of("swarm", "rules", 5)[0]

    def later(**fields: tuple[float, float]) -> State:
        arrays = {name: np.array(pair, np.float32)[:, None] for name, pair in fields.items()}
        return start._replace(**arrays)

    for before, after, words in (
        (later(halls=(1.9, 1.0)), later(halls=(2.0, 1.0)), ["the swarm has 2 bases"]),
        (later(halls=(1.0, 2.1)), later(halls=(1.0, 1.9)), ["one of the enemy's bases falls"]),
        (later(front=(0.0, 0.65)), later(front=(0.0, 0.75)), ["the enemy lays siege"]),
        (later(front=(0.3, 0.35)), later(front=(0.4, 0.35)), ["the armies meet"]),
        (later(front=(0.8, 0.1)), later(front=(0.9, 0.1)), []),
    ):  # fmt: skip
        assert swarm_drawing.told(before, after, 0) == words


def test_territory_draws_every_unit_in_its_chunk() -> None:
    for state in states_of("territory", "wary", 5)[10::40]:
        shapes = Territory().draw(state, 0).shapes
        alive = state.health[:, 0] > 0
        combat = alive & (state.kind[:, 0] == tables.COMBAT)
        map_shapes = [one for one in shapes if isinstance(one, Disc) and one.x < tables.GRID]
        assert len(discs(map_shapes, radius=0.14)) == int(at_work(state).sum())
        assert len(discs(map_shapes, radius=0.32)) == int(on_guard(state).sum())
        for paint, which in ((FIRST, alive & ~combat), (RED, combat)):
            found = sorted((int(one.x), int(one.y)) for one in map_shapes if one.paint == paint)
            places = state.parasite[:, which, 0]
            assert found == sorted(
                (int(x), tables.GRID - 1 - int(y)) for x, y in places.T.tolist()
            ), state.frame


def test_a_batch_draws_the_match_that_is_asked_for() -> None:
    for name in ("swarm", "territory"):
        game: Any = catalog.make(name)
        many = game.start(NUMPY, np.arange(4, dtype=np.uint32))
        alone = game.start(NUMPY, np.array([2], np.uint32))
        assert game.draw(many, 2) == game.draw(alone, 0)


def test_a_terminal_shows_what_is_compared() -> None:
    _, scenes = scenes_of("swarm", "rules", 5)
    lines = text(scenes[60], TextStyle(colour=False, blocks=False, columns=100, rows=34))
    words = "\n".join(lines)
    assert all(name in words for name in ("workers", "army", "bases", "upgrades"))
    labels = [shape.text for shape in scenes[60].shapes if isinstance(shape, Label)]
    assert f"{states_of('swarm', 'rules', 5)[60].workers[0, 0]:.0f}" in labels
