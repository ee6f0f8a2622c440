"""Ctrl-C and SIGTERM: the first one ends a session in good order, a second Ctrl-C does not wait, a
third ends the process at once, as a kill would. None of them prints a traceback.

Schedulers and service managers send SIGTERM, some of them twice, and wait before they kill: it is
a Ctrl-C that is never impatient.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it: 128 and the number of SIGINT."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """While matches are played, the signals are only noted: no write is ever cut in two by them.

    Once `gentle` is False, or when Ctrl-C is pressed again, `KeyboardInterrupt` is raised, once: a
    further Ctrl-C has the effect of SIGKILL, which costs nothing that is durable.
    """

    def __init__(self) -> None:
        self.code = 0
        """How the process should end: 0, 130 after Ctrl-C, 143 after SIGTERM."""
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
        """Raises only at the end of this block: inside an event loop it would leave tasks behind,
        and each of those prints a traceback."""
        self._held = True
        yield
        self._held = False
        if self._again:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._again and number == signal.SIGTERM:  # it ends already; SIGTERM never hurries
            return
        patient = self.gentle and (not self.asked or number == signal.SIGTERM)
        self.code = 128 + number
        if patient:
            return
        self._again = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if not self._held:
            raise KeyboardInterrupt
