"""The learner as a thread of this process, for tests and notebooks.

The learner is imported by name when the thread is made (ADR 0004): a bot imports no JAX, and
`supervise` lies below `run`. This is the only upward import by name.
"""

from __future__ import annotations

import importlib
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

_LEARNER = "understudy.run.learner"


class LearnerThread:
    """The same loop that the process runs, in a thread."""

    def __init__(self, root: Path, *, failed: Callable[[BaseException], None]) -> None:
        learner = importlib.import_module(_LEARNER)
        self._wake = threading.Event()
        self._stop = threading.Event()

        def run() -> None:
            try:
                learner.work_until_stopped(root, wake=self._wake, stop=self._stop)
            except BaseException as error:  # noqa: BLE001  play goes on
                with (root / "logs" / "learner.err").open("a", encoding="utf-8") as errors:
                    traceback.print_exc(file=errors)
                failed(error)

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
        """Lets the learner drain and end; False if it still works."""
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()
