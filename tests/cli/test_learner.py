"""`understudy learner`: what it passes on, and what it refuses."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from telemetry.entries import at, batch, continuous, published, started

from understudy.cli.learner_screen import LearnerScreen
from understudy.core.pause import read_pause
from understudy.run import learner
from understudy.run.learner import ContinuousOptions
from understudy.telemetry import events as ev

from .calling import lockstep, understudy
from .test_progress import Clock, terminal_at


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []

    def serve(root: Path, **options: Any) -> None:
        calls.append({"root": root, **options})

    monkeypatch.setattr(learner, "serve", serve)
    return calls


@pytest.mark.parametrize(
    ("flags", "behind"),
    [
        ("", None),
        ("--continuous", ContinuousOptions()),
        ("--continuous --gate cost", ContinuousOptions(gate="cost")),
        (
            "--continuous --gate my:Gate --threshold -0.5",
            ContinuousOptions(gate="my:Gate", threshold=-0.5),
        ),
    ],
)
def test_flags_choose_the_learner(
    served: list[dict[str, Any]], flags: str, behind: ContinuousOptions | None
) -> None:
    assert understudy("learner", "--run", "runs/x", *flags.split()).code == 0
    (call,) = served
    assert callable(call.pop("show"))
    assert call == {"root": Path("runs/x"), "supervised": False, "continuous": behind}


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ("--gate cost", "--gate: expected only together with --continuous"),
        ("--threshold 0.1", "--threshold: expected only together with --continuous"),
        ("--continuous --threshold nan", "--threshold: expected a finite number, got nan"),
    ],
)
def test_a_mistake_is_one_line(served: list[dict[str, Any]], flags: str, named: str) -> None:
    called = understudy("learner", "--run", "runs/x", *flags.split())
    assert called.code == 2 and served == []
    assert named in called.err and called.err.count("\n") == 1


def told(screen: LearnerScreen, clock: Clock, *happened: ev.Event) -> None:
    for event in happened:
        clock.now += 6.0
        screen.show(at(clock.now, event, "learner"))


HAPPENED = (
    started(version=3, pending=1),
    batch(loss=0.25),
    published(4, 3),
    continuous(batches=2, buffer=1234),
    ev.EpisodeQuarantined(name="a.npz", reason="[red]not finite[/]"),
    ev.WaitingForExperience(samples_per_insert=4.0),
    ev.LearnerStopped(reason="stopped", pending=2),
)


def test_a_pipe_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with LearnerScreen(clock) as screen:
        told(screen, clock, *HAPPENED)
        clock.now += 600.0
    out, err = capsys.readouterr()
    assert out == "" and "\x1b" not in err
    lines = err.splitlines()
    assert lines[0] == "learning on from version 3; 1 match waits. Ctrl-C stops."
    assert "training  1 batch  loss 0.2500  entropy 1.30  4.0 samples an insert  version 3" in err
    assert "3 batches" in err and "1,234 items held  gate agreement 90%" in err
    assert "set aside a.npz: [red]not finite[/]" in lines
    assert any("waiting for experience" in line and "version 4" in line for line in lines)
    assert "stopped at version 4; 2 matches wait for the next learner" in lines


def test_behind_a_server_segments_wait(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with LearnerScreen(clock, served=True) as screen:
        told(screen, clock, *HAPPENED)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "learning on from version 3; 1 segment waits. Ctrl-C stops."
    assert "stopped at version 4; 2 segments wait for the next learner" in lines


def test_a_terminal_gets_one_line_that_moves_and_no_line_is_too_wide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, console = Clock(), terminal_at(monkeypatch, width=60)
    with LearnerScreen(clock) as screen:
        told(screen, clock, *HAPPENED)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", console.getvalue())
    lines = [line for part in text.splitlines() for line in part.split("\r")]
    assert max(map(len, lines)) <= 60
    assert any("version 4" in line and "loss 0.2" in line for line in lines)


def test_play_goes_on_and_records_while_learning_is_paused(played: Path, tmp_path: Path) -> None:
    """The real ring, a match at a time: no version comes, and no match is lost."""
    run = tmp_path / "run"
    shutil.copytree(played, run)
    told = understudy("learner", "pause", run, "--json").json
    assert told == {"run": str(run), "paused": True, "changed": True}
    assert understudy("learner", "pause", "--run", run, "--json").json["changed"] is False
    assert lockstep(run, "--eval", 0, matches=2).code == 0
    status = understudy("status", "--run", run, "--json").json
    assert (status["matches"], status["versions"], status["buffer_file_count"]) == (8, 3, 2)
    assert status["paused_since"] == read_pause(run).at
    words = understudy("status", "--run", run).out
    assert f"understudy learner resume {run}" in words and "paused since 2" in words
    assert understudy("learner", "resume", run).code == 0
    assert understudy("status", "--run", run, "--json").json["paused_since"] is None
