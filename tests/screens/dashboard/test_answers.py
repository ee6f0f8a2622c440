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
from understudy.screens.dashboard.answers import health, learning, playing
from understudy.screens.dashboard.page import RunReading
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry
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
    assert "100% of its last 80 matches" in rising.words
    falling = learning(having(ring, won(lambda match: match < 200 or match % 4 == 0)))
    assert (falling.short, falling.tone) == ("It got worse", "problem")
    level = learning(having(ring, won(lambda match: match % 2 == 0)))
    assert (level.short, level.tone) == ("It holds its level", "note")


def test_a_session_that_has_ended_learned(ring: RunReading) -> None:
    rising = won(lambda match: match > 200)
    assert learning(having(ring, rising, ended=True)).short == "It learned"
    assert learning(having(ring, rising)).short == "Yes"


def test_few_matches_say_nothing(ring: RunReading) -> None:
    few = learning(having(ring, won(lambda match: match > 10, matches=20)))
    assert few.tone == "note"


def test_what_the_doctor_found_about_learning_comes_first(ring: RunReading) -> None:
    rising = having(ring, won(lambda match: match > 200))
    sick = learning(replace(rising, findings=(finding("wrong-sign"),)))
    assert (sick.short, sick.tone, sick.words) == ("No", "problem", "It is so.")
    fallen = learning(replace(rising, findings=(finding("went-backwards", "warning"),)))
    assert (fallen.short, fallen.tone) == ("It got worse", "warning")


def test_health_is_the_worst_finding() -> None:
    assert health(None).short == "Being examined"
    assert health(()).short == "Yes"
    assert health((finding("a", "note"),)).tone == "good"
    several = health((finding("a"), finding("b", "warning")))
    assert (several.short, several.tone) == ("No", "problem")
    assert "1 more finding" in several.words


def test_who_plays_by_evidence_and_why(tmp_path: Path) -> None:
    run = ScriptedRun(tmp_path / "auto", seed=1, promotion__alpha=0.3, promotion__holdout=0.0)
    assert playing(reading_of(run.folder.root)).short == "The rules"
    run.nominate(3)
    run.play(300, {0: 0.2, 3: 0.9}, until="promoted")
    answer = playing(reading_of(run.folder.root))
    assert answer.short == "Version 3"
    assert "better than the rules" in answer.why
