from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from understudy.run import folders

from .calling import understudy


def test_status_in_words(played: Path) -> None:
    called = understudy("status", "--run", played)
    assert called.code == 0
    for label in ("Run", "Matches", "Win rate", "Versions", "Learner", "Spool", "Episodes"):
        assert f"\n{label}" in "\n" + called.out
    assert "6 (" in called.out
    assert f"{played}" in called.out


def test_status_as_json(played: Path) -> None:
    told = understudy("status", "--run", played, "--json").json
    assert told["matches"] == 6 and told["versions"] == told["version"] == 3
    assert told["episodes"] == {"written": 6, "ingested": 6, "archived": 6, "quarantined": 0}
    assert told["archive_file_count"] == 6 and told["buffer_file_count"] == 0
    assert told["decision_ms"]["p50"] <= told["decision_ms"]["p99"]


def test_a_reader_takes_the_latest_run(
    played: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert understudy("status").code == 2
    shutil.copytree(played, "runs/copy")
    folders.remember(Path("runs/copy"))
    assert understudy("status", "--json").json["run"] == str(Path("runs/copy"))
    assert understudy("models", "list", "--json").json[-1]["version"] == 3


def test_looking_changes_nothing(played: Path) -> None:
    def everything() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in played.rglob("*") if path.is_file()}

    before = everything()
    understudy("status", "--run", played)
    understudy("models", "list", "--run", played)
    understudy("models", "show", 2, "--run", played)
    assert everything() == before


def test_json_is_ascii_whatever_the_folder_is_called(played: Path, tmp_path: Path) -> None:
    """A narrow console would show a letter as `\\xe9`, which is no JSON."""
    run = tmp_path / "ligue-é"
    shutil.copytree(played, run)
    for command in (
        ("status",),
        ("models", "export", 3, "--out", run / "3.npz"),
    ):
        called = understudy(*command, "--run", run, "--json")
        assert called.out.isascii() and called.out.count("\n") == 1
        assert "ligue-é" in str(called.json)
