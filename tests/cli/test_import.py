"""`understudy import` as a person types it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from legacy import old_bot
from typer.testing import CliRunner

from understudy.cli.app import make_app


def test_it_says_what_came_in_and_what_did_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    old_bot.experience(Path("old/exp_20260125_143022_ep1.npz"))
    old_bot.model(Path("old/rl_agent_model.npz"))
    command = ["import", "old", "--run", "runs/zerg"]
    first = CliRunner().invoke(make_app(), command)
    assert first.exit_code == 0, first.output
    assert "1 matches, 20 decisions" in first.output
    assert "rl_agent_model.npz is version 1" in first.output
    assert "understudy learner --run runs/zerg" in first.output
    Path("old/bad\x1b.npz").write_text("no")
    second = CliRunner().invoke(make_app(), command)
    assert second.exit_code == 1
    assert "2 files came in before" in second.output
    assert r"bad\x1b.npz: not a readable .npz file" in second.output
    assert CliRunner().invoke(make_app(), ["status"]).exit_code == 0  # the latest run is this one


def test_json_and_a_run_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    old_bot.experience(Path("exp.npz"))
    done = CliRunner().invoke(
        make_app(), ["import", "exp.npz", "gone.npz", "--json", "--late-rewards"]
    )
    assert done.exit_code == 1
    assert msgspec.json.decode(done.stdout) == {
        "run": str(Path("runs/imported-1")),
        "matches": 1,
        "decisions": 20,
        "models": [],
        "known": [],
        "failed": [{"file": "gone.npz", "reason": "No such file or directory"}],
    }


def test_help_has_an_example() -> None:
    shown = CliRunner().invoke(make_app(), ["import", "--help"])
    assert shown.exit_code == 0
    assert "Example: understudy import" in shown.output
