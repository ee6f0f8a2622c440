from __future__ import annotations

import os
from pathlib import Path

import pytest

from understudy.core.clock import SystemClock
from understudy.core.errors import RunFolderError
from understudy.core.spaces import Discrete
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry import run_folder
from understudy.registry.run_folder import RunFolder, remember


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_new_runs_are_numbered_by_game() -> None:
    assert run_folder.new_run("swarm") == Path("runs/swarm-1")
    for name in ("swarm-1", "swarm-3", "brawl-2"):
        Path("runs", name).mkdir(parents=True)
    assert run_folder.new_run("swarm") == Path("runs/swarm-2")
    assert run_folder.new_run("brawl") == Path("runs/brawl-1")


def test_readers_find_the_run_that_was_written_last(tmp_path: Path) -> None:
    for run in (Path("runs/swarm-1"), tmp_path / "far away" / "rün"):
        run.mkdir(parents=True)
        remember(run)
        assert run_folder.latest() == run
    assert Path("runs/LATEST").read_text(encoding="utf-8").endswith("rün\n")


def test_without_a_run_one_is_told_how_to_make_one() -> None:
    with pytest.raises(RunFolderError, match="understudy play swarm"):
        run_folder.latest()


def test_a_run_that_is_gone_is_named() -> None:
    remember(Path("runs/swarm-1"))
    with pytest.raises(RunFolderError, match="swarm-1, is gone"):
        run_folder.latest()


def test_the_latest_run_of_a_game_is_of_that_game(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="no run of brawl yet"):
        run_folder.latest_of("brawl")
    spec = PolicySpec(("a",), Discrete(("x", "y")), Mlp())

    def written(run: Path, game: str, at: float) -> Path:
        RunFolder.open(run, spec=spec, config=None, clock=SystemClock(), game=game)
        remember(run)
        os.utime(run / "run.json", (at, at))
        return run

    old, new = (written(Path("runs", name), "brawl 3", at) for name, at in (("b", 9), ("a", 10)))
    assert run_folder.latest_of("brawl") == new
    swarm = written(Path("runs/swarm-1"), "swarm 1", 11.0)
    Path("runs/broken").mkdir()
    Path("runs/broken/run.json").write_text("{", encoding="utf-8")
    assert (run_folder.latest_of("brawl"), run_folder.latest_of("swarm")) == (new, swarm)
    remember(old)
    assert run_folder.latest_of("brawl") == old
    away = written(tmp_path / "far away", "brawl 3", 1.0)
    assert run_folder.latest_of("brawl") == away


def test_a_folder_that_cannot_be_written_to_is_no_obstacle() -> None:
    Path("runs").write_text("a file where the folder should be", encoding="utf-8")
    remember(Path("elsewhere"))
