"""Ctrl-C and SIGTERM. None of them prints a traceback.

The first Ctrl-C ends a session in good order, a second one does not wait for that, a third ends the
process at once, like SIGKILL. SIGTERM always acts like the first: schedulers and service managers
may send it twice, and wait before they kill.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

INTERRUPTED = 130
"""The exit code after Ctrl-C, as in shells: 128 plus the number of SIGINT."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Records the signals while matches are played, so that they interrupt no write.

    If `gentle` is False, or at a second Ctrl-C, KeyboardInterrupt is raised, once; a further Ctrl-C
    acts like SIGKILL, which loses nothing durable.
    """

    def __init__(self) -> None:
        self.code = 0
        """The exit code: 0, 130 after Ctrl-C, 143 after SIGTERM."""
        self.gentle = True
        self._again = self._held = False

    @property
    def asked(self) -> bool:
        """Whether the session should end."""
        return self.code != 0

    def __enter__(self) -> Self:
        self._ours = threading.current_thread() is threading.main_thread()
        if self._ours:
            self._before = [signal.signal(number, self._note) for number in _SIGNALS]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ours:
            for number, before in zip(_SIGNALS, self._before, strict=True):
                signal.signal(number, before)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Delays KeyboardInterrupt to the end of the block: inside an event loop it would leave
        tasks behind, each of which prints a traceback."""
        self._held = True
        yield
        self._held = False
        if self._again:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._again and number == signal.SIGTERM:  # it ends already
            return
        patient = self.gentle and (not self.asked or number == signal.SIGTERM)
        self.code = 128 + number
        if patient:
            return
        self._again = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if not self._held:
            raise KeyboardInterrupt
