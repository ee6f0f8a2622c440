"""The learner as a thread of this process: for tests and notebooks, where a process is too much.

The learner is named, not imported, just as the process is started by name: whatever a bot imports
stays free of JAX until somebody asks for this.
"""

from __future__ import annotations

import importlib
import threading
from pathlib import Path

_LEARNER = "understudy.run.learner"


class LearnerThread:
    """The same loop that the process runs, in a thread."""

    def __init__(self, root: Path) -> None:
        learner = importlib.import_module(_LEARNER)
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._error: BaseException | None = None

        def run() -> None:
            try:
                learner.work_until_stopped(root, wake=self._wake, stop=self._stop)
            except BaseException as error:  # noqa: BLE001  raised again by stop, in the caller's thread
                self._error = error

        self._thread = threading.Thread(target=run, name="understudy-learner", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def wake(self) -> None:
        """A match is finished: look at the spool."""
        self._wake.set()

    def stop(self, timeout_s: float) -> bool:
        """Let the learner drain and end; whatever ended it early is raised here."""
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout_s)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()
