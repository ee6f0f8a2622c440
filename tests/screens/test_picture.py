"""Pictures that other programs can read, of the size and the colours that were meant."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError, MissingDependency
from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.brawl.drawing.match import MatchDrawing
from understudy.games.brawl.drawing.scene import Palette
from understudy.games.shapes import Scene
from understudy.match.duel import Duel, witnessed
from understudy.match.players import BotPlayer
from understudy.screens import picture

Image = pytest.importorskip("PIL.Image")
GAME = catalog.make("brawl")


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    """Two seconds of a match."""
    bots = catalog.bots("brawl")
    duel = Duel(GAME, BotPlayer(bots["aggressive"]), ((BotPlayer(bots["random"]), 1),))
    drawing = MatchDrawing(("aggressive", "random"))
    states = witnessed(duel, np.array([5], np.uint32), np.zeros(1, np.bool_))
    return [drawing.scene(state) for state, _ in zip(states, range(61), strict=False)]


def test_a_frame_has_both_fighters_in_their_colours(scenes: list[Scene]) -> None:
    page = np.asarray(picture.image(scenes[0], width=400))
    assert page.shape[1:] == (400, 3)
    assert page.shape[0] == pytest.approx(400 * 11.9 / 21.2, abs=1)
    for paint in (Palette.LEFT, Palette.RIGHT, Palette.BLOCK, Palette.PLATFORM):
        assert (page == np.array(paint.rgb)).all(-1).sum() > 20, paint


def test_a_long_name_keeps_its_end_and_leaves_the_clock_alone(scenes: list[Scene]) -> None:
    def drawn(names: tuple[str, str]) -> NDArray:
        one, two = scenes[0].panels
        panels = (one._replace(name=names[0]), two._replace(name=names[1]))
        scene = scenes[0]._replace(panels=panels, headline=f"{names[0]} is knocked out")
        return np.asarray(picture.image(scene, width=400)).astype(int)

    long = "runs/" + "a-folder-of-a-very-long-name/" * 8
    short, full = drawn(("x", "y")), drawn((f"{long}one", f"{long}two"))
    middle = slice(180, 220)  # of 400: the clock
    np.testing.assert_array_equal(full[:22, middle], short[:22, middle])
    assert (full[:22] != short[:22]).any()
    # Cut from the left: what ends alike looks alike.
    np.testing.assert_array_equal(full, drawn((f"{long}{long}one", f"{long}{long}two")))
    assert (full != drawn((f"{long}one", f"{long}six"))).any()
    drawn(("two\nlines", "\x1b[2J"))  # one line, whatever a folder is called


def test_an_animation_shows_every_scene_in_its_time(scenes: list[Scene], tmp_path: Path) -> None:
    shares: list[float] = []
    path = tmp_path / "match.gif"
    count = picture.save_gif(path, scenes, width=300, show=shares.append)
    assert count == path.stat().st_size and shares[-1] == 1.0
    with Image.open(io.BytesIO(path.read_bytes())) as film:
        assert film.n_frames == 31  # every second of 61
        assert film.info["loop"] == 0
        total_ms = 0
        for index in range(film.n_frames):
            film.seek(index)
            total_ms += film.info["duration"]
            shown = np.asarray(film.convert("RGB")).astype(int)
            meant = np.asarray(picture.image(scenes[2 * index], width=300)).astype(int)
            # What did not change was not written again, and still nothing is left behind.
            assert (abs(shown - meant) > 64).mean() < 0.002
    assert total_ms == 2000 + 2000  # the match, and a moment to look at its end


def test_a_still_match_costs_almost_nothing(scenes: list[Scene], tmp_path: Path) -> None:
    one = picture.save_gif(tmp_path / "one.gif", scenes[:1], width=200)
    many = picture.save_gif(tmp_path / "many.gif", scenes[:1] * 101, width=200)
    assert many < one + 51 * 40


def test_a_sheet_holds_its_moments(scenes: list[Scene], tmp_path: Path) -> None:
    path = tmp_path / "sheet.png"
    moments = [(f"moment {index}", scenes[index]) for index in (0, 20, 40)]
    assert picture.save_png(path, moments) == path.stat().st_size
    with Image.open(path) as sheet:
        assert sheet.format == "PNG"
        assert sheet.width > 2 * 600 and sheet.height > 2 * 300


def test_mistakes_are_told_before_anything_is_drawn(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--gif .*match.png: expected a name that ends in .gif"):
        picture.check_path(tmp_path / "match.png", ".gif")
    with pytest.raises(ConfigError, match=r"--png .*: there is no folder"):
        picture.check_path(tmp_path / "nowhere" / "match.png", ".png")


def test_without_pillow_one_is_told_what_to_install() -> None:
    with (
        mock.patch.dict(sys.modules, {"PIL": None}),
        pytest.raises(MissingDependency, match=r'pip install "\.\[draw\]"'),
    ):
        picture.require_pillow()


def test_the_state_is_only_read() -> None:
    state = GAME.start(NUMPY, np.array([3], np.uint32))
    kept = [np.copy(leaf) for leaf in state]
    MatchDrawing(("one", "two")).scene(state)
    assert all(np.array_equal(a, b) for a, b in zip(kept, state, strict=True))
