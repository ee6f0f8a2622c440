"""A process beside this one, the learner or the simulator: it is started, woken, watched, restarted
and stopped.

Its standard input is a pipe that carries wake-ups. The end of that pipe means that the parent has
ended, in whatever way: the learner drains and exits. The end of a learner never stops play.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

REFUSED = 3
"""Exit code of a learner that another one refused or fenced off.

The other one may belong to a bot that was killed, and end in a moment: it is started again."""

_FIRST_WAIT_S = 0.5
_FIRST_WAIT_REFUSED_S = 5.0
_LONGEST_WAIT_S = 60.0
_STEADY_AFTER_S = 30.0

_WINDOWS = os.name == "nt"
_NEW_PROCESS_GROUP = 0x200
_BELOW_NORMAL_PRIORITY = 0x4000


def learner_command(root: Path, *options: str) -> list[str]:
    """The command line of a supervised learner on a run folder."""
    learner = [sys.executable, "-m", "understudy", "learner", "--supervised"]
    return [*learner, *options, "--run", str(root)]


class SupervisedProcess:
    """A command as a process beside this one, with its output in the file `errors`.

    `died(code, restart_in_s)` is called from a thread whenever it ends by itself.
    """

    def __init__(
        self, command: Sequence[str], *, errors: Path, died: Callable[[int, float], None]
    ) -> None:
        self._command = command
        self._errors = errors
        self._died = died
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process = self._start()
        self._watch = threading.Thread(
            target=self._keep_running, name="understudy-watch", daemon=True
        )
        self._watch.start()

    @property
    def pid(self) -> int:
        """Of the process that runs now, or ran last."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def wake(self) -> None:
        """A match is finished: look at the spool."""
        self._send(b"\n")

    def stop(self, timeout_s: float) -> bool:
        """Lets the learner drain and exit; False if it had to be killed."""
        self._stopping.set()
        with self._lock:
            process = self._process
            if process.stdin is not None and not process.stdin.closed:
                with contextlib.suppress(OSError):  # it has ended already
                    process.stdin.close()
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return False
        except BaseException:  # Ctrl-C while waiting; it may end at any point
            process.kill()
            process.wait()
            raise
        self._watch.join(timeout=5.0)
        return True

    def _start(self) -> subprocess.Popen[bytes]:
        with self._errors.open("ab") as errors:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                bufsize=0,
                # Ctrl-C in a terminal reaches the bot alone; the learner hears of it by the pipe.
                creationflags=_NEW_PROCESS_GROUP | _BELOW_NORMAL_PRIORITY if _WINDOWS else 0,
                process_group=None if _WINDOWS else 0,
            )
        # A learner that hangs must not hang the bot once the pipe is full of wake-ups.
        if process.stdin is not None and hasattr(os, "set_blocking"):
            os.set_blocking(process.stdin.fileno(), False)
        return process

    def _send(self, data: bytes) -> None:
        with self._lock:
            stdin = self._process.stdin
            if stdin is None or stdin.closed:
                return
            # If it has ended, the watching thread starts another, which reads the spool by itself.
            with contextlib.suppress(OSError):
                stdin.write(data)

    def _keep_running(self) -> None:
        wait_s = 0.0
        while True:
            started = time.monotonic()
            code = self._process.wait()
            if self._stopping.is_set():
                return
            if time.monotonic() - started > _STEADY_AFTER_S:
                wait_s = 0.0
            first_s = _FIRST_WAIT_REFUSED_S if code == REFUSED else _FIRST_WAIT_S
            wait_s = min(max(2.0 * wait_s, first_s), _LONGEST_WAIT_S)
            self._died(code, wait_s)
            if self._stopping.wait(wait_s):
                return
            with self._lock:
                if self._stopping.is_set():
                    return
                if self._process.stdin is not None:
                    self._process.stdin.close()
                with contextlib.suppress(OSError):  # no memory, no disk: tried again
                    self._process = self._start()


class LearnerProcess(SupervisedProcess):
    """`learner_command`, or another `command`, as a process beside this one."""

    def __init__(
        self,
        root: Path,
        *,
        died: Callable[[int, float], None],
        command: Sequence[str] | None = None,
    ) -> None:
        errors = root / "logs" / "learner.err"
        super().__init__(command or learner_command(root), errors=errors, died=died)
