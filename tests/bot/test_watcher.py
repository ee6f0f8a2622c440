"""The watcher adopts what is whole, says once what is not, and never dies of it."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest

from understudy.bot.watcher import Watcher
from understudy.core.clock import SystemClock
from understudy.core.spaces import Discrete
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import encode
from understudy.registry.pointers import Pointers
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest

from .minds import FEATURES, SMALL, lively, publish


class Stage:
    """A watcher, and what it told."""

    def __init__(self, root: Path) -> None:
        spec = PolicySpec(FEATURES, Discrete(("left", "right")), SMALL)
        self.folder = RunFolder.open(root, spec=spec, config=None, clock=SystemClock())
        self.adopted: list[int] = []
        self.problems: list[str] = []
        self.ticks = threading.Semaphore(0)
        self.watcher = Watcher(
            self.folder,
            adopt=self._adopt,
            problem=self.problems.append,
            tick=self.ticks.release,
            playing=0,
        )

    def _adopt(self, policy: Policy) -> None:
        self.adopted.append(policy.version)


def test_it_follows_the_champion_and_nothing_else(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.watcher.look()
    publish(stage.folder, 1)
    publish(stage.folder, 2, champion=False)
    stage.watcher.look()
    stage.watcher.look()
    assert stage.adopted == [1]
    stage.folder.pointers.move("champion", 2, by="test")
    stage.watcher.look()
    stage.folder.pointers.pin("champion", 1, by="rollback")
    stage.watcher.look()
    assert stage.adopted == [1, 2, 1]
    assert not stage.problems


def test_a_damaged_version_is_said_once_and_the_next_one_plays(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    publish(stage.folder, 1)
    weights = stage.folder.versions.folder(1) / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    for _ in range(3):
        stage.watcher.look()
    assert len(stage.problems) == 1 and "version 1" in stage.problems[0]
    stage.folder.pointers.move("champion", 7, by="test")  # a version that is not there
    for _ in range(3):
        stage.watcher.look()
    assert len(stage.problems) == 2 and "version 7" in stage.problems[1]
    publish(stage.folder, 8)
    stage.watcher.look()
    assert stage.adopted == [8]


def test_a_version_of_another_run_is_not_played(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "here")
    other = RunFolder.open(
        tmp_path / "there",
        spec=PolicySpec(FEATURES, Discrete(("up", "down")), SMALL),
        config=None,
        clock=SystemClock(),
    )
    manifest = Manifest(number=1, parent=None, created_at=0.0, spec=other.spec)
    stage.folder.versions.commit(manifest, {WEIGHTS: encode(lively(other, 1))})
    stage.folder.pointers.move("champion", 1, by="test")
    stage.watcher.look()
    assert stage.adopted == []
    assert "another run" in stage.problems[0]


def test_trouble_with_the_folder_does_not_end_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path)
    publish(stage.folder, 1)
    with monkeypatch.context() as patch:

        def fail(self: Pointers, name: str) -> None:
            raise PermissionError(13, "Permission denied")

        patch.setattr(Pointers, "read", fail)
        for _ in range(3):
            stage.watcher.look()
    assert len(stage.problems) == 1 and "Permission denied" in stage.problems[0]
    stage.watcher.look()
    assert stage.adopted == [1]


def test_a_tick_that_fails_does_not_end_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, fails = Stage(tmp_path), iter(range(3))
    recovered = threading.Event()

    def tick() -> None:
        stage.ticks.release()
        if next(fails, None) is not None:
            raise OSError(errno.EMFILE, "Too many open files")
        if stage.adopted:
            recovered.set()

    monkeypatch.setattr(stage.watcher, "_tick", tick)
    stage.watcher.start()
    assert stage.ticks.acquire(timeout=20) and stage.ticks.acquire(timeout=20)
    publish(stage.folder, 1)
    assert recovered.wait(20)
    stage.watcher.stop()
    assert len(stage.problems) == 1 and "Too many open files" in stage.problems[0]


def test_the_same_trouble_is_said_again_once_it_was_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, ticks, done = Stage(tmp_path), iter("!!.!"), threading.Event()

    def tick() -> None:
        now = next(ticks, None)
        if now == "!":
            raise RuntimeError("no")
        if now is None:
            done.set()

    monkeypatch.setattr(stage.watcher, "_tick", tick)
    stage.watcher.start()
    assert done.wait(20)
    stage.watcher.stop()
    assert len(stage.problems) == 2


def test_its_thread_looks_and_ticks(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    publish(stage.folder, 1)
    stage.watcher.start()
    assert stage.ticks.acquire(timeout=20) and stage.ticks.acquire(timeout=20)
    stage.watcher.stop()
    assert stage.adopted == [1]
