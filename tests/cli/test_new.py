from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .calling import in_terminal, understudy


def test_a_bot_is_made_and_said_how_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    called = understudy("new", "sc2-bot", "my_bot")
    assert called.code == 0
    assert {path.name for path in (tmp_path / "my_bot").iterdir()} == {
        "bot.py",
        "run.py",
        "README.md",
    }
    assert f"python {Path('my_bot') / 'run.py'} --stand-in" in called.out
    for name in ("bot.py", "run.py"):
        ast.parse((tmp_path / "my_bot" / name).read_text(encoding="utf-8"))
    assert "# my_bot" in (tmp_path / "my_bot" / "README.md").read_text(encoding="utf-8")


def test_a_stand_in_of_the_tournament_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    called = understudy("new", "ai2-stand-in", "stand_in")
    assert called.code == 0
    assert str(Path("stand_in") / "environment" / "agent.py") in called.out.splitlines()
    assert "understudy train ai2 --option home=stand_in --config tournament" in called.out
    assert (tmp_path / "stand_in" / "assets").is_dir()
    again = understudy("new", "ai2-stand-in", "stand_in")
    assert again.code == 2
    assert "exists already" in again.err


def test_it_fits_a_terminal_of_80_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    called = in_terminal("new", "sc2-bot", "my_bot", columns=80)
    assert max(map(len, called.out.splitlines())) <= 80


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bot.py").write_text("precious", encoding="utf-8")
    called = understudy("new", "sc2-bot", tmp_path / "mine")
    assert called.code == 2
    assert "exists already" in called.err
    assert (tmp_path / "mine" / "bot.py").read_text(encoding="utf-8") == "precious"


def test_an_unknown_kind_is_named(tmp_path: Path) -> None:
    called = understudy("new", "sc2bot", tmp_path / "mine")
    assert called.code == 2
    assert "got 'sc2bot'. Did you mean 'sc2-bot'?" in called.err
