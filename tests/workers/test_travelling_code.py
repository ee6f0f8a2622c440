"""The user's code on its way to other machines."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from understudy.core.errors import ConfigError
from understudy.core.user_code import load_module
from understudy.workers import travelling_code
from understudy.workers.travelling_code import copy_user_code, job_working_dir


@pytest.fixture
def only_mine(fresh_code: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has imported nothing but the modules of the test."""
    before = set(sys.modules)
    top_levels = travelling_code._top_levels
    monkeypatch.setattr(
        travelling_code,
        "_top_levels",
        lambda modules: top_levels([m for name, m in sys.modules.items() if name not in before]),
    )


@pytest.mark.usefixtures("only_mine")
def test_what_was_imported_travels_and_packages_whole(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    package = mine / "my_maps"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from my_maps import small", encoding="utf-8")
    (package / "small.py").write_text("SIZE = 3", encoding="utf-8")
    (package / "map.txt").write_text("...", encoding="utf-8")
    (mine / "my_rules.py").write_text("import my_maps, numpy", encoding="utf-8")
    (mine / "my_bots.py").write_text("import my_rules, json, msgspec\nBOTS = {}", encoding="utf-8")
    (mine / "other.py").write_text("", encoding="utf-8")
    load_module(mine / "my_bots.py", flag="--bots")
    sent = tmp_path / "sent"
    sent.mkdir()
    names = copy_user_code(sent)
    found = {str(path.relative_to(sent)) for path in sent.rglob("*") if path.is_file()}
    assert found == {
        "my_bots.py", "my_rules.py", "my_maps/__init__.py", "my_maps/small.py", "my_maps/map.txt"
    }  # fmt: skip
    assert names[str((mine / "my_bots.py").resolve())] == "my_bots.py"


@pytest.mark.usefixtures("only_mine")
def test_two_files_of_one_name_cannot_travel_together(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same_bots.py").write_text("BOTS = {}", encoding="utf-8")
        load_module(tmp_path / folder / "same_bots.py", flag="--bots")
    (tmp_path / "sent").mkdir()
    with pytest.raises(ConfigError, match=r"cannot travel.*beside another same_bots\.py"):
        copy_user_code(tmp_path / "sent")


def test_a_job_may_have_its_code_already(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "RAY_JOB_CONFIG_JSON_ENV_VAR"
    monkeypatch.delenv(name, raising=False)
    assert job_working_dir() is None
    monkeypatch.setenv(name, json.dumps({"runtime_env": {}}))
    assert job_working_dir() is None
    monkeypatch.setenv(name, json.dumps({"runtime_env": {"working_dir": "gcs://x.zip"}}))
    assert job_working_dir() == "gcs://x.zip"
