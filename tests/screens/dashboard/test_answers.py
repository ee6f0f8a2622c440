"""The first questions of a person: is it learning, is it healthy, who plays and why?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from promotion.scripted import ScriptedRun
from run.dashboards import unpacked

from understudy.doctor.findings import Finding, section
from understudy.run import controls
from understudy.screens.dashboard.answers import health, learning, notes_of, playing
from understudy.screens.dashboard.page import RunReading
from understudy.screens.dashboard.pages import runs
from understudy.screens.report.summary import key_figures
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry
from understudy.telemetry.promotion_status import PracticeStatus, PromotionStatus
from understudy.telemetry.trends import Trend

from .readings import reading_of


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> RunReading:
    return reading_of(unpacked(tmp_path_factory.mktemp("runs"), "ring") / "ring")


def won(rate: Callable[[int], bool], matches: int = 400) -> Trend:
    trend = Trend()
    for match in range(matches):
        trend.add(float(match), float(rate(match)), match)
    return trend


def having(reading: RunReading, trend: Trend, *, ended: bool = False) -> RunReading:
    """The run with another course of its win rate, in the middle of a session or after it."""
    last = (
        ev.BotStopped(matches=1)
        if ended
        else ev.BotStarted(pid=1, mode="learn", version=1, learner="process")
    )
    view = msgspec.structs.replace(
        reading.view, trends={"win_rate": trend}, recent=(Entry(1.0, "bot", last),)
    )
    return replace(reading, view=view, findings=())


def finding(check: str, weight: str = "problem") -> Finding:
    return Finding(
        check=check, weight=weight, certainty="likely", title="It is so.", evidence=(),  # type: ignore[arg-type]
        next_step="Do this.", link=section(check),
    )  # fmt: skip


def test_a_win_rate_that_rises_is_learning_and_one_that_falls_is_not(ring: RunReading) -> None:
    rising = learning(having(ring, won(lambda match: match % 400 > 200 or match % 4 == 0)))
    assert (rising.short, rising.tone) == ("Yes", "good")
    assert "100% of their last 80" in rising.words
    falling = learning(having(ring, won(lambda match: match < 200 or match % 4 == 0)))
    assert (falling.short, falling.tone) == ("No, it got worse", "problem")
    level = learning(having(ring, won(lambda match: match % 2 == 0)))
    assert (level.short, level.tone) == ("Not yet: it holds its level", "note")


def test_a_session_that_has_ended_learned(ring: RunReading) -> None:
    rising = won(lambda match: match > 200)
    assert learning(having(ring, rising, ended=True)).short == "Yes, it learned"
    assert learning(having(ring, rising)).short == "Yes"


def test_few_matches_say_nothing(ring: RunReading) -> None:
    few = learning(having(ring, won(lambda match: match > 10, matches=20)))
    assert few.tone == "note"


def test_what_the_doctor_found_about_learning_comes_first(ring: RunReading) -> None:
    rising = having(ring, won(lambda match: match > 200))
    sick = learning(replace(rising, findings=(finding("wrong-sign"),)))
    assert (sick.short, sick.tone, sick.words) == ("No", "problem", "It is so.")
    fallen = learning(replace(rising, findings=(finding("went-backwards", "warning"),)))
    assert (fallen.short, fallen.tone) == ("No, it got worse", "warning")


def test_health_is_the_worst_finding() -> None:
    assert health(None).short == "Being examined"
    assert health(()).short == "Yes"
    notes = health((finding("a", "note"), finding("b", "note")))
    assert (notes.short, notes.tone) == ("Yes, with 2 notes", "good")
    assert notes.words == "It is so. It is so."
    many = health(tuple(finding("a", "note") for _ in range(5)))
    assert many.words.endswith("2 more below.")


def test_what_the_bot_noted_and_suspended_practice_are_named(ring: RunReading) -> None:
    practice = PracticeStatus(
        version=7, share=0.0, suspended=42, mean=0.63, incumbent_mean=0.74,
    )  # fmt: skip
    status = msgspec.structs.replace(
        ring.status,
        last_note="bot: 110 matches wait to be learned from. To wait: --pace learner",
        promotion=PromotionStatus(incumbent=5, practice=practice),
    )
    answer = health((), notes_of(status))
    assert (answer.short, answer.tone) == ("Yes, with 2 notes", "good")
    assert "Noted: 110 matches wait to be learned from." in answer.words
    assert "worse (63% lately) than version 5 (74%)." in answer.words


def test_a_finding_comes_before_notes() -> None:
    several = health((finding("a"), finding("b", "warning")))
    assert (several.short, several.tone) == ("No", "problem")
    assert "1 more finding" in several.words


def scripted(folder: Path, **config: object) -> ScriptedRun:
    return ScriptedRun(
        folder, seed=1, promotion__alpha=0.3, promotion__holdout=0.0, **config
    )  # fmt: skip


def test_a_champion_that_beats_the_rules_is_learning_whatever_others_did_first(
    tmp_path: Path,
) -> None:
    run = scripted(tmp_path / "auto")
    run.nominate(3)
    run.play(300, {0: 0.2, 3: 0.9}, until="promoted")
    reading = reading_of(run.folder.root)
    level = msgspec.structs.replace(
        reading.view, trends={"win_rate": won(lambda match: match % 2 == 0)}
    )
    answer = learning(replace(reading, view=level, findings=()))
    assert (answer.short, answer.tone) == ("Yes, it beats the rules", "good")
    assert answer.words.startswith("Version 3 scores ")
    assert ", the rules " in answer.words and "a tie counts half" in answer.words
    assert "50% of their first 80 matches" in answer.why, "first against now is the second line"


def test_a_champion_that_a_person_approved_is_not_proven(tmp_path: Path) -> None:
    run = scripted(tmp_path / "auto")
    run.nominate(3)
    run.play(40, {0: 0.5, 3: 0.5}, until="promoted")
    controls.order(run.folder, "approve", version=3)
    run.promotion.follow()
    run.play(60, {0: 0.5, 3: 0.5})
    assert playing(reading_of(run.folder.root)).short == "Version 3"
    assert learning(reading_of(run.folder.root)).short == "Not yet better than the rules"


def test_practice_that_rises_is_no_yes_while_the_rules_play(tmp_path: Path) -> None:
    run = scripted(tmp_path / "auto")
    run.commit(3)
    reading = reading_of(run.folder.root)
    rising = msgspec.structs.replace(
        reading.view, trends={"win_rate": won(lambda match: match > 200)}
    )
    answer = learning(replace(reading, view=rising, findings=()))
    assert answer.short == "Not yet better than the rules"
    assert "0% of their first 80" in answer.why


def test_a_test_against_the_rules_is_no_yes_before_it_is_decided(tmp_path: Path) -> None:
    run = scripted(tmp_path / "auto")
    run.nominate(3)
    run.play(6, {0: 0.5, 3: 0.5})
    assert learning(reading_of(run.folder.root)).short == "Too early to say"
    run = ScriptedRun(tmp_path / "longer", seed=1, promotion__holdout=0.0)
    run.nominate(3)
    run.play(90, {0: 0.5, 3: 0.5})
    answer = learning(reading_of(run.folder.root))
    assert answer.short == "Not yet better than the rules"
    assert answer.words.startswith("Version 3 scores ")


def test_returns_of_the_rules_are_not_told_as_those_of_versions(ring: RunReading) -> None:
    rising = Trend()
    for match in range(400):
        rising.add(float(match), match / 400 - 0.2, match)
    view = msgspec.structs.replace(ring.view, trends={"return": rising})
    learner = msgspec.structs.replace(ring.status, rules_matches=0)
    alone = msgspec.structs.replace(view, status=learner)
    answer = learning(replace(ring, view=alone, findings=()))
    assert answer.short.startswith("Yes")
    assert "The return per match was -0.1" in answer.words
    mixed = msgspec.structs.replace(ring.status, rules_matches=300)
    view = msgspec.structs.replace(view, status=mixed)
    assert "return" not in learning(replace(ring, view=view, findings=())).words


def test_the_tile_says_what_the_player_is_and_what_is_tested(tmp_path: Path) -> None:
    run = scripted(tmp_path / "auto")
    run.nominate(3)
    run.play(3, {0: 0.2, 3: 0.9})
    view = reading_of(run.folder.root).view
    assert ("Plays", "the rules", "version 3 under test") in key_figures(view, "ring")
    run.play(300, {0: 0.2, 3: 0.9}, until="promoted")
    run.nominate(4)
    run.play(3, {0: 0.2, 3: 0.9, 4: 0.5})
    tile = ("Version that plays", "3", "champion; version 4 under test")
    assert tile in key_figures(reading_of(run.folder.root).view, "ring")


def test_a_single_run_is_answered_on_the_first_page(tmp_path: Path, ring: RunReading) -> None:
    keys = [one.key for one in runs.parts([runs.RunRow("ring", ring)])]
    assert keys == ["runs", "answers"]
    assert "answers" not in [one.key for one in runs.parts([runs.RunRow("ring", ring)] * 2)]


def test_who_plays_by_evidence_and_why(tmp_path: Path) -> None:
    run = ScriptedRun(tmp_path / "auto", seed=1, promotion__alpha=0.3, promotion__holdout=0.0)
    assert playing(reading_of(run.folder.root)).short == "The rules"
    run.nominate(3)
    run.play(300, {0: 0.2, 3: 0.9}, until="promoted")
    answer = playing(reading_of(run.folder.root))
    assert answer.short == "Version 3"
    assert "better than the rules" in answer.why
