"""The learner as another process: started, woken, watched, restarted, stopped.

Its standard input is a pipe that carries wake-ups. The end of that pipe means that the parent is
gone, however it died: the learner drains and exits. The learner's death never stops play.
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
"""Exit code of a learner that was refused or fenced off by another one: that one goes on.

The other one may be the orphan of a bot that was killed, and gone in a moment: we look again."""

_FIRST_WAIT_S = 0.5
_FIRST_WAIT_REFUSED_S = 5.0
_LONGEST_WAIT_S = 60.0
_STEADY_AFTER_S = 30.0

_WINDOWS = os.name == "nt"
_NEW_PROCESS_GROUP = 0x200
_BELOW_NORMAL_PRIORITY = 0x4000


class LearnerProcess:
    """`python -m understudy learner` (or another `command`) beside this process.

    `died(code, restart_in_s)` is called from a thread whenever it ends by itself.
    """

    def __init__(
        self,
        root: Path,
        *,
        died: Callable[[int, float], None],
        command: Sequence[str] | None = None,
    ) -> None:
        learner = [sys.executable, "-m", "understudy", "learner", "--supervised", "--run"]
        self._command = command or [*learner, str(root)]
        self._errors = root / "logs" / "learner.err"
        self._died = died
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process = self._start()
        self._watch = threading.Thread(target=self._watching, name="understudy-watch", daemon=True)
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
        """Let the learner drain and exit; False if it had to be killed."""
        self._stopping.set()
        with self._lock:
            process = self._process
            if process.stdin is not None and not process.stdin.closed:
                with contextlib.suppress(OSError):  # it is dead already, which is what we want
                    process.stdin.close()
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return False
        except BaseException:  # Ctrl-C: somebody will not wait. It may die at any point, so it does
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
            # If it is dead, the watchdog knows, and the next one looks at the spool by itself.
            with contextlib.suppress(OSError):
                stdin.write(data)

    def _watching(self) -> None:
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
                with contextlib.suppress(OSError):  # no memory, no disk: the next turn tries again
                    self._process = self._start()
