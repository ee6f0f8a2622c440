"""Text that every console can show, in the size it has, and that leaves it as it was."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest

from understudy.core.ops import NUMPY
from understudy.games import catalog
from understudy.games.brawl.drawing.match import MatchDrawing
from understudy.screens.terminal import AnimatedTerminal, TextStyle, text

from .consoles import EncodedConsole

STATE = catalog.make("brawl").start(NUMPY, np.array([3], np.uint32))
LEFT = (0, 1) if STATE.x[0, 0] < STATE.x[1, 0] else (1, 0)
SCENE = MatchDrawing(("runs/x@12", "based"), LEFT).scene(STATE)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def sized(monkeypatch: pytest.MonkeyPatch, columns: int, lines: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", str(lines))
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize("size", [(80, 24), (110, 34), (200, 50), (40, 60), (40, 12)])
@pytest.mark.parametrize("blocks", [True, False])
def test_a_frame_fits_the_terminal(size: tuple[int, int], blocks: bool) -> None:
    columns, rows = size
    lines = text(SCENE, TextStyle(colour=blocks, blocks=blocks, columns=columns, rows=rows))
    assert len(lines) <= rows - 1
    assert max(len(_ESCAPES.sub("", line)) for line in lines) <= columns


def test_letters_show_stage_fighters_and_panels() -> None:
    lines = text(SCENE, TextStyle(colour=False, blocks=False, columns=100, rows=40))
    page = "\n".join(lines)
    assert page.isascii() and "\x1b" not in page
    assert "(A) runs/x@12 OOO   0%" in lines[0] and "0% OOO (B) based" in lines[0]
    assert "1:30" in lines[0]
    picture = lines[2:]
    # Left is left, they stand on the blocks, and there is nothing in the pit between these.
    first, second = (
        {(row, at) for row, line in enumerate(picture) for at, c in enumerate(line) if c == letter}
        for letter in "AB"
    )
    assert first and second and max(at for _, at in first) < min(at for _, at in second)
    top = min(row for row, line in enumerate(picture) if "#" in line)
    assert max(row for row, _ in first | second) == top - 1
    assert re.fullmatch(r" *[#.]+ +[#.]+ *", picture[top])  # feet may stand in the edge


def test_a_console_without_half_blocks_gets_letters_and_never_crashes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sized(monkeypatch, 80, 24)
    assert TextStyle.of(EncodedConsole("utf-8")).blocks
    for encoding in ("cp949", "ascii", "cp1252", "latin-1"):
        console = EncodedConsole(encoding)
        style = TextStyle.of(console)
        assert style.colour and style.animated and not style.blocks
        named = MatchDrawing(("런/하나", "based"), LEFT).scene(STATE)
        with AnimatedTerminal(console) as terminal:
            terminal.show(named)
        assert "###" in console.getvalue()


def test_the_terminal_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    sized(monkeypatch, 80, 24)
    console = EncodedConsole("utf-8")
    with pytest.raises(KeyboardInterrupt), AnimatedTerminal(console) as terminal:
        terminal.show(SCENE)
        raise KeyboardInterrupt
    shown = console.getvalue()
    assert shown.startswith("\x1b[?1049h\x1b[?25l")
    assert shown.endswith("\x1b[0m\x1b[?25h\x1b[?1049l")
    assert "\u2580" in shown


def test_no_color_and_pipes_are_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    sized(monkeypatch, 80, 24)
    monkeypatch.setenv("NO_COLOR", "1")
    style = TextStyle.of(EncodedConsole("utf-8"))
    assert style.animated and not style.colour and not style.blocks
    assert not TextStyle.of(io.StringIO()).animated
    monkeypatch.setenv("TERM", "dumb")
    assert not TextStyle.of(EncodedConsole("utf-8")).animated


def test_of_a_long_name_the_end_is_shown() -> None:
    long = MatchDrawing((f"runs/{'deep/' * 60}mine@12", "based"), LEFT).scene(STATE)
    first = text(long, TextStyle(colour=False, blocks=False, columns=100, rows=40))[0]
    assert "mine@12 OOO   0%" in first and "1:30" in first and len(first) <= 100


def test_a_name_from_outside_cannot_steer_the_terminal() -> None:
    wild = MatchDrawing(("\x1b[2Jevil", "based"), LEFT).scene(STATE)
    lines = text(wild, TextStyle(colour=False, blocks=False))
    assert "\x1b" not in "\n".join(lines) and "evil" in lines[0]
