"""`learner pause`: no batch and no version until `learner resume`, across restarts; no loss."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli.calling import understudy
from learner.toy_items import ToyItems, segment
from learner.toy_items import continuous as behind_a_server
from learner.toy_items import settings as served_settings
from walk.toys import SetClock, episode, open_run, settings, spool_of
from walk.toys import learner as ring

from understudy.core.pause import PAUSE, read_pause
from understudy.learner.background import BackgroundLearner
from understudy.registry.run_folder import RunFolder
from understudy.run.learner import _loop
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Journal, Reader


class Steps(threading.Event):
    """A wake-up that takes the next step of a test whenever the learner waits for it."""

    def __init__(self, steps: Callable[[], Iterator[None]]) -> None:
        super().__init__()
        self.stop = threading.Event()
        self._steps = steps()

    def wait(self, timeout: float | None = None) -> bool:
        if next(self._steps, self) is self:
            self.stop.set()
        return True


def work(
    folder: RunFolder, learner: BackgroundLearner[Any], steps: Callable[[], Iterator[None]]
) -> None:
    journal = Journal(folder.journal, "learner", folder.clock)
    wake = Steps(steps)
    _loop(folder.root, learner, journal, wake, wake.stop, tells_idle=False)


def switched(folder: RunFolder) -> list[str]:
    kinds = ev.LearnerPaused | ev.LearnerResumed
    told = [entry.e for entry in Reader(folder.journal).new()]
    return [type(one).__name__ for one in told if isinstance(one, kinds)]


@pytest.mark.parametrize("served", [False, True])
def test_a_paused_learner_takes_nothing_until_it_may_go_on(tmp_path: Path, served: bool) -> None:
    values = {"learner__publish_interval_s": 9.0}
    clock = SetClock()
    folder = open_run(tmp_path, (served_settings if served else settings)(**values), clock)
    spool = spool_of(folder)

    def made() -> BackgroundLearner[Any]:
        return behind_a_server(folder, ToyItems()) if served else ring(folder)

    def play(*numbers: int) -> None:
        for number in numbers:
            spool.put(segment(number) if served else episode(str(number)))

    learner = made()
    published: list[list[int]] = []

    def steps() -> Iterator[None]:
        play(4, 5)
        clock.advance(1.0)
        yield  # it learns, and may not publish yet
        published.append(folder.versions.numbers())
        assert understudy("learner", "pause", tmp_path).code == 0
        yield  # it follows
        published.append(folder.versions.numbers())
        play(6, 7)
        clock.advance(99.0)
        yield
        published.append(folder.versions.numbers())

    play(1, 2)
    work(folder, learner, steps)
    published.append(folder.versions.numbers())
    assert published == [[1], [1, 2], [1, 2], [1, 2]], "what was learned is published, then no more"
    assert learner.pending() == 2 and switched(folder) == ["LearnerPaused"]

    again = made()  # another process, later

    def resumed() -> Iterator[None]:
        assert again.version == 2 and again.pending() == 2
        assert understudy("learner", "--run", tmp_path, "resume").code == 0
        yield

    work(folder, again, resumed)
    assert again.pending() == 0 and again.total_matches == 6
    assert switched(folder) == ["LearnerPaused", "LearnerPaused", "LearnerResumed"]


def test_a_file_that_cannot_be_read_pauses_nothing(tmp_path: Path) -> None:
    assert not read_pause(tmp_path).paused
    (tmp_path / PAUSE).write_bytes(b"{")
    assert not read_pause(tmp_path).paused


def test_only_a_run_is_paused_and_training_is_stopped_instead(tmp_path: Path) -> None:
    called = understudy("learner", "pause", tmp_path)
    assert called.code == 2 and "not a run folder" in called.err
    folder = open_run(tmp_path / "run", settings(), SetClock())
    journal = Journal(folder.journal, "train", folder.clock)
    journal.write(ev.MatchesTrained(steps=100, matches=1, results={}))
    called = understudy("learner", "pause", folder.root)
    assert called.code == 2 and "a run of `understudy train`, which has no pause" in called.err
    assert not (folder.root / PAUSE).exists()
