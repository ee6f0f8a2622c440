"""A machine that does not keep up with its run, and one that does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from walk.power import UnsyncedDisk
from walk.toys import SetClock, episode, open_run, settings, spool_of

from understudy.core import files
from understudy.doctor import evidence
from understudy.doctor.machine import Machine, read_machine
from understudy.registry.run_folder import RunFolder
from understudy.supervise.lock import learner_lock
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Journal
from understudy.telemetry.status import Status

from .written_runs import WrittenTraining, found

GIB = 2**30
ELSEWHERE = 2**31 - 1
"""A process of another machine: no such one is here."""


@pytest.fixture(autouse=True)
def unsynced() -> Iterator[None]:
    with files.using(UnsyncedDisk()):
        yield


class Bot:
    """A run folder with the journal of a bot, its matches and their episodes."""

    def __init__(self, root: Path, **config: Any) -> None:
        self.clock = SetClock()
        self.folder: RunFolder = open_run(root, settings(**config), self.clock)
        self.spool = spool_of(self.folder)
        self.journal = Journal(self.folder.journal, "bot", self.clock)
        self.journal.write(ev.BotStarted(pid=1, mode="learn", learner="process", version=0))
        self.journal.write(ev.LearnerStarted(pid=1, version=0, pending=0))
        self.played = 0

    def play(self, matches: int, *, decision_us: tuple[float, float] = (50.0, 90.0)) -> None:
        for _ in range(matches):
            self.clock.advance(0.1)
            self.played += 1
            name = f"m{self.played}"
            self.spool.put(episode(name, finished_at=self.clock.time()))
            self.journal.write(
                ev.MatchFinished(
                    id=name, outcome="victory", decisions=3, reward=3.0, version=0, seconds=0.1,
                    saved=True, decision_us=decision_us, mode="learn",
                )
            )  # fmt: skip

    def learn(self) -> None:
        """From all that waits."""
        names = self.spool.pending()
        for name in names:
            self.spool.archive(name)
        self.journal.write(
            ev.VersionPublished(version=1, parent=None, matches=len(names), promoted=True)
        )

    def checks(self) -> set[str]:
        """Of the resources; these tiny matches are sick in other ways."""
        names = set(found(self.folder))
        return names & {
            "learner-starved", "slow-decisions", "memory-grows", "disk-nearly-full",
            "folder-too-large", "memory-short",
        }  # fmt: skip


@pytest.mark.parametrize(("cpu_s", "sick"), [(1.0, True), (8.0, False)])
def test_a_learner_without_the_processor_is_starved(
    tmp_path: Path, cpu_s: float, *, sick: bool
) -> None:
    bot = Bot(tmp_path / "run")
    bot.journal.write(ev.LearnerStopped(reason="stopped", pending=0, cpu_s=cpu_s, wall_s=10.0))
    bot.journal.write(ev.LearnerStarted(pid=ELSEWHERE, version=0, pending=0))
    with learner_lock(bot.folder.root):  # it runs
        bot.play(90)
        assert bot.checks() == set(), "nine batches may wait"
        bot.play(60)
        assert bot.checks() == ({"learner-starved"} if sick else set())
        bot.learn()
        assert bot.checks() == set()


def test_the_share_of_a_learner_that_runs_is_read(tmp_path: Path) -> None:
    machine = read_machine(tmp_path, Status(learner_pid=os.getpid()))
    assert machine.learner_memory is not None and machine.learner_memory > 2**20
    assert machine.learner_cpu_share is not None and machine.learner_cpu_share > 0.0


@pytest.mark.parametrize(
    ("then", "now", "sick"),
    [
        ((50.0, 90.0), (60.0, 2_000.0), False),
        ((50.0, 90.0), (50.0, 30_000.0), True),
        ((200.0, 400.0), (900.0, 2_000.0), True),
    ],
)
def test_slow_decisions_are_found(
    tmp_path: Path, then: tuple[float, float], now: tuple[float, float], *, sick: bool
) -> None:
    bot = Bot(tmp_path / "run")
    bot.play(60, decision_us=then)
    bot.play(60, decision_us=now)
    bot.learn()
    assert ("slow-decisions" in bot.checks()) is sick


@pytest.mark.parametrize(("grows", "sick"), [(True, True), (False, False)])
def test_memory_that_grows_is_found(tmp_path: Path, *, grows: bool, sick: bool) -> None:
    run = WrittenTraining(tmp_path / "run")
    for number in range(1, 300):
        memory = 500.0 + 10.0 * number if grows else min(500.0 + 10.0 * number, 900.0)
        run.journal.write(
            ev.VersionPublished(
                version=number, parent=None, matches=1, promoted=True, memory_mb=memory
            )
        )
    assert ("memory-grows" in run.found()) is sick


HEALTHY = Machine(
    disk_free=50 * GIB,
    disk_total=100 * GIB,
    memory_available=8 * GIB,
    memory_total=16 * GIB,
    learner_memory=GIB,
)


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({}, None),
        ({"disk_free": GIB // 8}, "disk-nearly-full"),
        ({"disk_free": 60 * GIB, "disk_total": 4_000 * GIB}, None),
        ({"memory_available": GIB // 4}, None),
        ({"memory_available": GIB // 4, "learner_memory": 6 * GIB}, "memory-short"),
        ({"learner_memory": 12 * GIB}, "memory-short"),
        ({"memory_total": None, "memory_available": None, "learner_memory": None}, None),
        ({"folders": {"versions": 6 * GIB}}, "folder-too-large"),
    ],
)
def test_a_machine_without_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], check: str | None
) -> None:
    machine = msgspec.structs.replace(HEALTHY, **changes)
    monkeypatch.setattr(evidence, "read_machine", lambda root, status: machine)
    run = WrittenTraining(tmp_path / "run")
    assert set(run.found()) == ({check} if check else set())


def test_this_machine_is_read(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / "one.jsonl").write_bytes(b"x" * 1000)
    machine = read_machine(tmp_path, Status())
    assert machine.disk_free is not None and 0 < machine.disk_free <= (machine.disk_total or 0)
    assert machine.folders == {"journal": 1000} and machine.learner_memory is None
