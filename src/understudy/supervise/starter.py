"""The learner beside a bot: how it is started, and what a person hears of its troubles."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable
from typing import Protocol

from understudy.registry.run_folder import RunFolder
from understudy.supervise.process import REFUSED, LearnerProcess
from understudy.supervise.thread import LearnerThread
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.text import complain, plain

LEARNER_NEEDS = ("jax", "optax", "filelock", "typer")
INSTALL_LINE = 'pip install ".[learn]" in your clone'
_LAST_BYTES = 4096


class RunningLearner(Protocol):
    """Whatever learns beside a bot."""

    @property
    def alive(self) -> bool:
        """Whether it runs now."""

    def wake(self) -> None:
        """A match is finished: look at the spool."""

    def stop(self, timeout_s: float) -> bool:
        """Learn from what is pending, then end; False if time ran out."""


def start(
    learner: str | RunningLearner,
    folder: RunFolder,
    journal: Journal,
    problem: Callable[[str], None],
) -> RunningLearner | None:
    """The learner that was asked for; None where there is none, or its libraries are missing."""
    if not isinstance(learner, str):
        return learner
    if learner == "off":
        return None
    missing = [name for name in LEARNER_NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        complain(f"recording only; to learn as well: {INSTALL_LINE}")
        message = f"no learner: {', '.join(missing)} not installed"
        journal.write(events.Problem(where="bot", message=message))
        return None
    troubles = _Troubles(folder, journal, problem)
    if learner == "thread":
        return LearnerThread(folder.root, failed=troubles.failed)
    return LearnerProcess(folder.root, died=troubles.died)


class _Troubles:
    """Tells of a learner that ended, and never the same twice."""

    def __init__(self, folder: RunFolder, journal: Journal, problem: Callable[[str], None]) -> None:
        self._errors = folder.logs / "learner.err"
        self._journal = journal
        self._problem = problem
        self._said: set[str] = set()
        self._heard = self._errors.stat().st_size if self._errors.exists() else 0

    def died(self, code: int, restart_in_s: float) -> None:
        """The process ended by itself."""
        words = self._last_words()
        if code == REFUSED:  # nobody died: somebody else learns
            self._once(
                "another learner works on this run folder; this bot plays and records, "
                "and looks again",
                self._problem,
            )
            return
        self._journal.write(events.LearnerDied(code=code, restart_in_s=restart_in_s))
        self._once(f"the learner died with exit code {code}, is started again: {words}", complain)

    def failed(self, error: BaseException) -> None:
        """The thread ended by itself."""
        self._problem(f"the learner ended, this bot plays on and records: {error}")

    def _once(self, text: str, tell: Callable[[str], None]) -> None:
        if text not in self._said:
            self._said.add(text)
            tell(text)

    def _last_words(self) -> str:
        """The last line since the last death, which is where a traceback says what happened."""
        data = b""
        with contextlib.suppress(OSError), self._errors.open("rb") as file:
            file.seek(max(self._heard, self._errors.stat().st_size - _LAST_BYTES))
            data = file.read()
            self._heard = file.tell()
        lines = [line for line in data.decode("utf-8", "replace").split("\n") if line.strip()]
        return plain(lines[-1].strip()) if lines else "it left no word"
