"""Experience that waits while no version comes is told; everything else is not a stall."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from understudy.core.config import Config, with_values
from understudy.core.pause import Pause
from understudy.telemetry import events as ev
from understudy.telemetry.fold import StatusFold
from understudy.telemetry.journal import Journal
from understudy.telemetry.report import describe, status_report
from understudy.telemetry.status import Folder, Folders, Patience, Status, patience, stalled
from understudy.telemetry.status_reader import StatusReader, counted

from .entries import FixedClock, at, continuous, published, started

NOON = 1_700_000_000.0
LONG = 9_000.0
WAITS = ev.WaitingForExperience(samples_per_insert=8.0)
BACK = ev.RolledBack(reason="not finite", version=23, to=23)
DIED = ev.LearnerDied(code=1, restart_in_s=1.0)
STOPPED = ev.LearnerStopped(reason="asked", pending=0)


def serving(learner: str = "process") -> ev.BotStarted:
    return ev.BotStarted(pid=1, mode="serve", learner=learner, version=0)


def seen(
    *told: tuple[float, ev.Event],
    now: float,
    oldest: float | None,
    files: int = 40,
    pause: Pause | None = None,
) -> Status:
    """Events at seconds after noon; what lies in the buffer came `oldest` seconds after noon."""
    fold = StatusFold("runs/queen", Patience(60.0, 8))
    for t, event in told:
        fold.add(at(NOON + t, event))
    waiting = Folder() if oldest is None else Folder(files, 100, NOON + oldest)
    return fold.status(Folders(buffer=waiting), NOON + now, pause)


ON = ((0.0, serving()), (5.0, started()), (100.0, published(23, 3)))
FEW = (*ON, (110.0, WAITS))


@pytest.mark.parametrize(
    ("status", "learning", "waits_s"),
    [
        # Versions come, or there is nothing to learn from.
        (seen(*ON, now=150.0, oldest=90.0), "on", 50.0),
        (seen(*ON, now=9_000.0, oldest=None), "on", 0.0),
        (seen(*ON, now=9_000.0, oldest=8_950.0), "on", 50.0),
        # Experience waits, and no version comes, whatever the learner does meanwhile.
        (seen(*ON, now=161.0, oldest=90.0), "stalled", 61.0),
        (seen(*ON, (110.0, BACK), (120.0, BACK), now=400.0, oldest=105.0), "stalled", 295.0),
        (seen(*ON, (110.0, continuous()), now=400.0, oldest=105.0), "stalled", 295.0),
        (seen(*ON, (300.0, DIED), (305.0, started()), now=400.0, oldest=90.0), "stalled", 300.0),
        (seen((0.0, serving()), now=70.0, oldest=-9_000.0), "stalled", 70.0),
        # A learner that has too little says so; with enough in the buffer that is no excuse.
        (seen(*FEW, now=LONG, oldest=105.0, files=7), "waiting for experience", LONG - 105.0),
        (seen(*FEW, now=LONG, oldest=105.0, files=8), "stalled", LONG - 105.0),
        (seen(*FEW, (120.0, BACK), now=400.0, oldest=105.0, files=2), "stalled", 295.0),
        # The night was over when it was started again.
        (seen(*ON, (8_000.0, serving()), now=8_050.0, oldest=105.0), "on", 50.0),
        # A person paused it: nothing is wrong, and time begins anew once it may go on.
        (seen(*ON, now=LONG, oldest=105.0, pause=Pause(paused=True, at=NOON)), "paused", 0.0),
        (seen(*ON, now=LONG, oldest=105.0, pause=Pause(at=NOON + LONG - 9.0)), "on", 9.0),
        (seen(*ON, now=LONG, oldest=105.0, pause=Pause(at=NOON + 140.0)), "stalled", LONG - 140.0),
        # No learner is meant to run.
        (seen((0.0, serving("off")), now=9_000.0, oldest=1.0), "off", 0.0),
        (seen(*ON, (8_000.0, serving("off")), now=9_000.0, oldest=105.0), "off", 0.0),
        (seen(*ON, (200.0, STOPPED), now=9_000.0, oldest=105.0), "off", 0.0),
        (seen(*ON, (200.0, ev.BotStopped(matches=0)), now=9_000.0, oldest=105.0), "off", 0.0),
        # One that a person started beside it is.
        (seen((0.0, serving("off")), (9.0, started()), now=100.0, oldest=1.0), "stalled", 91.0),
    ],
)  # fmt: skip
def test_a_stall_is_experience_that_waits_while_no_version_comes(
    status: Status, learning: str, waits_s: float
) -> None:
    assert status.learning == learning
    assert status.experience_waits_s == pytest.approx(waits_s)
    assert bool(stalled(status)) == (learning == "stalled")
    assert ("\nStalled     no version" in describe(status)) == (learning == "stalled")
    assert ("no version" in status_report(status)) == (learning == "stalled")


def test_it_says_since_when_how_much_waits_and_what_failed() -> None:
    collapse = ev.RolledBack(reason="collapse", version=23, to=20)
    status = seen(*ON, (105.0, collapse), (110.0, BACK), (120.0, BACK), now=400.0, oldest=105.0)
    assert (status.rollbacks, status.fruitless) == (3, 2)
    assert stalled(status) == (
        "no version since version 23, though experience has waited 4m 55s (40 episodes); "
        "training failed and was rolled back 2 times; the learner: training"
    )
    again = seen(*ON, (110.0, BACK), (130.0, published(24, 3)), now=400.0, oldest=140.0)
    assert (again.rollbacks, again.fruitless) == (1, 0)
    assert "yet, though" in stalled(seen((0.0, serving()), now=99.0, oldest=0.0, files=1))


def test_patience_is_a_minute_or_several_intervals() -> None:
    assert patience(Config()).stalled_s == 60.0
    slow = with_values(Config(), {"learner.publish_interval_s": 30.0})
    assert patience(slow).stalled_s == 150.0
    few = {"continuous.min_batch": 8, "continuous.samples_per_insert": 2.0, "learner.epochs": 4}
    assert patience(with_values(Config(), few)).batch == 16


@pytest.mark.parametrize("sizes", [True, False])
def test_the_oldest_is_told_by_its_name_or_else_by_the_file(tmp_path: Path, sizes: bool) -> None:
    assert counted(tmp_path / "none", sizes=sizes).oldest is None
    for second in (7, 3, 5):
        (tmp_path / f"{int((NOON + second) * 1e9):020d}-{'a' * 16}.npz").write_bytes(b"12")
    found = counted(tmp_path, sizes=sizes)
    assert (found.files, found.oldest) == (3, NOON + 3)
    assert found.bytes == (6 if sizes else 0)
    by_hand = tmp_path / "match.npz"
    by_hand.write_bytes(b"12")
    os.utime(by_hand, (NOON - 9, NOON - 9))
    assert counted(tmp_path, sizes=sizes).oldest == NOON - 9


def test_a_reader_of_the_run_folder_sees_it(tmp_path: Path) -> None:
    clock = FixedClock(NOON)
    (tmp_path / "journal").mkdir()
    (tmp_path / "buffer").mkdir()
    journal = Journal(tmp_path / "journal", "server", clock)
    journal.write(serving())
    (tmp_path / "buffer" / f"{int(NOON * 1e9):020d}-{'a' * 16}.npz").write_bytes(b"12")
    reader = StatusReader(tmp_path, clock, Patience(150.0, 8))
    clock.now = NOON + 149
    assert reader.read().learning == "on"
    clock.now = NOON + 151
    assert reader.read().learning == "stalled"
