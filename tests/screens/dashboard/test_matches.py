"""The matches page: win rates with intervals, outcomes over time, and what rewards are made of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from doctor.ring_runs import WrittenRing
from doctor.written_runs import WrittenTraining
from run.dashboards import unpacked
from telemetry.entries import match

from screens.dashboard.page_outline import PageOutline
from screens.dashboard.readings import reading_of
from screens.test_report_page import HOSTILE
from understudy.screens.dashboard.pages import matches
from understudy.screens.dashboard.recent_matches import RecentMatches


def test_a_run_without_a_match_says_so(tmp_path: Path) -> None:
    WrittenRing(tmp_path / "run")
    page = PageOutline(matches.parts(reading_of(tmp_path / "run")))
    assert page.keys == ["matches"] and "No match has ended yet" in page.text


def test_a_server_has_no_page_of_matches(tmp_path: Path) -> None:
    assert not matches.offered(reading_of(unpacked(tmp_path, "served") / "served"))


def test_win_rates_by_opponent_have_their_intervals(tmp_path: Path) -> None:
    ring = WrittenRing(tmp_path / "run")
    for number in range(20):
        zerg = match("victory" if number < 15 else "defeat", tags={"opponent": "zerg"})
        ring.bot.write(zerg)
        ring.bot.write(match("defeat", tags={"opponent": "terran", "seed": str(number)}))
        ring.bot.write(match("victory", role="rules", tags={"opponent": "terran"}))
    page = PageOutline(matches.parts(reading_of(tmp_path / "run")))
    assert "zerg 75% 53% to 89% of 20" in page.text
    assert (
        "terran 0% 0% to 16% of 20 learned versions 100% 84% to 100% of 20 the rules" in page.text
    )
    assert "By opponent" in page.text and "By seed" not in page.text
    assert "zerg from" in page.chart("Win rate by opponent")


def test_a_tag_of_a_few_matches_has_no_row(tmp_path: Path) -> None:
    ring = WrittenRing(tmp_path / "run")
    for number in range(12):
        ring.bot.write(match(tags={"map": "often" if number < 8 else "rare"}))
    text = PageOutline(matches.parts(reading_of(tmp_path / "run"))).text
    assert "often" in text and "rare" not in text


def test_outcomes_add_up_over_time(tmp_path: Path) -> None:
    ring = WrittenRing(tmp_path / "run")
    for outcome in ("defeat", "defeat", "tie", "aborted", "victory") * 40:
        ring.bot.write(match(outcome, seconds=1.0))
    words = PageOutline(matches.parts(reading_of(tmp_path / "run"))).chart("Outcomes")
    shares = {name: int(share) for name, share in re.findall(r"(\w+) (\d+)%", words)}
    assert shares == pytest.approx({"won": 20, "drawn": 20, "lost": 40, "aborted": 20}, abs=6)
    assert sum(shares.values()) == pytest.approx(100, abs=2)


def test_outcomes_of_training_are_won_drawn_and_lost(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    run.iterate({"based": 0.25}, count=40)
    page = PageOutline(matches.parts(reading_of(tmp_path / "run")))
    assert "won 25%; lost 75%" in page.chart("Outcomes")
    assert "based 25% 22% to 28% of 800" in page.text


def test_reward_terms_are_stacked_and_a_bot_says_that_it_has_none(tmp_path: Path) -> None:
    runs = unpacked(tmp_path, "arena", "ring")
    arena = PageOutline(matches.parts(reading_of(runs / "arena")))
    assert "result" in arena.chart("What rewards are made of")
    names = [have["data-name"] for _, have in arena.tags if have.get("class") == "total"]
    assert names == ["return"]
    ring = PageOutline(matches.parts(reading_of(runs / "ring")))
    assert "not what each was for" in ring.text


@pytest.mark.parametrize("kind", ["host", "memory", "population", "shadow"])
def test_runs_of_every_kind_have_the_page(tmp_path: Path, kind: str) -> None:
    page = PageOutline(matches.parts(reading_of(unpacked(tmp_path, kind) / kind)))
    assert page.keys and page.text


def test_hostile_tags_and_opponents_stay_text(tmp_path: Path) -> None:
    pages = []
    for run, text in (("hostile", HOSTILE), ("harmless", "x" * len(HOSTILE))):
        ring = WrittenRing(tmp_path / run)
        for number in range(80):
            tags = {"opponent": text + str(number % 2), text: text + str(number % 3)}
            ring.bot.write(match("victory" if number % 3 else "tie", tags=tags))
        pages.append(PageOutline(matches.parts(reading_of(tmp_path / run))))
    hostile, harmless = pages
    assert [name for name, _ in hostile.tags] == [name for name, _ in harmless.tags]
    assert [list(have) for _, have in hostile.tags] == [list(have) for _, have in harmless.tags]
    assert "<script>" in hostile.text and "script" not in {name for name, _ in hostile.tags}


def test_the_newest_matches_are_read_once_each_and_as_they_come(tmp_path: Path) -> None:
    ring = WrittenRing(tmp_path / "run")
    for _ in range(50):
        ring.bot.write(match("victory", tags={"opponent": "a"}))
    (journal,) = ring.folder.journal.glob("bot*")
    line = journal.stat().st_size // 51
    recent = RecentMatches(ring.folder.journal, newest_bytes=10 * line).read_on()
    assert 8 <= recent.matches <= 10, "from the end of the journal, whole lines alone"
    before = recent.matches
    ring.bot.write(match("defeat", tags={"opponent": "a"}))
    ring.bot.write(match("aborted", tags={"opponent": "a"}))
    assert recent.read_on().all == {"policy": (before, before + 1)}
    assert recent.by_opponent()["a"].weight == before + 1
