"""`understudy learner`: what it passes on, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from understudy.run import learner
from understudy.run.learner import Behind

from .calling import understudy


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
        ("--continuous", Behind()),
        ("--continuous --gate cost", Behind(gate="cost")),
        ("--continuous --gate my:Gate --threshold -0.5", Behind(gate="my:Gate", threshold=-0.5)),
    ],
)
def test_flags_choose_the_learner(
    served: list[dict[str, Any]], flags: str, behind: Behind | None
) -> None:
    assert understudy("learner", "--run", "runs/x", *flags.split()).code == 0
    assert served == [{"root": Path("runs/x"), "supervised": False, "behind": behind}]


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
