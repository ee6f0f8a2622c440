"""The real learner beside a real bot: woken, killed, orphaned, doubled."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest
from cli.calling import understudy

from understudy import Config, Mlp, Understudy
from understudy.core.clock import SystemClock
from understudy.core.config import with_values
from understudy.registry.run_folder import RunFolder
from understudy.run import learner as learning
from understudy.supervise import process as supervising
from understudy.supervise.lock import learner_lock
from understudy.supervise.process import REFUSED, LearnerProcess
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Reader
from understudy.telemetry.status import Status
from understudy.telemetry.status_reader import StatusReader

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


SMALL = Mlp((8,))


def mind(
    root: Path,
    learner: Literal["process", "thread", "off"],
    *,
    network: Mlp = SMALL,
    config: Config = QUICK,
) -> Understudy:
    return Understudy.open(
        root,
        features=("a", "b"),
        actions=("x", "y", "z"),
        mode="learn",
        learner=learner,
        network=network,
        config=config,
        seed=1,
    )


def play(bot: Understudy, *, decisions: int = 20) -> None:
    with bot.match() as match:
        for step in range(decisions):
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


def test_one_learner_a_run_folder(tmp_path: Path) -> None:
    with mind(tmp_path, "process") as bot:
        play(bot)
        until(lambda: bot.version == 1)
        command = [sys.executable, "-m", "understudy", "learner", "--run", str(tmp_path)]
        second = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert second.returncode == REFUSED
        assert second.stderr.count("\n") == 1
        assert "another learner works on this run folder" in second.stderr
    (stopped,) = told(tmp_path, ev.LearnerStopped)
    assert stopped.reason == "stopped" and stopped.pending == 0


UNASKED_NEVER = """
import sys
from pathlib import Path
from understudy.run import learner
learner._LOOK_EVERY_S = 600.0
learner.serve(Path(sys.argv[1]), supervised=True)
"""


def check_woken(bot: Understudy) -> None:
    """Each match is learned from, though nobody looks at the spool unasked for ten minutes."""
    for _ in range(3):
        before = bot.version
        play(bot)
        until(lambda before=before: bot.refresh() > before)  # type: ignore[misc]


def test_a_finished_match_wakes_the_process(tmp_path: Path) -> None:
    mind(tmp_path, "off").close()
    command = [sys.executable, "-c", UNASKED_NEVER, str(tmp_path)]
    learner = LearnerProcess(tmp_path, died=lambda code, wait_s: None, command=command)
    folder = RunFolder.load(tmp_path, SystemClock())
    with Understudy(folder, mode="learn", learner=learner, result_rewards={}, seed=1) as bot:
        until(lambda: told(tmp_path, ev.LearnerStarted))
        check_woken(bot)


def test_a_finished_match_wakes_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "_LOOK_EVERY_S", 600.0)
    with mind(tmp_path, "thread") as bot:
        until(lambda: told(tmp_path, ev.LearnerStarted))
        check_woken(bot)


HEAVY = with_values(QUICK, {"learner.batch_matches": 10, "learner.minibatches": 2})


@pytest.mark.skipif(os.cpu_count() == 1, reason="there is no second core to take")
def test_it_keeps_to_one_core_under_full_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One thread does the maths. Its share tells, however busy the machine is with other things."""
    monkeypatch.delenv("NPROC")  # which the tests set for themselves
    wide = Mlp((512, 512))
    with mind(tmp_path, "off", network=wide, config=HEAVY) as bot:
        for _ in range(120):
            play(bot, decisions=150)
    with mind(tmp_path, "process", network=wide, config=HEAVY) as bot:
        learner = bot._learner
        assert isinstance(learner, LearnerProcess)
        process = psutil.Process(learner.pid)
        until(lambda: bot.version >= 2)  # imported and compiled
        before = {thread.id: thread.user_time for thread in process.threads()}
        began, from_s = time.monotonic(), sum(process.cpu_times()[:2])
        until(lambda: bot.version >= 5)
        wall_s, cpu_s = time.monotonic() - began, sum(process.cpu_times()[:2]) - from_s
        used = [thread.user_time - before.get(thread.id, 0.0) for thread in process.threads()]
        assert status(tmp_path).buffer_file_count > 0, "it was not busy all the time"
        process.kill()  # nobody needs the rest
    assert cpu_s <= 1.1 * wall_s
    assert max(used) >= 0.7 * sum(used), used


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


HELD = """
import os, sys
from pathlib import Path
from understudy.core.clock import SystemClock
from understudy.supervise.lock import learner_lock
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
root = Path(sys.argv[1])
with learner_lock(root):
    journal = Journal(root / "journal", "learner", SystemClock())
    journal.write(events.LearnerStarted(pid=os.getpid(), version=0, pending=1))
    print("started", flush=True)
    sys.stdin.read()
"""


def test_killed_together_with_its_bot_it_is_shown_as_dead(tmp_path: Path) -> None:
    """Neither could report the end. The system has released the learner's lock."""

    def shown() -> tuple[object, ...]:
        now = understudy("status", "--run", tmp_path, "--json").json
        return tuple(now[name] for name in ("learner", "learner_pid", "learning", "active_workers"))

    with mind(tmp_path, "off") as bot:
        play(bot)
    command = [sys.executable, "-c", HELD, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as learner:
        assert learner.stdout is not None
        assert learner.stdout.readline().strip() == b"started"
        assert shown() == ("training", learner.pid, "on", 1)
        learner.kill()
    assert shown() == ("dead", None, "off", 0)
    assert "Learner     dead\n" in understudy("status", "--run", tmp_path).out


def test_a_bot_beside_another_learner_plays_on_and_learns_once_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(supervising, "_FIRST_WAIT_REFUSED_S", 0.05)
    mind(tmp_path, "off").close()
    with contextlib.ExitStack() as other:
        other.enter_context(learner_lock(tmp_path))
        with mind(tmp_path, "process") as bot:
            learner = bot._learner
            assert isinstance(learner, LearnerProcess)
            first = learner.pid
            play(bot)
            until(lambda: learner.pid != first)
            assert status(tmp_path).buffer_file_count == 1
            other.close()
            until(lambda: bot.version == 1)
    assert capsys.readouterr().err.count("another learner") == 1
    assert [problem.where for problem in told(tmp_path, ev.Problem)] == ["bot"]
    assert status(tmp_path).learner_deaths == 0


def test_a_thread_that_fails_is_told_and_play_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mind(tmp_path, "off").close()
    with learner_lock(tmp_path), mind(tmp_path, "thread") as bot:
        until(lambda: told(tmp_path, ev.Problem))
        play(bot)
    assert "another learner" in capsys.readouterr().err
    assert "LearnerBusy" in (tmp_path / "logs" / "learner.err").read_text(encoding="utf-8")
    assert len(told(tmp_path, ev.BotStopped)) == 2
    assert status(tmp_path).buffer_file_count == 1
