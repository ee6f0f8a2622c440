"""What a bot does about SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType


def unwind_on_sigterm() -> Callable[[], object]:
    """SIGTERM unwinds the `with` blocks, so that an unfinished match is kept as aborted.

    A bot that has its own idea of SIGTERM keeps it. Returns what undoes this.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return lambda: None

    def unwind(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, unwind)
    return lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL)
