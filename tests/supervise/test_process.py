"""The watchdog, with stand-ins for the learner that start fast."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from understudy.supervise import process as supervising
from understudy.supervise.process import REFUSED, LearnerProcess

OBEDIENT = "import sys\nwhile sys.stdin.buffer.read(1): pass"
DEAF = "import time\ntime.sleep(60)"


class Deaths:
    """What the watchdog reported, and a way to wait for it."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, float]] = []
        self._more = threading.Condition()

    def __call__(self, code: int, restart_in_s: float) -> None:
        with self._more:
            self.seen.append((code, restart_in_s))
            self._more.notify_all()

    def wait_for(self, count: int) -> None:
        with self._more:
            assert self._more.wait_for(lambda: len(self.seen) >= count, timeout=30)


def start(root: Path, script: str, died: Callable[[int, float], None]) -> LearnerProcess:
    (root / "logs").mkdir(exist_ok=True)
    return LearnerProcess(root, died=died, command=[sys.executable, "-S", "-c", script])


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervising, "_FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(supervising, "_FIRST_WAIT_REFUSED_S", 0.02)
    monkeypatch.setattr(supervising, "_LONGEST_WAIT_S", 0.04)


def test_it_stops_when_its_pipe_is_closed(tmp_path: Path) -> None:
    died = Deaths()
    learner = start(tmp_path, OBEDIENT, died)
    learner.wake()
    assert learner.stop(20.0) is True
    assert not learner.alive
    assert learner._process.returncode == 0
    assert died.seen == []
    learner.wake()  # too late, and no error


@pytest.mark.usefixtures("hasty")
def test_a_learner_that_dies_is_started_again_ever_later(tmp_path: Path) -> None:
    died = Deaths()
    learner = start(tmp_path, "import sys; sys.exit(7)", died)
    died.wait_for(5)
    learner.wake()
    learner.stop(20.0)
    assert died.seen[:5] == [(7, 0.01), (7, 0.02), (7, 0.04), (7, 0.04), (7, 0.04)]


@pytest.mark.usefixtures("hasty")
def test_a_learner_that_was_refused_looks_again_until_the_other_one_is_gone(
    tmp_path: Path,
) -> None:
    """The other one may be the orphan of a bot that was killed: it drains and is gone."""
    lock, up = tmp_path / "lock", tmp_path / "up"
    lock.touch()
    script = f"""
import pathlib, sys
if pathlib.Path({str(lock)!r}).exists():
    sys.exit({REFUSED})
pathlib.Path({str(up)!r}).touch()
{OBEDIENT}
"""
    died = Deaths()
    learner = start(tmp_path, script, died)
    died.wait_for(3)
    assert died.seen[:3] == [(REFUSED, 0.02), (REFUSED, 0.04), (REFUSED, 0.04)]
    lock.unlink()
    deadline = time.monotonic() + 20.0
    while not up.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert up.exists() and learner.alive
    assert learner.stop(20.0) is True


@pytest.mark.usefixtures("hasty")
def test_a_learner_that_cannot_be_started_again_is_tried_again(tmp_path: Path) -> None:
    died = Deaths()
    learner = start(tmp_path, DEAF, died)
    (tmp_path / "logs" / "learner.err").unlink()
    (tmp_path / "logs").rmdir()
    first = learner.pid
    learner._process.kill()
    died.wait_for(3)
    assert learner.pid == first
    (tmp_path / "logs").mkdir()
    deadline = time.monotonic() + 20.0
    while not learner.alive and time.monotonic() < deadline:
        time.sleep(0.01)
    assert learner.alive and learner.pid != first
    assert learner.stop(0.05) is False


def test_one_that_does_not_listen_is_ended_and_never_blocks_the_bot(tmp_path: Path) -> None:
    learner = start(tmp_path, DEAF, Deaths())
    for _ in range(70_000):  # more than a pipe holds
        learner.wake()
    assert learner.stop(0.05) is False
    assert not learner.alive


def test_impatience_ends_it_on_the_spot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = start(tmp_path, DEAF, Deaths())
    waited = learner._process.wait

    def interrupted(timeout: float | None = None) -> int:
        if timeout is not None:
            raise KeyboardInterrupt
        return waited()

    monkeypatch.setattr(learner._process, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.stop(20.0)
    assert not learner.alive


def test_what_it_says_last_is_kept(tmp_path: Path) -> None:
    learner = start(tmp_path, "import sys; sys.exit('out of ideas')", Deaths())
    learner._process.wait(20.0)
    learner.stop(20.0)
    assert "out of ideas" in (tmp_path / "logs" / "learner.err").read_text(encoding="utf-8")
