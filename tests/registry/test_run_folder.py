from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from walk.toys import SPEC, SetClock, open_run, settings

from understudy import Understudy
from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.core.config import Config
from understudy.core.errors import ConfigError, RunFolderError
from understudy.core.files import Disk
from understudy.core.spaces import Discrete
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry import run_folder
from understudy.registry.run_folder import RunFolder, remember


class ReadOnlyDisk(Disk):
    """Refuses every change, as a folder of somebody else does."""

    def __init__(self) -> None:
        def refuse(path: Path, *rest: object) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

        for effect in ("write", "append", "rename", "claim", "remove", "make_folder"):
            setattr(self, effect, refuse)


def test_a_run_folder_remembers_what_it_is_for(tmp_path: Path) -> None:
    config = settings(learner__gamma=0.5)
    open_run(tmp_path / "run", config)
    again = RunFolder.load(tmp_path / "run", SetClock())
    assert (again.spec, again.config) == (SPEC, config)
    kept = RunFolder.open(tmp_path / "run", spec=SPEC, config=None, clock=SetClock())
    assert kept.config == config


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (PolicySpec(("a", "c"), SPEC.actions, SPEC.network), "'b' at position 1, now it is 'c'"),
        (PolicySpec(("a",), SPEC.actions, SPEC.network), "made for 2, now there are 1"),
        (PolicySpec(SPEC.features, Discrete(("x", "y")), SPEC.network), "actions do not fit"),
        (PolicySpec(SPEC.features, SPEC.actions, Mlp((9,))), "network do not fit"),
    ],
)
def test_what_does_not_fit_is_said_before_the_first_match(
    tmp_path: Path, spec: PolicySpec, message: str
) -> None:
    open_run(tmp_path / "run", Config())
    with pytest.raises(RunFolderError, match=message):
        RunFolder.open(tmp_path / "run", spec=spec, config=None, clock=SetClock())


@pytest.mark.parametrize("exists", [False, True])
def test_a_read_only_run_folder_is_refused_before_the_first_match(
    tmp_path: Path, exists: bool
) -> None:
    if exists:
        open_run(tmp_path / "run", Config())
    with files.using(ReadOnlyDisk()), pytest.raises(RunFolderError, match="can be written to"):
        Understudy.open(
            tmp_path / "run", features=["a", "b"], actions=["left", "right"], learner="off",
            network=SPEC.network,
        )  # fmt: skip


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("I am a file")
    with pytest.raises(RunFolderError, match="cannot be used as a run folder"):
        open_run(tmp_path / "run", Config())


@pytest.mark.parametrize("damage", [b"", b"{", b'{"schema": 99}', b"[]", b'{"game": "\xff"}'])
def test_a_damaged_identity_is_a_clear_error(tmp_path: Path, damage: bytes) -> None:
    open_run(tmp_path, Config())
    (tmp_path / "run.json").write_bytes(damage)
    with pytest.raises(RunFolderError, match=r"run\.json"):
        RunFolder.load(tmp_path, SetClock())


def test_damaged_settings_are_a_clear_error(tmp_path: Path) -> None:
    open_run(tmp_path, Config())
    (tmp_path / "config.toml").write_text("[learner]\ngama = 0.5\n")
    with pytest.raises(ConfigError, match=r"learner\.gama.*Did you mean 'learner.gamma'"):
        RunFolder.load(tmp_path, SetClock())


def test_a_folder_without_a_run_is_not_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("I am a file")
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(RunFolderError, match="not a run folder"):
            RunFolder.load(path, SetClock())


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("elsewhere")
def test_new_runs_are_numbered_by_game() -> None:
    assert run_folder.new_run("swarm") == Path("runs/swarm-1")
    for name in ("swarm-1", "swarm-3", "brawl-2"):
        Path("runs", name).mkdir(parents=True)
    assert run_folder.new_run("swarm") == Path("runs/swarm-2")
    assert run_folder.new_run("brawl") == Path("runs/brawl-1")


@pytest.mark.usefixtures("elsewhere")
def test_readers_find_the_run_that_was_written_last(tmp_path: Path) -> None:
    for run in (Path("runs/swarm-1"), tmp_path / "far away" / "rün"):
        run.mkdir(parents=True)
        remember(run)
        assert run_folder.latest() == run
    assert Path("runs/LATEST").read_text(encoding="utf-8").endswith("rün\n")


@pytest.mark.usefixtures("elsewhere")
def test_without_a_run_one_is_told_how_to_make_one() -> None:
    with pytest.raises(RunFolderError, match="understudy play swarm"):
        run_folder.latest()


@pytest.mark.usefixtures("elsewhere")
def test_a_run_that_is_gone_is_named() -> None:
    remember(Path("runs/swarm-1"))
    with pytest.raises(RunFolderError, match="swarm-1, is gone"):
        run_folder.latest()


@pytest.mark.usefixtures("elsewhere")
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


@pytest.mark.usefixtures("elsewhere")
def test_a_folder_that_cannot_be_written_to_is_no_obstacle() -> None:
    Path("runs").write_text("a file where the folder should be", encoding="utf-8")
    remember(Path("elsewhere"))
