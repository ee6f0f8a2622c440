"""`understudy tournament`: a round robin of runs and bots, counted, placed and written."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pytest

from understudy.cli.progress import ProgressDisplay
from understudy.games.brawl import tables

from .calling import understudy
from .runs_of_brawl import brawl_run

BRAWL = ("tournament", "brawl")
NUMPY = ("--engine", "numpy")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_one_object_and_files_with_everything_that_was_counted(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_FRAMES", 800)  # enough for one who never strikes back
    run = brawl_run(elsewhere / "mine", versions=1)
    asked = (run, "based", "constant", "--matches", 2, "--seed", 4, "--out", "out", "--json")
    called = understudy(*BRAWL, *asked, *NUMPY)
    assert called.code == 0, called.err
    found = called.json
    assert (found["game"], found["matches"], found["seed"]) == ("brawl", 2, 4)
    assert found["versions"] == {str(run): 1, "based": None, "constant": None}

    payoffs = found["payoffs"]
    assert payoffs["based"]["constant"]["wins"] == payoffs["constant"]["based"]["losses"] == 2
    best = found["standings"][0]
    assert (best["name"], best["matches"], best["fixed"]) == ("based", 4, True)
    points = [row["points"] for row in found["standings"]]
    assert points == sorted(points, reverse=True) and sum(points) == 3 * 2
    for row in found["standings"]:
        met = payoffs[row["name"]].values()
        assert row["wins"] == sum(one["wins"] for one in met)
        assert row["points"] == row["wins"] + row["draws"] / 2
        assert row["distinct"] == sum(one["distinct"] for one in met) <= row["matches"]
        assert row["rating"]["sigma"] > 0.0
    assert found["cycles"] == []

    with Path("out/payoffs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    for row in rows:
        counted = payoffs[row["player"]][row["opponent"]]
        assert {name: int(row[name]) for name in ("wins", "draws", "losses")} == {
            name: counted[name] for name in ("wins", "draws", "losses")
        }
    with Path("out/standings.csv").open(encoding="utf-8", newline="") as file:
        places = list(csv.DictReader(file))
    assert [row["player"] for row in places] == [row["name"] for row in found["standings"]]
    assert Path("out/payoffs.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_for_people() -> None:
    called = understudy(*BRAWL, "constant", "based", "--matches", 3, *NUMPY)
    assert called.code == 0, called.err
    lines = called.out.splitlines()
    assert lines[0] == "brawl: 2 players, 3 frozen matches of each pair"
    first = next(line for line in lines if line.startswith("1 "))
    assert first.split()[:6] == ["1", "based", "3", "3", "0", "0"]
    assert first.endswith(" fixed") and "±" in first
    head = next(line for line in lines if "win rate" in line).split()
    assert head[-4:] == ["rate", "distinct", "rating", "95%"] and first.split()[7] == "3"
    assert "Cycles: none that is sure." in called.out


@pytest.mark.parametrize(
    ("line", "named", "hint"),
    [
        ("based", "PLAYERS", "two or more"),
        ("based based", "PLAYERS", "'based' is named twice"),
        ("based basd", "PLAYERS: there is no bot or run folder 'basd'", "Did you mean 'based'?"),
        ("based random --matches 0", "--matches", "1 or more"),
        ("based random --engine torch", "--engine", "auto, numpy, jax"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(line: str, named: str, hint: str) -> None:
    called = understudy(*BRAWL, *line.split())
    assert (called.code, called.out) == (2, "")
    assert called.err.count("\n") == 1 and named in called.err and hint in called.err


def test_what_is_missing_is_said_before_the_first_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        ProgressDisplay,
        "show_share",
        lambda display, share, words: pytest.fail("a match was played"),
    )
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    called = understudy(*BRAWL, "based", "random", "--matches", 1, "--out", "out", *NUMPY)
    assert called.code == 2 and 'pip install ".[plots]"' in called.err


@pytest.mark.parametrize("out", ["taken", "taken/within"])
def test_a_folder_that_cannot_be_is_told_before_the_first_match(
    out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("taken").write_text("I am a file", encoding="utf-8")
    monkeypatch.setattr(
        ProgressDisplay,
        "show_share",
        lambda display, share, words: pytest.fail("a match was played"),
    )
    called = understudy(*BRAWL, "based", "random", "--matches", 1, "--out", out, *NUMPY)
    assert called.code == 2
    assert f"--out {out}: taken is a file; expected a folder" in called.err.replace("\\", "/")


def test_ctrl_c_ends_it_without_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def impatient(display: ProgressDisplay, share: float, words: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ProgressDisplay, "show_share", impatient)
    called = understudy(*BRAWL, "based", "random", "--matches", 1, "--out", "out", *NUMPY)
    assert (called.code, called.out) == (130, "")
    assert not Path("out").exists()
