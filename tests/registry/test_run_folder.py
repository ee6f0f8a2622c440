from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from walk.toys import SPEC, SetClock, open_run, settings

from understudy import Understudy
from understudy.core import files
from understudy.core.config import Config
from understudy.core.errors import ConfigError, RunFolderError
from understudy.core.files import Disk
from understudy.core.spaces import Discrete
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder


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
