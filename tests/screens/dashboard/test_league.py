"""The page of the league: ratings, payoffs and cycles, stages, and populations."""

from __future__ import annotations

from pathlib import Path

import pytest
from run.dashboards import unpacked

from understudy.screens.dashboard.pages import league

from .readings import HOSTILE, outlines, reading_of


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    return unpacked(tmp_path, "arena") / "arena"


def test_ratings_are_shown_with_their_intervals_and_over_steps(arena: Path) -> None:
    reading = reading_of(arena)
    assert league.offered(reading)
    page = outlines(league.parts, reading)
    told = page["ratings"].of("svg")[0]["aria-label"]
    assert "the learner now" in told
    assert "±" in told
    assert len(page["ratings"].of("circle")) >= 3
    assert page["payoffs"].of("svg")[0]["aria-label"].count("%") >= 1, "whom it met"
    assert "understudy ratings --run" in page["payoffs"].text, "no frozen match was played"


def test_stages_say_which_is_passed_and_which_is_not(arena: Path) -> None:
    page = outlines(league.parts, reading_of(arena))
    text = page["curriculum"].text
    assert "first" in text and "second" in text
    badges = [one["class"] for one in page["curriculum"].of("span")]
    assert badges in (["badge note", "badge warning"], ["badge good", "badge note"])


HEAD = "player,opponent,matches,wins,draws,losses,win_rate,win_rate_low,win_rate_high\n"


def payoffs(*rows: tuple[str, str, int, int, int]) -> str:
    both = [*rows, *((b, a, losses, draws, wins) for a, b, wins, draws, losses in rows)]
    lines = (f"{a},{b},{w + d + x},{w},{d},{x},0,0,0\n" for a, b, w, d, x in both)
    return HEAD + "".join(lines)


def test_payoffs_become_a_map_and_cycles_are_named(arena: Path) -> None:
    folder = arena / "ratings"
    folder.mkdir()
    text = payoffs(("rock", "paper", 0, 0, 40), ("paper", "scissors", 2, 0, 38),
                   ("scissors", "rock", 4, 0, 36))  # fmt: skip
    (folder / "payoffs.csv").write_text(text, "utf-8")
    page = outlines(league.parts, reading_of(arena))["payoffs"]
    told = page.of("svg")[0]["aria-label"]
    assert "3 rows by 3 columns; lowest 0% at rock, paper" in told
    assert "highest 100% at paper, rock" in told
    assert "3 without a value" in told, "nobody plays against itself"
    assert "rock > scissors > paper > rock" in page.text


def test_names_of_players_stay_text_and_a_damaged_table_is_said(arena: Path) -> None:
    path = arena / "payoffs.csv"
    path.write_text(payoffs(("<script>x</script>", "b", 3, 0, 1)), "utf-8")
    page = outlines(league.parts, reading_of(arena))["payoffs"]
    assert not page.of("script")
    assert "<script>" in page.text
    path.write_text(f"player,opponent\n{HOSTILE}\n", "utf-8", "replace")
    page = outlines(league.parts, reading_of(arena))["payoffs"]
    assert "expected player, opponent, wins" in page.text
    assert not page.of("script")


def test_a_population_shows_scores_and_settings(tmp_path: Path) -> None:
    page = outlines(league.parts, reading_of(unpacked(tmp_path, "population") / "population"))
    assert set(page) == {"population"}
    assert "Score of each agent" in page["population"].of("svg")[0]["aria-label"]
    assert "(best)" in page["population"].text


def test_a_bot_that_plays_has_no_league(tmp_path: Path) -> None:
    assert not league.offered(reading_of(unpacked(tmp_path, "ring") / "ring"))


def test_a_league_without_tables_says_what_is_missing(arena: Path) -> None:
    (arena / "league.csv").unlink()
    for manifest in arena.glob("versions/*/league.json"):
        manifest.unlink()
    page = outlines(league.parts, reading_of(arena))
    assert "No match was rated yet" in page["ratings"].text
