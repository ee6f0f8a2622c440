"""Promotion that cannot come to a verdict, and promotion that can."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from promotion.scripted import ScriptedRun
from walk.power import UnsyncedDisk

from understudy.core import files
from understudy.gates.promotion.records import Ordered
from understudy.telemetry import events as ev

from .written_runs import found


@pytest.fixture(autouse=True)
def unsynced() -> Iterator[None]:
    with files.using(UnsyncedDisk()):
        yield


def test_a_test_that_takes_days_at_this_pace_is_found(tmp_path: Path) -> None:
    run = ScriptedRun(tmp_path / "run")
    run.nominate(1)
    run.play(60, {0: 0.5, 1: 0.55})  # ten minutes each
    finding = found(run.folder)["canary-cannot-conclude"]
    assert "version 1" in finding.title.lower()
    assert any("matches an hour" in line for line in finding.evidence)
    assert "Declare a score" in finding.next_step


def test_the_same_test_at_a_quick_pace_is_healthy(tmp_path: Path) -> None:
    run = ScriptedRun(tmp_path / "run")
    run.nominate(1)
    for _ in range(60):
        order, assigned = run.assign()
        run.clock.advance(1.0)
        won = bool(run.rng.random() < (0.55 if assigned.version else 0.5))
        run.resolve(order, assigned, won=won, tags={})
    assert found(run.folder) == {}


def test_tests_that_end_without_a_verdict_again_and_again_are_noted(tmp_path: Path) -> None:
    run = ScriptedRun(tmp_path / "run", promotion__long=30, promotion__longest=30, seed=4)
    for version in range(1, 9):
        run.nominate(version)
        run.play(31, dict.fromkeys(range(10), 0.5), until="never")
    ended = [one.kind for one in run.promotion.verdicts if one.kind != "nominated"]
    checks = found(run.folder)
    assert ended[-3:] == ["undecided"] * 3
    assert checks["tests-end-undecided"].weight == "note"


def test_versions_that_are_never_tried_are_found(tmp_path: Path) -> None:
    run = ScriptedRun(tmp_path / "run")
    run.commit(1)
    run.play(599, {0: 0.5})
    assert "versions-never-judged" not in found(run.folder)
    run.play(1, {0: 0.5})
    finding = found(run.folder)["versions-never-judged"]
    assert "600 matches were assigned" in finding.evidence[0] and "Why: " in finding.evidence[1]


def test_paused_promotion_is_why_no_version_is_tried(tmp_path: Path) -> None:
    run = ScriptedRun(tmp_path / "run")
    run.commit(1)
    run.promotion.order(Ordered(order="pause", version=0, words="for the weekend"))
    run.play(600, {0: 0.5})
    finding = found(run.folder)["versions-never-judged"]
    assert finding.certainty == "certain" and "understudy promotion resume" in finding.next_step


def test_a_version_that_was_tried_was_judged(tmp_path: Path) -> None:
    run = ScriptedRun(tmp_path / "run")
    run.nominate(1)
    run.play(600, {0: 0.7, 1: 0.3}, until="harmful")
    run.play(600, {0: 0.7})
    assert "versions-never-judged" not in found(run.folder)


@pytest.mark.parametrize(("chance", "sick"), [(0.1, True), (0.7, False)])
def test_practice_that_is_suspended_again_and_again_is_found(
    tmp_path: Path, chance: float, *, sick: bool
) -> None:
    run = ScriptedRun(tmp_path / "run", promotion__practice_share=0.3)
    run.commit(1)
    for _ in range(1_400):
        name = run.rng.bytes(8).hex()
        order, assigned = run.promotion.assign(name, {}, float(run.rng.random()), practice=1)
        run.clock.advance(1.0)
        won = bool(run.rng.random() < (chance if assigned.version else 0.7))
        run.promotion.resolve(order, float(won), "finished")
    assert ("practice-suspended" in found(run.folder)) is sick


def test_thousands_of_versions_that_serve_unjudged_are_noted(tmp_path: Path) -> None:
    run = ScriptedRun(tmp_path / "run")
    (run.folder.root / "promotion").rename(tmp_path / "elsewhere")
    (run.folder.root / "ledger").mkdir()
    run.journal.write(ev.BotStarted(pid=1, mode="serve", learner="process", version=0))
    for number in range(1, 5_000):
        run.journal.write(
            ev.VersionPublished(version=number, parent=None, matches=1, promoted=True)
        )
    assert found(run.folder) == {}
    run.journal.write(ev.VersionPublished(version=5_000, parent=None, matches=1, promoted=True))
    assert found(run.folder)["versions-never-judged"].weight == "note"
