"""Lockstep: the whole ring in one process, serially, bit for bit the same for the same seed.

The debugging tool, and what seeds in tests mean: play, learn, publish and adopt take turns.
"""

from __future__ import annotations

import contextlib

from understudy.bot.understudy import Understudy
from understudy.core.pause import read_pause
from understudy.learner.ring import RingLearner
from understudy.learner.trainer import Trainer
from understudy.registry.run_folder import RunFolder
from understudy.supervise.lock import learner_lock
from understudy.telemetry.journal import Journal


class LockstepLearner:
    """Learns inside `finish`, whenever a batch is full, and has the bot adopt at once."""

    def __init__(self, folder: RunFolder) -> None:
        self._lock = contextlib.ExitStack()
        self._lock.enter_context(learner_lock(folder.root))
        self._root = folder.root
        self._batch = folder.config.learner.batch_matches
        self._background = RingLearner(
            folder,
            Trainer(folder.spec, folder.config.learner),
            Journal(folder.journal, "learner", folder.clock),
        )
        self.mind: Understudy | None = None

    @property
    def alive(self) -> bool:
        """It runs whenever it is asked to."""
        return True

    def wake(self) -> None:
        """Take a turn if a batch is full."""
        if self._background.pending() >= self._batch:
            self._turn()

    def stop(self, timeout_s: float) -> bool:
        """Learn from the rest, and let the run folder go."""
        with self._lock:
            self._turn()
        return True

    def _turn(self) -> None:
        if read_pause(self._root).paused:
            return
        while self._background.work(hurry=True):
            pass
        self._background.publish_rest()
        if self.mind is not None:
            self.mind.refresh()
