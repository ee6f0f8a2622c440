"""A lock between threads with a bounded wait."""

from __future__ import annotations

import threading
from types import TracebackType

PATIENCE_S = 5.0


class BoundedLock:
    """A reentrant lock whose `with` raises TimeoutError after `timeout_s`.

    TimeoutError is an OSError: code that handles a full disk also handles a thread that hangs in
    one.
    """

    def __init__(self, what: str, *, timeout_s: float = PATIENCE_S) -> None:
        self._what = what
        self._timeout_s = timeout_s
        self._lock = threading.RLock()

    def acquire(self, timeout_s: float) -> bool:
        """Whether the lock is held after at most `timeout_s`; then call `release`."""
        return self._lock.acquire(timeout=timeout_s)

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> None:
        if not self.acquire(self._timeout_s):
            raise TimeoutError(f"{self._what} was busy for {self._timeout_s:g} s")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
