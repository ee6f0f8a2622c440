"""`understudy watch`: the same match in words, as JSON, in a terminal and as pictures."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.brawl.drawing.match import Event, MatchDrawing
from understudy.judging.watching import moments
from understudy.screens.terminal import AnimatedTerminal

from .calling import alone, understudy
from .runs_of_brawl import brawl_run

SHORT = ("watch", "brawl", "--left", "aggressive", "--right", "random")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_words_and_json_tell_the_same_match() -> None:
    told = understudy(*SHORT, "--json").json
    assert (told["game"], told["left"], told["right"]) == ("brawl", "aggressive", "random")
    assert told["winner"] == told["events"][-1]["who"]
    assert told["events"][-1]["event"] == "won"
    knocked = [event for event in told["events"] if event["event"] == "knocked_out"]
    assert all(event["role"] == "victim" for event in knocked)
    victims = [event["who"] for event in knocked]
    assert told["stocks"] == [3 - victims.count(name) for name in ("aggressive", "random")]
    assert told["time_s"] == round(told["frames"] / 30, 2)
    words = understudy(*SHORT).out
    assert f"{told['winner']} won after" in words
    assert words.count("is knocked out") == len(knocked)
    assert words.isascii() and "\x1b" not in words  # not a terminal
    assert words.count("\n") < 60
    assert understudy(*SHORT, "--seed", 1, "--json").json != told


def test_numpy_msgspec_and_typer_are_enough(elsewhere: Path) -> None:
    brawl_run(elsewhere / "mine", versions=1)
    asked = ("watch", "brawl", "--left", "mine", "--right", "aggressive", "--json")
    called = alone(*asked, folder=elsewhere)
    assert called.code == 0, called.err
    assert (called.json["left"], called.json["right"]) == ("mine", "aggressive")
    assert called.json == understudy(*asked).json


def test_a_console_that_refuses_escape_codes_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refuses:
        def mode(self) -> int:
            return 3

        def change(self, mode: int) -> bool:
            return mode == 3

    monkeypatch.setenv("TERM", "xterm")
    found = mock.Mock(return_value=Refuses())
    monkeypatch.setattr("understudy.screens.console.console_of", found)
    screen = Terminal()
    assert _in(screen, *SHORT) == 0
    assert found.call_count == 1
    assert "won after" in screen.getvalue() and "\x1b" not in screen.getvalue()


def test_a_terminal_is_drawn_in_and_left_alone_after_ctrl_c(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = brawl_run(elsewhere / "mine", versions=1)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    shown = 0

    def impatient(
        terminal: AnimatedTerminal, scene: object, draw: object = AnimatedTerminal.show
    ) -> None:
        nonlocal shown
        shown += 1
        draw(terminal, scene)  # type: ignore[operator]
        if shown == 5:
            raise KeyboardInterrupt

    screen = Terminal()
    with mock.patch.object(AnimatedTerminal, "show", impatient):
        code = _in(screen, "watch", "brawl", "--left", f"{run}@1", "--right", "based")
    assert code == 130
    assert "\u2580" in screen.getvalue() and "mine@1" in screen.getvalue()
    assert screen.getvalue().endswith("\x1b[?25h\x1b[?1049l")


def _in(screen: Terminal, *args: str) -> int:
    from understudy.cli.app import run

    with (
        mock.patch.object(sys, "argv", ["understudy", *args]),
        mock.patch.object(sys, "stdout", screen),
        pytest.raises(SystemExit) as end,
    ):
        run()
    assert isinstance(end.value.code, int)
    return end.value.code


def test_pictures() -> None:
    pil = pytest.importorskip("PIL.Image")
    words = understudy(*SHORT, "--gif", "m.gif", "--png", "m.png")
    assert words.code == 0 and "Written: m.gif" in words.out and "Written: m.png" in words.out
    with pil.open("m.png") as sheet:
        assert sheet.size[0] > 600
    with pil.open("m.gif") as film:
        assert film.n_frames > 50
    assert Path("m.gif").stat().st_size < 3_000_000


def test_the_moments_are_those_that_mattered_in_order() -> None:
    state = catalog.make("brawl").start(NUMPY, np.array([1], np.uint32))
    scene = MatchDrawing(("a", "b")).scene(state)
    scenes = [scene._replace(frame=frame) for frame in range(1000)]
    events = [
        Event(100, 3.33, "combo", "attacker", "a"),
        Event(300, 10.0, "knocked_out", "victim", "b", "2 left"),
        Event(310, 10.3, "equipped", "actor", "a", "spear"),
        Event(999, 33.3, "knocked_out", "victim", "b", "0 left"),
        Event(999, 33.3, "won", "winner", "a"),
    ]
    found = moments(scenes, events, frames_per_s=30.0, frame_s=1 / 30)
    told = [words.partition(": ")[2] for words, _ in found]
    assert told[-2:] == ["b is knocked out, 2 left", "a wins"]
    assert [one.frame for _, one in found] == sorted(one.frame for _, one in found)
    assert any("combo" in words for words, _ in found)
    assert not any("spear" in words for words, _ in found)  # too close to a knockout
    assert (
        4 <= len(moments(scenes, events[-1:], frames_per_s=30.0, frame_s=1 / 30)) <= 6
    )  # a match in which nothing happened


@pytest.mark.parametrize(
    ("line", "named", "hint"),
    [
        ("--left based --speed 0", "--speed", "more than 0"),
        ("--left based --gif out.png", "--gif", ".gif"),
        ("--left based --png nowhere/out.png", "--png", "no folder"),
        ("--left based --right agressive", "--right", "'aggressive'"),
        ("", "--left", "name a run folder or a bot"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(line: str, named: str, hint: str) -> None:
    called = understudy("watch", "brawl", *line.split())
    assert (called.code, called.out) == (2, "")
    assert called.err.count("\n") == 1 and named in called.err and hint in called.err


def test_without_pillow_the_extra_is_named() -> None:
    with mock.patch.dict(sys.modules, {"PIL": None}):
        called = understudy(*SHORT, "--gif", "out.gif")
    assert called.code == 2 and 'pip install ".[draw]"' in called.err
