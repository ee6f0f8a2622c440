"""The learner's process: take the run folder, work when woken, drain when told to stop."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from understudy.adapters.gate_factory import make_gate
from understudy.core.clock import SystemClock
from understudy.core.dependencies import needs_learner
from understudy.core.errors import ConfigError
from understudy.core.pause import read_pause
from understudy.experience.ledger.recovery import LEDGER, is_served
from understudy.gates.decision import DecisionGate
from understudy.promotion.digest import DigestWriter
from understudy.registry.run_folder import RunFolder
from understudy.supervise.child import end_when_told, step_back
from understudy.supervise.lock import learner_lock
from understudy.telemetry import events
from understudy.telemetry.journal import Entry, Journal
from understudy.telemetry.summary import SummaryWriter, status_fold
from understudy.telemetry.training_log import LOG, TrainingLog

if TYPE_CHECKING:
    from understudy.learner.background import BackgroundLearner

_IDLE_AFTER_S = 5.0
_SUMMARISE_ENTRIES = 2000
"""At once, which takes 30 ms."""
_LOOK_EVERY_S = 1.0
"""How often to look at the spool unasked: another machine may share the folder."""


class ContinuousOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the learner behind a server (`--continuous`): its gate and the threshold."""

    gate: str = "open"
    threshold: float | None = None
    """None: that of the run's settings."""


def serve(
    root: Path,
    *,
    supervised: bool,
    continuous: ContinuousOptions | None = None,
    show: Callable[[Entry], None] | None = None,
) -> None:
    """The whole life of a learner's process; `show` as in `work_until_stopped`."""
    step_back(RunFolder.load(root, SystemClock()).config.learner.niceness)
    wake, stop = end_when_told(supervised=supervised)
    work_until_stopped(root, wake=wake, stop=stop, show=show, continuous=continuous)


def work_until_stopped(
    root: Path,
    *,
    wake: threading.Event,
    stop: threading.Event,
    show: Callable[[Entry], None] | None = None,
    continuous: ContinuousOptions | None = None,
) -> None:
    """Learn whenever there is something to learn from, until `stop`; then drain.

    `show` gets every event; `continuous`: this is the learner of a server.
    """
    clock = SystemClock()
    folder = RunFolder.load(root, clock)
    _check_kind(folder.root, continuous=continuous is not None)
    with learner_lock(root):
        SummaryWriter(folder.journal, clock, limits=folder.config.retention).catch_up()
        log = TrainingLog(folder.logs / LOG, past=status_fold(folder.journal))

        def also(entry: Entry) -> None:
            log.add(entry)
            if show is not None:
                show(entry)

        journal = Journal(folder.journal, "learner", clock, also=also)
        learner = _made(folder, journal, continuous)
        began, cpu = time.monotonic(), time.process_time()
        journal.write(
            events.LearnerStarted(
                pid=os.getpid(),
                version=learner.version,
                pending=learner.pending(),
                total_matches=learner.total_matches,
            )
        )
        reason = "failed"
        try:
            # The learner of a server says by itself when it waits.
            _loop(root, learner, journal, wake, stop, tells_idle=continuous is None)
            reason = "stopped"
        finally:
            journal.write(
                events.LearnerStopped(
                    reason=reason,
                    pending=learner.pending(),
                    cpu_s=time.process_time() - cpu,
                    wall_s=time.monotonic() - began,
                )
            )


def _check_kind(root: Path, *, continuous: bool) -> None:
    """Either learner would take in the other's episodes, and learn from them as from its own."""
    served = is_served(root)
    if served and not continuous:
        raise ConfigError(
            f"--run: {root} is the run of a server: learn there with --continuous, "
            "and with the server's --gate"
        )
    if continuous and not served:
        raise ConfigError(
            f"--continuous: {root} is not the run of a server (it has no {LEDGER} folder): "
            "leave the flag out, or name such a run with --run"
        )


def _made(
    folder: RunFolder, journal: Journal, continuous: ContinuousOptions | None
) -> BackgroundLearner[Any]:
    """Called with the lock held: JAX takes a second to load, being refused should not."""
    judge = None if continuous is None else _judge(folder, continuous)
    with needs_learner():
        from understudy.learner.trainer import Trainer
    from understudy.learner.continuous.learner import ContinuousLearner
    from understudy.learner.ring import RingLearner

    trainer = Trainer(folder.spec, folder.config.learner, bounds=folder.config.features.bounds)
    if judge is None:
        return RingLearner(folder, trainer, journal)
    return ContinuousLearner(folder, trainer, journal, judge)


def _judge(folder: RunFolder, continuous: ContinuousOptions) -> DecisionGate:
    threshold = (
        folder.config.live.threshold if continuous.threshold is None else continuous.threshold
    )
    return make_gate(
        continuous.gate,
        game=folder.identity.game,
        threshold=threshold,
        budget_ms=float("inf"),  # no client waits here, and a verdict for lack of time says nothing
        features=len(folder.spec.features),
        actions=folder.spec.actions,
    )


def _loop(
    root: Path,
    learner: BackgroundLearner[Any],
    journal: Journal,
    wake: threading.Event,
    stop: threading.Event,
    *,
    tells_idle: bool,
) -> None:
    """Until told to stop; with `tells_idle` the journal hears of a while without work."""
    said_at = busy_at = time.monotonic()
    paused = False
    summaries = SummaryWriter(
        journal.folder,
        journal.clock,
        limits=RunFolder.load(root, journal.clock).config.retention,
        journal=journal,
        most=_SUMMARISE_ENTRIES,
        every_s=_LOOK_EVERY_S,
    )
    digests = DigestWriter(journal.folder.parent / "promotion", journal.clock)
    while not stop.is_set():
        wake.clear()
        summaries.work()
        digests.work()
        before, paused = paused, read_pause(root).paused
        if paused != before:
            _switched(learner, journal, paused=paused)
        if paused:
            wake.wait(_LOOK_EVERY_S)
            continue
        if learner.work():
            busy_at = time.monotonic()
            continue
        if tells_idle and said_at <= busy_at < time.monotonic() - _IDLE_AFTER_S:
            said_at = time.monotonic()
            journal.write(
                events.WaitingForExperience(samples_per_insert=learner.samples_per_insert)
            )
        wake.wait(max(0.0, min(_LOOK_EVERY_S, learner.wait_s())))
    deadline = time.monotonic() + learner.drain_s
    while time.monotonic() < deadline and not read_pause(root).paused and learner.work(hurry=True):
        pass
    learner.publish_rest()


def _switched(learner: BackgroundLearner[Any], journal: Journal, *, paused: bool) -> None:
    """Before it pauses, what was learned becomes a version: from then on none comes."""
    if paused:
        learner.publish_rest()
        journal.write(events.LearnerPaused(version=learner.version, pending=learner.pending()))
    else:
        journal.write(events.LearnerResumed(pending=learner.pending()))
