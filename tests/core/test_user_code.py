"""Users' modules: loaded once, by file or by name; every failure names the file and the line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from understudy.core.errors import ConfigError
from understudy.core.user_code import CodeSource, load_module, split_name

pytestmark = pytest.mark.usefixtures("fresh_code")


def written(folder: Path, text: str, name: str = "my_code.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "source", "name"),
    [
        ("my_game.py:TicTacToe", "my_game.py", "TicTacToe"),
        ("package.my_game:make", "package.my_game", "make"),
        (r"C:\games\my_game.py:Game", r"C:\games\my_game.py", "Game"),
        ("C:/games/my_game.py:Game", "C:/games/my_game.py", "Game"),
        ("/games/a:b/my_game.py:Game", "/games/a:b/my_game.py", "Game"),
    ],
)
def test_the_last_colon_divides_a_source_from_a_name(text: str, source: str, name: str) -> None:
    assert split_name(text, flag="GAME") == (source, name)


@pytest.mark.parametrize("text", [r"C:\games\my_game.py", "my_game.py", "my_game.py:", ":Game"])
def test_a_name_is_asked_for_where_none_is_given(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected FILE\.py:NAME or MODULE:NAME"):
        split_name(text, flag="GAME")


def test_a_file_is_run_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    path = written(tmp_path, "WORDS = []\nWORDS.append(1)\n")
    first = load_module(path, flag="--bots")
    assert load_module(path, flag="--bots").module is first.module
    written(tmp_path, "WORDS = [2, 2]\n")
    again = load_module(path, flag="--bots")
    assert again.module.WORDS == [2, 2] and again.sha256 != first.sha256


def test_a_file_imports_its_neighbours_and_hides_no_library(tmp_path: Path) -> None:
    written(tmp_path, "CELLS = 9\n", "my_rules.py")
    written(tmp_path, "raise ValueError('the wrong json')\n", "json.py")
    path = written(tmp_path, "import json\nfrom my_rules import CELLS\nTEXT = json.dumps(CELLS)\n")
    assert load_module(path, flag="--bots").module.TEXT == "9"
    library = load_module(written(tmp_path, "OWN = True\n", "json.py"), flag="--bots")
    assert library.module.OWN and sys.modules["json"] is not library.module


def test_a_dataclass_with_deferred_annotations_finds_its_module(tmp_path: Path) -> None:
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass(frozen=True)\nclass Bot:\n    taste: float = 1.0\n"
    )
    assert load_module(written(tmp_path, text), flag="--bots").module.Bot().taste == 1.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\ny = x / 0\n", r"ZeroDivisionError: division by zero, line 2 of my_code\.py"),
        ("def f(:\n", "SyntaxError"),
        ("import no_such_library\n", "No module named 'no_such_library'"),
        ("open('missing.txt')\n", "FileNotFoundError"),
    ],
)
def test_what_cannot_be_imported_is_named_with_its_line(
    tmp_path: Path, text: str, words: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=words) as caught:
        load_module(path, flag="--bots")
    assert str(caught.value).startswith(f"--bots {path}: cannot be imported")
    assert "my_code" not in sys.modules


def test_missing_files_modules_and_other_endings_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--bots: there is no file"):
        load_module(tmp_path / "missing.py", flag="--bots")
    with pytest.raises(ConfigError, match="--bots no_such_bots: cannot be imported"):
        load_module("no_such_bots", flag="--bots")
    with pytest.raises(ConfigError, match=r"does not end in \.py"):
        load_module(written(tmp_path, "", "notes.txt"), flag="--bots")


def test_a_source_is_found_beside_its_run_first_and_then_where_it_was(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "runs" / "one").mkdir(parents=True)
    path = written(project, "GAME = 1\n", "my_game.py")
    run = project / "runs" / "one"
    source = CodeSource.of(load_module(path, flag="GAME"), run, name="GAME")
    assert source.relative == "../../my_game.py" and source.find(run) == str(path)
    assert source.is_named(f"{path}:GAME", run) and not source.is_named(f"{path}:OTHER", run)

    moved = tmp_path / "alone"
    run.rename(moved)
    assert source.find(moved) == str(path), "the run folder was moved alone"

    copied = tmp_path / "copy"
    project.rename(copied)
    moved.rename(copied / "runs" / "one")
    assert source.find(copied / "runs" / "one") == str(copied / "my_game.py")

    (copied / "my_game.py").unlink()
    with pytest.raises(ConfigError, match=r"my_game\.py that this run was made with is gone"):
        source.find(copied / "runs" / "one")


def test_a_module_is_kept_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "GAME = 1\n", "game_by_name.py")
    monkeypatch.chdir(tmp_path)
    source = CodeSource.of(load_module("game_by_name", flag="GAME"), tmp_path / "run", name="GAME")
    assert source.module == source.find(tmp_path / "run") == "game_by_name" and not source.file


def test_a_file_that_changed_within_a_second_is_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytecode of the text before would fit it by size and time."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for value in (1, 2):
        path = written(tmp_path, f"VALUE = {value}\n")
        os.utime(path, (1e9, 1e9))
        module = load_module(path, flag="--bots").module
        assert value == module.VALUE
