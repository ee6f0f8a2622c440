"""The learner's process: take the run folder, work when woken, drain when told to stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.core.clock import SystemClock
from understudy.core.errors import LearnerBusy, MissingDependency
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal, Reader
from understudy.telemetry.training_log import TrainingLog

if TYPE_CHECKING:
    from understudy.learner.background import Background

LOCK = "learner.lock"
LOG = "background_training.log"
_LOOK_EVERY_S = 1.0
"""How often to look at the spool unasked: another machine may share the folder."""


def step_back(niceness: int) -> None:
    """One maths thread and low priority: the game comes first. Must run before JAX is imported."""
    os.environ["NPROC"] = "1"  # what XLA takes as the number of cores; no flag of its own does it
    if hasattr(os, "nice"):
        os.nice(niceness)


def serve(root: Path, *, supervised: bool) -> None:
    """The whole life of a learner's process."""
    step_back(RunFolder.load(root, SystemClock()).config.learner.niceness)
    wake, stop = threading.Event(), threading.Event()

    def end(number: int, frame: object) -> None:
        stop.set()
        wake.set()

    signal.signal(signal.SIGTERM, end)
    # Under a supervisor Ctrl-C is the bot's affair; it closes the pipe when it is done.
    signal.signal(signal.SIGINT, signal.SIG_IGN if supervised else end)
    if supervised:
        threading.Thread(target=_listen, args=(wake, stop), daemon=True).start()
    work_until_stopped(root, wake=wake, stop=stop)


def work_until_stopped(root: Path, *, wake: threading.Event, stop: threading.Event) -> None:
    """Learn whenever there is something to learn from, until `stop`; then drain."""
    try:
        import filelock
    except ImportError as error:
        raise _missing(error) from error
    clock = SystemClock()
    folder = RunFolder.load(root, clock)
    lock = filelock.FileLock(root / LOCK)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise LearnerBusy(
            f"{root}: another learner works on this run folder; one is enough"
        ) from error
    with lock:
        try:  # after the lock: JAX takes a second to load, being refused should not
            from understudy.learner.trainer import Trainer
        except ImportError as error:
            raise _missing(error) from error
        from understudy.learner.background import Background

        log = TrainingLog(folder.logs / LOG, past=Reader(folder.journal).new())
        journal = Journal(folder.journal, "learner", clock, also=log.add)
        background = Background(folder, Trainer(folder.spec, folder.config.learner), journal)
        began, cpu = time.monotonic(), time.process_time()
        journal.write(
            events.LearnerStarted(
                pid=os.getpid(),
                version=background.version,
                pending=background.pending(),
                total_matches=background.total_matches,
            )
        )
        reason = "failed"
        try:
            _loop(background, wake, stop)
            reason = "stopped"
        finally:
            journal.write(
                events.LearnerStopped(
                    reason=reason,
                    pending=background.pending(),
                    cpu_s=time.process_time() - cpu,
                    wall_s=time.monotonic() - began,
                )
            )


def _missing(error: ImportError) -> MissingDependency:
    return MissingDependency(f'the learner needs {error.name}: pip install "understudy[learn]"')


def _loop(background: Background, wake: threading.Event, stop: threading.Event) -> None:
    while not stop.is_set():
        wake.clear()
        if not background.work():
            wake.wait(max(0.0, min(_LOOK_EVERY_S, background.wait_s())))
    deadline = time.monotonic() + background.drain_s
    while time.monotonic() < deadline and background.work(hurry=True):
        pass
    background.publish_rest()


def _listen(wake: threading.Event, stop: threading.Event) -> None:
    """Every byte is a wake-up; the end of the pipe means that the parent is gone."""
    while os.read(sys.stdin.fileno(), 4096):
        wake.set()
    stop.set()
    wake.set()
