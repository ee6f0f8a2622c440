"""The server's error log: the journal for people, `server.log` with tracebacks for debugging.

Both are bounded, whatever clients do: the same text is noted once a minute, and the log rotates.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

from understudy.core.clock import Clock
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

LOG = "server.log"
_AGAIN_AFTER_S = 60.0
_REMEMBERED = 256
_LOG_BYTES = 2**20
_LOGGERS = ("uvicorn.error", "asyncio")
_log = logging.getLogger("uvicorn.error")


class ErrorLog:
    """Notes errors that did not stop the server; any thread may call it."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._said: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, words: str, error: Exception | None = None) -> None:
        """Note a failure. The error's text may name files; no client gets to see it."""
        text = words if error is None else f"{words}: {type(error).__name__}: {error}"
        with self._lock:
            if not self._is_news(text):
                return
        self._journal.write(events.Problem(where="server", message=text))
        _log.error(words, exc_info=error)

    def _is_news(self, text: str) -> bool:
        now = self._clock.monotonic()
        if now - self._said.get(text, -_AGAIN_AFTER_S) < _AGAIN_AFTER_S:
            return False
        self._said[text] = now
        self._said.move_to_end(text)
        if len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)
        return True


@contextlib.contextmanager
def logging_to(folder: Path) -> Iterator[None]:
    """Messages of libraries go to `server.log` in this folder, not to the terminal."""
    handler = RotatingFileHandler(
        folder / LOG, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8", delay=True
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.setLevel(logging.WARNING)
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    before = [one.propagate for one in loggers]
    for one in loggers:
        one.addHandler(handler)
        one.propagate = False
    try:
        yield
    finally:
        for one, propagate in zip(loggers, before, strict=True):
            one.removeHandler(handler)
            one.propagate = propagate
        handler.close()
