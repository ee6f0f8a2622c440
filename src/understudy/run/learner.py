"""The learner's process: take the run folder, work when woken, drain when told to stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder
from understudy.run.lock import learner_lock, missing
from understudy.telemetry import events
from understudy.telemetry.journal import Entry, Journal, Reader
from understudy.telemetry.text import plain, say
from understudy.telemetry.training_log import TrainingLog

if TYPE_CHECKING:
    from understudy.learner.background import Background

LOG = "background_training.log"
_IDLE_AFTER_S = 5.0
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
    work_until_stopped(root, wake=wake, stop=stop, tell=None if supervised else _tell)


def work_until_stopped(
    root: Path,
    *,
    wake: threading.Event,
    stop: threading.Event,
    tell: Callable[[Entry], None] | None = None,
) -> None:
    """Learn whenever there is something to learn from, until `stop`; then drain.

    `tell` hears every event, for whoever watches.
    """
    clock = SystemClock()
    folder = RunFolder.load(root, clock)
    with learner_lock(root):
        try:  # after the lock: JAX takes a second to load, being refused should not
            from understudy.learner.trainer import Trainer
        except ImportError as error:
            raise missing(error) from error
        from understudy.learner.background import Background

        log = TrainingLog(folder.logs / LOG, past=Reader(folder.journal).new())

        def also(entry: Entry) -> None:
            log.add(entry)
            if tell is not None:
                tell(entry)

        journal = Journal(folder.journal, "learner", clock, also=also)
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
            _loop(background, journal, wake, stop)
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


def _loop(
    background: Background, journal: Journal, wake: threading.Event, stop: threading.Event
) -> None:
    said_at = busy_at = time.monotonic()
    while not stop.is_set():
        wake.clear()
        if background.work():
            busy_at = time.monotonic()
            continue
        if said_at <= busy_at < time.monotonic() - _IDLE_AFTER_S:
            said_at = time.monotonic()
            journal.write(
                events.WaitingForExperience(samples_per_insert=background.samples_per_insert)
            )
        wake.wait(max(0.0, min(_LOOK_EVERY_S, background.wait_s())))
    deadline = time.monotonic() + background.drain_s
    while time.monotonic() < deadline and background.work(hurry=True):
        pass
    background.publish_rest()


def _tell(entry: Entry) -> None:
    """What a person in front of `understudy learner` sees."""
    match entry.e:
        case events.LearnerStarted() as e:
            say(f"learning on from version {e.version}; {e.pending} matches wait. Ctrl-C stops.")
        case events.BatchTrained() as e:
            say(f"  batch: {e.matches} new + {e.replayed} earlier matches, loss {e.loss:.4f}, "
                f"entropy {e.entropy:.2f}, {e.seconds:.2f} s")  # fmt: skip
        case events.VersionPublished() as e:
            say(f"version {e.version}: {e.total_matches} matches learned from")
        case events.WaitingForExperience():
            say("waiting for experience")
        case events.EpisodeQuarantined() as e:
            say(f"  set aside {e.name}: {plain(e.reason)}")
        case events.Problem() as e:
            say(f"  problem in {e.where}: {plain(e.message)}")
        case events.LearnerStopped() as e:
            say(f"stopped; {e.pending} matches wait for the next learner")


def _listen(wake: threading.Event, stop: threading.Event) -> None:
    """Every byte is a wake-up; the end of the pipe means that the parent is gone."""
    while os.read(sys.stdin.fileno(), 4096):
        wake.set()
    stop.set()
    wake.set()
