from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.runs_of_brawl import brawl_run

import understudy
from understudy.agents.exported import load_exported
from understudy.agents.files import check_target, write_module, write_weights
from understudy.agents.loading import named_policy
from understudy.agents.module_file import plain_agent
from understudy.core.errors import ConfigError, FileFormatError, RunFolderError
from understudy.policy import weights

from .exports import exported, policy_of


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return brawl_run(tmp_path / "brawl-1")


def played(path: str | Path, **options: Any) -> list[object]:
    agent = understudy.load_agent(path, **options)
    rng = np.random.default_rng(0)
    return [agent.act(obs) for obs in rng.random((30, len(agent.features)))]


def test_an_agent_of_a_run_a_version_and_a_file(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "agent.py"
    write_module(named_policy("RUN", f"{run}@1"), out, plain_agent(greedy=True))
    assert played(run, seed=1) == played(f"{run}@2", seed=1), "the champion"
    assert played(out) == played(f"{run}@1", greedy=True) != played(run, greedy=True)
    assert played(out, greedy=False, seed=5) == played(f"{run}@1", seed=5)
    agent = understudy.load_agent(out)
    assert (
        agent.version == 1 and agent.actions.names[0] == understudy.load_agent(run).actions.names[0]
    )
    agent.reset()


def test_weights_are_those_of_the_version(run: Path, tmp_path: Path) -> None:
    named = named_policy("RUN", f"{run}@1")
    written = write_weights(named, tmp_path / "weights.npz")
    assert (tmp_path / "weights.npz").read_bytes() == weights.encode(named.policy.weights)
    assert written.version == 1 and written.bytes == (tmp_path / "weights.npz").stat().st_size


def test_a_file_that_would_be_too_large_is_refused(run: Path, tmp_path: Path) -> None:
    named, agent = named_policy("RUN", str(run)), plain_agent(greedy=True)
    with pytest.raises(ConfigError, match=r"would have 0\.0 MB, and may have .*--float16 halves"):
        write_module(named, tmp_path / "agent.py", agent, most_bytes=1000)
    with pytest.raises(ConfigError, match="train a smaller network"):
        write_module(named, tmp_path / "agent.py", agent, most_bytes=1000, float16=True)
    assert not (tmp_path / "agent.py").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", "there is no run folder 'nowhere'"),
        ("{run}@7", "version 7 is not in"),
        ("{run}@latest", "expected RUN@VERSION with a whole number"),
        ("{run}@step-5", "step-5"),
        ("nowhere.py", "there is no such file"),
    ],
)
def test_names_that_mean_nothing(run: Path, name: str, words: str) -> None:
    with pytest.raises((ConfigError, RunFolderError, FileFormatError), match=words):
        understudy.load_agent(name.format(run=run))


def test_a_run_without_a_version(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="this run has no version yet"):
        understudy.load_agent(brawl_run(tmp_path / "empty", versions=0))


def test_only_an_exported_file_is_run(tmp_path: Path) -> None:
    path, trap = tmp_path / "script.py", tmp_path / "trap"
    path.write_text(f"open({str(trap)!r}, 'w')\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match="has no ABOUT"):
        load_exported(path)
    path.write_text("\nABOUT = {\n'format': open('trap', 'w')\n}\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match="ABOUT cannot be read"):
        load_exported(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FileFormatError, match="not a Python file"):
        load_exported(path)
    assert not trap.exists()


def test_what_says_what_it_is_is_what_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytecode is known by a file's size and the second of its change: both are those of the file
    before."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = exported(policy_of("mlp"), tmp_path / "agent.py").path
    text = path.read_text(encoding="utf-8")
    for version in (4, 5):
        path.write_text(text.replace("'version': 3", f"'version': {version}"), encoding="utf-8")
        os.utime(path, (1e9, 1e9))
        file = load_exported(path)
        assert file.about.version == file.agent().version == version
    assert not (tmp_path / "__pycache__").exists()


def test_line_ends_of_windows_are_read(tmp_path: Path) -> None:
    path = exported(policy_of("mlp"), tmp_path / "agent.py").path
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_exported(path).agent().version == 3


def test_a_folder_and_a_name_that_cannot_be_are_told(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    for name in ("folder.py", "x" * 300 + ".py"):
        with pytest.raises(FileFormatError, match=r"\.py: cannot be read \("):
            understudy.load_agent(tmp_path / name)


def test_a_newer_format_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    text = exported(policy_of("mlp"), tmp_path / "agent.py").path.read_text(encoding="utf-8")
    path = tmp_path / "other.py"
    path.write_text(text.replace("'format': 1", "'format': 2"), encoding="utf-8")
    with pytest.raises(FileFormatError, match="exported in format 2, this program reads 1"):
        load_exported(path)
    path.write_text(text[: len(text) // 2], encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"other\.py: cannot be loaded"):
        load_exported(path)


def test_targets_are_checked_before_the_work(tmp_path: Path) -> None:
    there = tmp_path / "agent.py"
    there.touch()
    folder = tmp_path / "folder.py"
    folder.mkdir()
    for path, words in (
        (tmp_path / "agent.txt", "ends in .py"),
        (tmp_path / "no" / "agent.py", "there is no folder"),
        (there, "--force replaces it"),
        (folder, "is a folder; expected a file in it"),
    ):
        with pytest.raises(ConfigError, match=words):
            check_target(path, ".py", force=False)
    check_target(there, ".py", force=True)
    with pytest.raises(ConfigError, match="is a folder"):
        check_target(folder, ".py", force=True)
