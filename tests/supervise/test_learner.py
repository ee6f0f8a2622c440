"""The real learner beside a real bot: woken, killed, orphaned, doubled."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest

from understudy import Config, Mlp, Understudy
from understudy.core.clock import SystemClock
from understudy.core.config import with_values
from understudy.run.learner import LOCK
from understudy.supervise.process import REFUSED, LearnerProcess
from understudy.telemetry import events as ev
from understudy.telemetry.fold import StatusReader
from understudy.telemetry.journal import Reader
from understudy.telemetry.status import Status

QUICK = with_values(
    Config(),
    {
        "learner.niceness": 0,
        "learner.publish_interval_s": 0.0,
        "learner.gather_s": 0.0,
        "learner.batch_matches": 2,
        "learner.replay_matches": 2,
        "report.status_every_s": 0,
        "report.statistics_every_matches": 0,
    },
)


def mind(root: Path, learner: Literal["process", "thread", "off"]) -> Understudy:
    return Understudy.open(
        root,
        features=("a", "b"),
        actions=("x", "y", "z"),
        mode="learn",
        learner=learner,
        network=Mlp((8,)),
        config=QUICK,
        seed=1,
    )


def play(bot: Understudy) -> None:
    with bot.match() as match:
        for step in range(20):
            action = match.decide([step, 1.0])
            match.reward(1.0 if action == "x" else -1.0)
        match.finish("tie")


def until(holds: Callable[[], Any], *, within_s: float = 60.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)


def status(root: Path) -> Status:
    return StatusReader(root, SystemClock()).read()


def told(root: Path, kind: type) -> list[Any]:
    return [entry.e for entry in Reader(root / "journal").new() if isinstance(entry.e, kind)]


def test_killed_it_comes_back_and_play_goes_on(tmp_path: Path) -> None:
    with mind(tmp_path, "process") as bot:
        learner = bot._learner
        assert isinstance(learner, LearnerProcess)
        play(bot)
        until(lambda: bot.version == 1 and status(tmp_path).episodes.archived == 1)
        first = learner.pid
        os.kill(first, signal.SIGKILL)
        play(bot)
        until(lambda: learner.pid != first)
        play(bot)
        until(lambda: bot.folder.versions.numbers()[-1] >= 2)
    died = told(tmp_path, ev.LearnerDied)
    assert died == [ev.LearnerDied(code=-signal.SIGKILL, restart_in_s=0.5)]
    now = status(tmp_path)
    assert now.episodes.written == now.episodes.ingested == now.episodes.archived == 3
    assert now.buffer_file_count == 0
    assert now.learner_deaths == 1 and now.learner == "stopped"


def test_it_is_woken_at_once_and_keeps_to_one_core_and_to_itself(tmp_path: Path) -> None:
    with mind(tmp_path, "process") as bot:
        play(bot)
        until(lambda: bot.version == 1)
        command = [sys.executable, "-m", "understudy", "learner", "--run", str(tmp_path)]
        second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert second.returncode == REFUSED
        assert second.stderr.count("\n") == 1
        assert "another learner works on this run folder" in second.stderr
        took = []
        for _ in range(7):
            before = bot.version
            began = time.monotonic()
            play(bot)
            until(lambda before=before: bot.version > before)  # type: ignore[misc]
            took.append(time.monotonic() - began)
        # Whoever waits for the next look at the spool, once a second, takes half of one on average.
        assert statistics.median(took) < 0.5, took
        until(lambda: bot.version >= 8)
    (stopped,) = told(tmp_path, ev.LearnerStopped)
    assert stopped.reason == "stopped" and stopped.pending == 0
    assert stopped.cpu_s <= 1.1 * stopped.wall_s
    assert status(tmp_path).episodes.ingested == 8


ORPHAN = """
import sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from supervise.test_learner import mind, play
with mind(Path(sys.argv[1]), "process") as bot:
    for _ in range(3):
        play(bot)
    print(bot._learner.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_orphaned_it_drains_and_exits_by_itself(tmp_path: Path) -> None:
    tests = str(Path(__file__).parent.parent)
    command = [sys.executable, "-c", ORPHAN, str(tmp_path), tests]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as bot:
        assert bot.stdout is not None
        pid = int(bot.stdout.readline())
        learner = psutil.Process(pid)
        bot.kill()
    psutil.wait_procs([learner], timeout=30)
    assert not learner.is_running() or learner.status() == psutil.STATUS_ZOMBIE
    now = status(tmp_path)
    assert now.episodes.written == now.episodes.ingested == 3
    assert now.buffer_file_count == 0
    assert now.learner == "stopped"


def test_a_bot_beside_a_learner_that_was_there_first_plays_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import filelock

    mind(tmp_path, "off").close()
    with filelock.FileLock(tmp_path / LOCK), mind(tmp_path, "process") as bot:
        until(lambda: told(tmp_path, ev.LearnerDied))
        play(bot)
    assert told(tmp_path, ev.LearnerDied) == [ev.LearnerDied(code=REFUSED, restart_in_s=None)]
    assert "another learner" in capsys.readouterr().err
    assert status(tmp_path).buffer_file_count == 1


def test_a_thread_that_fails_is_told_and_play_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import filelock

    mind(tmp_path, "off").close()
    with filelock.FileLock(tmp_path / LOCK), mind(tmp_path, "thread") as bot:
        until(lambda: told(tmp_path, ev.Problem))
        play(bot)
    assert "another learner" in capsys.readouterr().err
    assert "LearnerBusy" in (tmp_path / "logs" / "learner.err").read_text(encoding="utf-8")
    assert len(told(tmp_path, ev.BotStopped)) == 2
    assert status(tmp_path).buffer_file_count == 1
