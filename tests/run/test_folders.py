from __future__ import annotations

from pathlib import Path

import pytest

from understudy.core.errors import RunFolderError
from understudy.run import folders


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_new_runs_are_numbered_by_game() -> None:
    assert folders.new_run("swarm") == Path("runs/swarm-1")
    for name in ("swarm-1", "swarm-3", "brawl-2"):
        Path("runs", name).mkdir(parents=True)
    assert folders.new_run("swarm") == Path("runs/swarm-2")
    assert folders.new_run("brawl") == Path("runs/brawl-1")


def test_readers_find_the_run_that_was_written_last(tmp_path: Path) -> None:
    for run in (Path("runs/swarm-1"), tmp_path / "far away" / "rün"):
        run.mkdir(parents=True)
        folders.remember(run)
        assert folders.latest() == run
    assert Path("runs/LATEST").read_text(encoding="utf-8").endswith("rün\n")


def test_without_a_run_one_is_told_how_to_make_one() -> None:
    with pytest.raises(RunFolderError, match="understudy play swarm"):
        folders.latest()


def test_a_run_that_is_gone_is_named() -> None:
    folders.remember(Path("runs/swarm-1"))
    with pytest.raises(RunFolderError, match="swarm-1, is gone"):
        folders.latest()


def test_a_folder_that_cannot_be_written_to_is_no_obstacle() -> None:
    Path("runs").write_text("a file where the folder should be", encoding="utf-8")
    folders.remember(Path("elsewhere"))
