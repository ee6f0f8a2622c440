"""`understudy learner`: what it passes on, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from understudy.core.pause import read_pause
from understudy.run import learner
from understudy.run.learner import ContinuousOptions

from .calling import lockstep, understudy


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
    assert served == [{"root": Path("runs/x"), "supervised": False, "continuous": behind}]


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
