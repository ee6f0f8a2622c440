"""Ctrl-C during a session: the first one ends it in good order, the next one is impatient."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Self

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 and the number of SIGINT."""
TERMINATED = 143
"""The same for SIGTERM."""


class Interrupts:
    """While matches are played, Ctrl-C is only noted: no write is ever cut in two by it.

    Once `gentle` is False, or when it is pressed again, it raises `KeyboardInterrupt`.
    """

    def __init__(self) -> None:
        self.asked = False
        self.gentle = True

    def __enter__(self) -> Self:
        self._ours = threading.current_thread() is threading.main_thread()
        if self._ours:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ours:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked or not self.gentle:
            raise KeyboardInterrupt
        self.asked = True
