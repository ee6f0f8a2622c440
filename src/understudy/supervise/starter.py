"""Starts the learner beside a bot or a server, and reports how it fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from understudy.core.dependencies import install_line, not_installed
from understudy.registry.run_folder import RunFolder
from understudy.supervise.process import REFUSED, LearnerProcess
from understudy.supervise.thread import LearnerThread
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.text import complain, plain

_LIBRARIES = ("jax", "optax", "filelock", "typer")
_LAST_BYTES = 4096
_PUBLISH_S = 10.0


class RunningLearner(Protocol):
    """A learner beside this process."""

    @property
    def alive(self) -> bool:
        """Whether it runs now."""

    def wake(self) -> None:
        """A match is finished: look at the spool."""

    def stop(self, timeout_s: float) -> bool:
        """Learn from what is pending, then end; False if time ran out."""


def stop(learner: RunningLearner, drain_s: float) -> str:
    """Stops a learner that may take `drain_s` to learn from what is pending, and a little longer to
    publish it. Returns what to tell where it had to be killed; empty: it ended by itself."""
    bound_s = drain_s + _PUBLISH_S
    if learner.stop(bound_s):
        return ""
    return (
        f"the learner was still starting or at work after {bound_s:.0f} s and was ended; "
        "nothing is lost, the next one goes on"
    )


class LearnerParent(NamedTuple):
    """The process that starts a learner, in the words of the messages, and where they go."""

    journal: Journal
    note: Callable[[str], None]
    """Journals a problem"""
    problem: Callable[[str], None]
    """Journals a problem that the user has to know"""
    alone: str
    """What it does without a learner"""
    meanwhile: str
    """What it does while another learner works"""
    prints: bool
    """Whether the console shows why the learner ended; each message once"""


def start(
    learner: str | RunningLearner,
    folder: RunFolder,
    parent: LearnerParent,
    *,
    command: Sequence[str] | None = None,
) -> RunningLearner | None:
    """Starts a learner as `process` or `thread`; None: it is `off`, or libraries are missing."""
    if not isinstance(learner, str):
        return learner
    if learner == "off":
        return None
    if missing := not_installed(*_LIBRARIES):
        complain(f"{parent.alone}; to learn as well: {install_line('learn')}")
        parent.note(f"no learner: {', '.join(missing)} not installed")
        return None
    failures = LearnerFailures(folder, parent)
    if learner == "thread":
        return LearnerThread(folder.root, failed=failures.failed)
    return LearnerProcess(folder.root, died=failures.died, command=command)


class LearnerFailures:
    """Reports a learner that ended by itself."""

    def __init__(self, folder: RunFolder, parent: LearnerParent) -> None:
        self._errors = folder.logs / "learner.err"
        self._parent = parent
        self._reported: set[str] = set()
        self._read_bytes = self._errors.stat().st_size if self._errors.exists() else 0

    def died(self, code: int, restart_in_s: float) -> None:
        """The process ended by itself."""
        last_line = self._last_line()
        if code == REFUSED:
            text = f"another learner works on this run folder; {self._parent.meanwhile}"
            self._report(text, self._parent.problem)
            return
        self._parent.journal.write(events.LearnerDied(code=code, restart_in_s=restart_in_s))
        if self._parent.prints:
            text = f"the learner died with exit code {code}, is started again: {last_line}"
            self._report(text, complain)

    def failed(self, error: BaseException) -> None:
        """The thread ended by itself."""
        self._parent.problem(f"the learner ended, this bot plays on and records: {error}")

    def _report(self, text: str, to: Callable[[str], None]) -> None:
        if self._parent.prints and text in self._reported:
            return
        self._reported.add(text)
        to(text)

    def _last_line(self) -> str:
        """The last line of `learner.err` since the last call: the message of a traceback."""
        data = b""
        with contextlib.suppress(OSError), self._errors.open("rb") as file:
            file.seek(max(self._read_bytes, self._errors.stat().st_size - _LAST_BYTES))
            data = file.read()
            self._read_bytes = file.tell()
        lines = [line for line in data.decode("utf-8", "replace").split("\n") if line.strip()]
        return plain(lines[-1].strip()) if lines else "it left no word"
