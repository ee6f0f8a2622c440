from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from understudy.telemetry import events as ev
from understudy.telemetry.journal import Journal
from understudy.telemetry.summary import status_fold
from understudy.telemetry.training_log import TrainingLog

from .entries import FixedClock, at, batch, published, started

FIRST = datetime(2026, 1, 25, 14, 30, 15).timestamp()
SECOND = datetime(2026, 1, 25, 14, 31, 10).timestamp()
EXPECTED = b"""[2026-01-25 14:30:15] Batch Training Complete
  Batch Size:      3 games
  Total Steps:     150
  Loss:            0.0456
  Processing Time: 1.12s
  Total Processed: 3 files
  Total Batches:   1
------------------------------------------------------------

[2026-01-25 14:31:10] Batch Training Complete
  Batch Size:      2 games
  Total Steps:     100
  Loss:            0.0389
  Processing Time: 0.85s
  Total Processed: 5 files
  Total Batches:   2
------------------------------------------------------------

"""


def test_blocks_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "background_training.log"
    log = TrainingLog(path)
    log.add(at(FIRST, batch(3)))
    log.add(at(FIRST, published(1, 3)))
    log.add(at(SECOND, batch(2, steps=100, loss=0.0389, seconds=0.85)))
    assert path.read_bytes() == EXPECTED


def test_totals_go_on_after_a_restart(tmp_path: Path) -> None:
    clock = FixedClock(FIRST)
    journal = Journal(tmp_path, "learner", clock)
    for event in (started(), batch(3), published(1, 3), batch(4)):  # the last one not committed
        journal.write(event)
    path = tmp_path / "log"
    log = TrainingLog(path, status_fold(tmp_path))
    log.add(at(SECOND, started(version=1)))
    assert not path.exists()
    log.add(at(SECOND, batch(4)))
    text = path.read_text(encoding="utf-8")
    assert "Total Processed: 7 files\n  Total Batches:   3\n" in text


def test_other_entries_write_nothing(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path / "log")
    log.add(at(FIRST, ev.Problem(where="x", message="y")))
    assert not (tmp_path / "log").exists()


def test_a_log_that_cannot_be_written_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = TrainingLog(tmp_path)  # a folder, not a file
    for _ in range(3):
        log.add(at(FIRST, batch()))
    assert capsys.readouterr().err.count("cannot write the training log") == 1


def test_what_is_rare_has_a_line_of_its_own(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path / "log")
    for event in (
        ev.StageChanged(steps=64, before="", after="one", reason="the first"),
        ev.StageChanged(steps=64, before="one", after="two", reason="92% of 300"),
        ev.SnapshotTaken(steps=64, name="step-64", kept=False, reason="no better", pool=3),
        ev.AgentReplaced(steps=64, agent=2, parent=5, fitness=0.1, parent_fitness=0.9),
        ev.Note(where="league", message="no snapshot yet:\x1b[2J bots are met instead"),
    ):
        log.add(at(FIRST, event))
    assert (tmp_path / "log").read_text(encoding="utf-8").split("\n\n") == [
        "[2026-01-25 14:30:15] Stage one: the first",
        "[2026-01-25 14:30:15] Stage two after one: 92% of 300",
        "[2026-01-25 14:30:15] Snapshot step-64 not kept (3 in all): no better",
        "[2026-01-25 14:30:15] Agent 2 gave way to a changed copy of agent 5",
        "[2026-01-25 14:30:15] league: no snapshot yet:\\x1b[2J bots are met instead",
        "",
    ]
