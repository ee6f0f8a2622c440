"""Learners and spools in trouble, and quiet ones beside them."""

from __future__ import annotations

import os
from pathlib import Path

from understudy.relay.local import LocalState
from understudy.supervise.lock import learner_lock
from understudy.telemetry import events as ev

from .ring_runs import WrittenRing
from .written_runs import found


def _files(run: WrittenRing, folder: str, count: int) -> None:
    (run.folder.root / folder).mkdir(exist_ok=True)
    for number in range(count):
        (run.folder.root / folder / f"{number:020d}-x.npz").write_bytes(b"")


def test_experience_that_waits_without_a_version_is_found(tmp_path: Path) -> None:
    run = WrittenRing(tmp_path / "run")
    run.learner.write(ev.LearnerStarted(pid=1, version=0, pending=0))
    run.matches(5, won=0.5)
    assert found(run.folder) == {}
    _files(run, "buffer", 3)
    for path in (run.folder.root / "buffer").iterdir():
        os.utime(path, (run.clock.now, run.clock.now))
    run.clock.now += 600.0
    with learner_lock(run.folder.root):  # it runs
        assert found(run.folder)["stalled"].weight == "problem"


def test_a_clock_of_its_own_is_no_stall(tmp_path: Path) -> None:
    """Sessions in lockstep count seconds by themselves, from a day in 2023 on."""
    run = WrittenRing(tmp_path / "run")
    run.learner.write(ev.LearnerStarted(pid=1, version=0, pending=0))
    run.matches(5, won=0.5)
    _files(run, "buffer", 3)
    with learner_lock(run.folder.root):
        assert "stalled" not in found(run.folder.root)


def test_a_learner_that_dies_again_and_again_is_found(tmp_path: Path) -> None:
    run = WrittenRing(tmp_path / "run")
    for deaths in range(1, 4):
        run.learner.write(ev.LearnerDied(code=-9, restart_in_s=1.0))
        findings = found(run.folder)
        assert ("learner-died" in findings) is (deaths == 3)
    assert findings["learner-died"].weight == "problem"
    run.batches(1)
    assert found(run.folder)["learner-died"].weight == "warning"
    run.batches(299)
    assert found(run.folder)["learner-died"].weight == "note"


def test_episodes_that_pile_up_are_found(tmp_path: Path) -> None:
    run = WrittenRing(tmp_path / "run")
    run.learner.write(ev.LearnerStarted(pid=1, version=0, pending=0))
    run.learner.write(ev.LearnerStopped(reason="asked", pending=0))
    _files(run, "buffer", 199)
    assert found(run.folder) == {}
    _files(run, "buffer", 200)
    finding = found(run.folder)["files-piling-up"]
    assert finding.weight == "warning" and "understudy learner --run" in finding.next_step
    LocalState(run.folder.root, "s3://bucket/game", "player")
    finding = found(run.folder)["files-piling-up"]
    assert "200 wait to be sent" in finding.title and "understudy relay" in finding.next_step


def test_a_quarantine_that_fills_is_found(tmp_path: Path) -> None:
    run = WrittenRing(tmp_path / "run")
    run.matches(20, won=0.5)
    for number in range(5):
        assert found(run.folder) == {}
        run.learner.write(ev.EpisodeQuarantined(name=f"{number}.npz", reason="torn"))
    finding = found(run.folder)["quarantine-fills"]
    assert finding.weight == "warning" and "torn" in finding.evidence[0]


def test_episodes_that_are_too_old_are_found(tmp_path: Path) -> None:
    run = WrittenRing(tmp_path / "run")
    run.learner.write(ev.EpisodesArchived(count=100, too_old=10))
    assert found(run.folder) == {}
    run.learner.write(ev.EpisodesArchived(count=40, too_old=30))
    assert "29%" in found(run.folder)["stale-experience"].title


def test_experience_that_is_many_versions_old_is_found(tmp_path: Path) -> None:
    run = WrittenRing(tmp_path / "run", {"learner.max_version_lag": 20})
    run.batches(10, version_lag={"4-7": 80})
    assert found(run.folder) == {}
    run.batches(30, version_lag={"32-63": 80})
    assert "25 versions old" in found(run.folder)["stale-experience"].evidence[0]
    run.folder.promotion.mkdir()  # a champion plays for long, and its age says nothing
    assert "stale-experience" not in found(run.folder)


def test_matches_that_could_not_be_saved_are_found(tmp_path: Path) -> None:
    run = WrittenRing(tmp_path / "run")
    unsaved = ev.MatchFinished(
        id="x", outcome="defeat", decisions=1, reward=0.0, version=0, seconds=1.0, saved=False
    )
    run.bot.write(unsaved)
    assert found(run.folder)["unsaved-matches"].weight == "warning"
    run.matches(600, won=0.5)
    finding = found(run.folder)["unsaved-matches"]
    assert finding.weight == "note" and finding.evidence == ("Of 601 matches.",)
    run.bot.write(unsaved)
    assert found(run.folder)["unsaved-matches"].weight == "warning", "it goes on"
