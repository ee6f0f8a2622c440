"""`understudy ratings`: what training recorded, and frozen matches within the league."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from understudy.cli.progress import ProgressDisplay
from understudy.games import catalog
from understudy.games.brawl import tables
from understudy.judging import ratings as run_ratings
from understudy.league.payoffs import Payoffs
from understudy.league.ratings import Counts
from understudy.league.snapshots import evenly
from understudy.registry.run_folder import remember

from .calling import alone, understudy
from .leagues_of_brawl import brawl_league
from .runs_of_brawl import brawl_run


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stone_scissors_paper(game: Any, players: dict[str, Any], **rest: Any) -> Payoffs:
    """In place of matches: each beats the next surely, three of them in a ring."""
    rest["show"](0.5)
    names = tuple(players)
    results: dict[tuple[str, str], Counts] = {
        (one, other): (20, 0, 0) for i, one in enumerate(names) for other in names[i + 1 :]
    }
    results["step-1000", "champion"] = (0, 0, 20)
    return Payoffs.of(names, results)


def test_what_training_recorded(elsewhere: Path) -> None:
    run = brawl_league(elsewhere / "runs" / "mine")
    remember(Path("runs/mine"))
    found = understudy("ratings", "--no-play", "--json").json  # of the latest run
    assert (found["run"], found["version"], found["steps"]) == ("runs/mine", 1, 5000)
    assert found["frozen"] is None
    assert list(found["opponents"])[-3:] == ["step-1000", "step-2000", "step-3000"]
    based, snapshot = found["opponents"]["based"], found["opponents"]["step-2000"]
    assert (based["wins"], based["draws"], based["losses"], based["fixed"]) == (6, 3, 24, True)
    assert (snapshot["wins"], snapshot["matches"], snapshot["fixed"]) == (6, 10, False)
    assert snapshot["rating"]["sigma"] > 0.0

    called = understudy("ratings", "--run", run, "--no-play", "--players", 2)
    assert called.code == 0, called.err
    assert "version 1 after 5,000 steps, 3 snapshots kept" in called.out
    rows = {line.split()[0]: line for line in called.out.splitlines() if line}
    assert "±" in rows["learner"] and " fixed " in rows["based"]
    assert "step-1000" in rows and "step-3000" in rows and "step-2000" not in rows
    assert "and 1 more snapshots" in called.out


def test_the_strongest_comes_first(elsewhere: Path) -> None:
    run = brawl_league(elsewhere / "mine")
    page = understudy("ratings", "--run", run, "--no-play").out.splitlines()[4:]
    ratings = [float(line.split()[1]) for line in page]
    assert ratings == sorted(ratings, reverse=True) and len(ratings) == 7 + 3 + 1


def test_frozen_matches_for_people_and_in_files(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = brawl_league(elsewhere / "mine")
    monkeypatch.setattr(run_ratings, "round_robin", stone_scissors_paper)
    called = understudy("ratings", "--run", run, "--engine", "numpy", "--out", "out")
    assert called.code == 0, called.err
    assert "Frozen matches, 20 of each pair" in called.out
    assert "step-1000 > step-2000 > champion > step-1000   every step above 83.9%" in called.out
    assert "100*" in called.out and "win rate" in called.out.lower()
    kept = msgspec.json.decode(Path("out/ratings.json").read_bytes())
    assert len(kept["frozen"]["standings"]) == 7 + 3 + 1
    assert kept["frozen"]["cycles"][0]["players"] == ["step-1000", "step-2000", "champion"]
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "payoffs.csv", "payoffs.png", "ratings.json", "standings.csv",
    ]  # fmt: skip


def test_real_matches_of_bots_snapshots_and_champion(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = brawl_league(elsewhere / "mine")
    both = {name: catalog.bots("brawl")[name] for name in ("constant", "random")}
    monkeypatch.setattr(catalog, "bots", lambda name, **options: both)
    monkeypatch.setattr(tables, "MAX_FRAMES", 200)  # short matches, and nobody learns from them
    asked = ("--players", 1, "--matches", 1, "--engine", "numpy", "--json")
    called = understudy("ratings", "--run", run, *asked)
    assert called.code == 0, called.err
    frozen = called.json["frozen"]
    assert list(frozen["payoffs"]) == ["constant", "random", "step-3000", "champion"]
    assert all(one["matches"] == 1 for row in frozen["payoffs"].values() for one in row.values())
    fixed = {row["name"]: row["fixed"] for row in frozen["standings"]}
    assert fixed == {"constant": True, "random": True, "step-3000": False, "champion": False}


def test_mistakes_and_damage_are_one_line(elsewhere: Path) -> None:
    def refused(*args: object) -> str:
        called = understudy("ratings", *args)
        assert (called.code, called.out) == (2, "") and called.err.count("\n") == 1
        return called.err

    assert "--players: expected 0 or more" in refused("--players", -1)
    assert "--matches: expected 1 or more" in refused("--matches", 0)
    assert "no run yet" in refused()
    Path("taken").write_text("I am a file", encoding="utf-8")
    assert "taken: not a run folder" in refused("--run", "taken")
    assert "has no league.json" in refused("--run", brawl_run(elsewhere / "plain", versions=1))
    assert "no version yet" in refused("--run", brawl_run(elsewhere / "empty", versions=0))
    run = brawl_league(elsewhere / "mine")
    path = run / "league" / "step-000003000.npz"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert "does not match the checksum" in refused("--run", run, "--engine", "numpy")
    assert "--out taken: taken is a file" in refused("--run", run, "--out", "taken")


def test_ctrl_c_ends_it_without_a_result(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def impatient(display: ProgressDisplay, share: float, words: str) -> None:
        raise KeyboardInterrupt

    run = brawl_league(elsewhere / "mine")
    monkeypatch.setattr(ProgressDisplay, "show_share", impatient)
    monkeypatch.setattr(run_ratings, "round_robin", stone_scissors_paper)
    called = understudy("ratings", "--run", run, "--engine", "numpy")
    assert (called.code, called.out) == (130, "")


def test_what_training_recorded_is_read_without_jax(elsewhere: Path) -> None:
    brawl_league(elsewhere / "mine")
    called = alone("ratings", "--run", "mine", "--no-play", "--json", folder=elsewhere)
    assert called.code == 0, called.err
    assert called.json["version"] == 1


@pytest.mark.parametrize("count", range(12))
def test_evenly(count: int) -> None:
    items = list(range(count))
    for most in range(14):
        chosen = evenly(items, most)
        assert len(chosen) == min(count, most) == len(set(chosen))
        assert chosen == sorted(chosen)
        if chosen:
            assert chosen[-1] == items[-1]
        if len(chosen) > 1:
            assert chosen[0] == 0
            assert np.ptp(np.diff(chosen)) <= 1
