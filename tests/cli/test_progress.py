"""The line that says how far a command is: in a terminal of any width, and in a pipe."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from screens.consoles import EncodedConsole

from understudy.cli.play import _line as play_line
from understudy.cli.progress import ProgressDisplay, ProgressLine, bar, working
from understudy.cli.serve import _line as serve_line
from understudy.cli.train_screen import _line as train_line
from understudy.match.tally import Tally
from understudy.supervise.budget import Budget
from understudy.telemetry.layout import Part, cells
from understudy.training.session import TrainProgress

WIDTHS = (60, 80, 120, 160)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def terminal_at(
    monkeypatch: pytest.MonkeyPatch,
    *,
    width: int = 80,
    term: str = "xterm",
    encoding: str = "utf-8",
) -> EncodedConsole:
    screen = EncodedConsole(encoding)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def play_progress(**more: object) -> ProgressLine:
    told = {
        "session": SimpleNamespace(mode="learn"), "played": 12_345, "recent": [True] * 40,
        "win_rate": 0.625, "version": 1234, "share": 0.42, "elapsed_s": 3725.0, "left_s": 4000.0,
    }  # fmt: skip
    return play_line(SimpleNamespace(**{**told, **more}))  # type: ignore[arg-type]


def train_progress() -> ProgressLine:
    names = ("constant", "random", "based", "aggressive", "defensive", "kiting", "self")
    progress = object.__new__(TrainProgress)
    vars(progress).update(
        version=7, began=time.monotonic() - 100.0, steps=12_345_678, updates=5, compiled_s=20.0,
        earlier=0, stage="fight", rating=None, news=[],
        session=SimpleNamespace(budget=Budget(steps=20_000_000)),
        _met={name: [Tally(10 - place, 0, 10)] for place, name in enumerate(names)},
    )  # fmt: skip
    return train_line(progress)


def serve_progress() -> ProgressLine:
    live = SimpleNamespace(
        clients=12, territories=240, ledger=SimpleNamespace(open=99), recent_reward=0.123,
        version=345,
    )  # fmt: skip
    progress = SimpleNamespace(
        live=live, elapsed_s=7200.0, decisions_s=1234.5, p99_ms=12.3, plays="version 12 decides",
        learner="training",
    )  # fmt: skip
    return serve_line(progress)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_terminal_and_the_result_is_there(width: int) -> None:
    for line, result in (
        (play_progress(), "wins of last 40:  62%"),
        (train_progress(), "constant 50%"),
        (serve_progress(), "reward +0.123"),
    ):
        text = line.text(width)
        assert cells(text) <= width and result in text, text
        assert "\n" not in text and "\x1b" not in text


def test_the_least_important_parts_go_first() -> None:
    line = play_progress()
    order = ("1h 2m", "[", "match 12,345", "version 1234", "left")
    gone: list[str] = []
    for width in range(120, 27, -1):
        text = line.text(width)
        gone += [part for part in order if part not in text and part not in gone]
        assert "62%" in text and " 42%" in f" {text}"
    assert gone == list(order)
    assert "#" in line.text(200) and line.text(200).index("]") == 25, "the bar has an end"


def test_a_pipe_gets_whole_plain_lines_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    with ProgressDisplay(quiet=False, clock=clock) as display:
        for clock.now in range(0, 3600):
            display.show(play_progress(elapsed_s=clock.now, share=clock.now / 4000))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("0%") and "wins of last 40:  62%  version 1234" in lines[0]
    assert not any("\x1b" in line or "\r" in line or "[" in line for line in lines)
    assert 50 <= len(lines) <= 120, "a page of lines in an hour"


def test_with_json_it_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay(quiet=True, ticks=True) as display:
        display.show(play_progress(share=1.0))
        display.note("a note")
    with working("reading", quiet=True) as show:
        show(1.0)
    assert capsys.readouterr() == ("", "")


def test_work_of_less_than_a_second_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_at(monkeypatch)
    with working("reading", quiet=False):
        pass
    clock = Clock()
    with ProgressDisplay(quiet=False, keeps=False, clock=clock) as display:
        for clock.now in (0.2, 0.6, 0.9):
            display.show_share(clock.now, "reading")
        assert terminal.getvalue() == ""
        clock.now = 1.1
        display.show_share(0.95, "reading")
        assert "95%" in terminal.getvalue()


def screen_of(written: str, width: int) -> list[str]:
    """The rows that a terminal shows in the end; none of them ever wrapped."""
    rows: dict[int, str] = {}
    row = column = 0
    for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[\s\S]", written):
        if token == "\n":
            row, column = row + 1, 0
        elif token == "\r":
            column = 0
        elif token == "\x1b[2K":
            rows[row] = ""
        elif token == "\x1b[1A":
            row -= 1
        else:
            assert not token.startswith("\x1b"), token
            line = rows.get(row, "").ljust(column)
            rows[row] = line[:column] + token + line[column + 1 :]
            column += 1
            assert column <= width
    return [rows.get(index, "").rstrip() for index in range(max(rows) + 1)]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_line_is_redrawn_in_place_and_goes_away(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal, clock = terminal_at(monkeypatch, width=width), Clock()
    with ProgressDisplay(quiet=False, clock=clock, keeps=False) as display:
        for clock.now in (1.2, 1.4, 1.6):
            display.show(play_progress(played=int(10 * clock.now)))
        display.note("  a note that stays")
        sys.stderr.write("understudy: a complaint\n")
        clock.now = 1.8
        display.show(play_progress())
        drawn = terminal.getvalue()
        assert "wins of last 40:  62%" in drawn and "\x1b[2K" in drawn
    written = terminal.getvalue()
    rows = [row for row in screen_of(written, width) if row]
    assert rows == ["  a note that stays", "understudy: a complaint"], "the line itself is gone"
    assert "\x1b[?25l" not in written, "the cursor is never hidden"
    assert sys.stderr is terminal


def test_versions_are_new_that_came_since_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    for before, shown, said in (
        (0, (1,), ["+1 new"]),
        (4, (4, 6), ["", "+2 new"]),
        (5, (3, 6), ["", "+1 new"]),  # gone on from version 3, after a rollback
        (None, (4, 4, 5), ["", "", "+1 new"]),  # of a server: what it had is not known
    ):
        with ProgressDisplay(quiet=False, before=before) as display:
            for version in shown:
                display.show(ProgressLine([Part("x")], share=1.0, version=version))
        lines = capsys.readouterr().err.splitlines()
        assert [line.partition("x")[2].strip() for line in lines] == said


@pytest.mark.parametrize("encoding", ["cp949", "cp1252", "ascii"])
def test_no_encoding_is_an_error(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    screen, clock = terminal_at(monkeypatch, encoding=encoding), Clock()
    with ProgressDisplay(quiet=False, clock=clock) as display:
        clock.now = 1.0
        display.show(ProgressLine([Part("\u2713 한국 ± é [red]tag[/red]")], share=0.5))
        display.note("\u2713 [bold]note[/bold]")
    written = screen.getvalue()
    assert "[red]tag[/red]" in written and "[bold]note[/bold]" in written, "no markup"
    assert "\\u2713" in written


def test_words_from_outside_move_no_cursor() -> None:
    text = ProgressLine([Part("\x1b[2Jname\u202e")], share=0.5).text(80)
    assert "\x1b" not in text and r"\x1b[2Jname\u202e" in text


def test_a_dumb_terminal_gets_lines_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, clock = terminal_at(monkeypatch, width=60, term="dumb"), Clock()
    with ProgressDisplay(quiet=False, clock=clock) as display:
        for clock.now in range(0, 20):
            display.show(play_progress())
    written = terminal.getvalue()
    assert "\x1b" not in written and "\r" not in written and written.count("\n") == 3
    assert all(len(line) <= 60 and "62%" in line for line in written.splitlines())


def test_the_first_part_of_work_does_not_count_for_what_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    with ProgressDisplay(quiet=False, clock=clock) as display:
        for clock.now, share in ((100.0, 0.1), (110.0, 0.2), (120.0, 0.3)):
            display.show_share(share, "200 matches v 7")
    last = capsys.readouterr().err.splitlines()[-1]
    assert "30%" in last and "left 1m 10s" in last and last.endswith("200 matches v 7")


def test_a_bar() -> None:
    assert [bar(share, width=4) for share in (0.0, 0.5, 1.0)] == ["[....]", "[##..]", "[####]"]


_SLOW = """
import sys, time
from understudy.cli.progress import working
with working("reading", quiet=False) as show:
    for step in range(10_000):
        show(step / 10_000)
        time.sleep(0.01)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_a_kill_leave_the_terminal_clean(end: signal.Signals, tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen([sys.executable, "-c", _SLOW], stderr=theirs, env=env) as process:
        os.close(theirs)
        written = b""
        while b"left" not in written:  # it is drawn
            written += os.read(ours, 4096)
        process.send_signal(end)
        try:
            while more := os.read(ours, 4096):
                written += more
        except OSError:  # the other side is closed
            pass
    os.close(ours)
    assert process.returncode != 0
    assert b"\x1b[?25l" not in written and b"\x1b[?1049h" not in written
    if end is signal.SIGINT:
        before, _, _ = written.partition(b"Traceback")
        assert before.endswith(b"\x1b[2K"), "the line is cleared"
