"""A thread that syncs a moment after something was written, and not at all when nothing is."""

from __future__ import annotations

import threading
from collections.abc import Callable

_IDLE_S = 5.0


class Syncer:
    """Calls `sync` at most `every_s` after `dirty`, for as many writes as there were until then."""

    def __init__(
        self, sync: Callable[[], None], every_s: float, *, tell: Callable[[str], None]
    ) -> None:
        self._sync, self._every_s, self._tell = sync, every_s, tell
        self._dirty = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger-sync", daemon=True)
        self._thread.start()

    def dirty(self) -> None:
        """Something was written."""
        if not self._dirty.is_set():
            self._dirty.set()

    def stop(self, timeout_s: float) -> None:
        """End the thread, after a sync that is under way."""
        self._stopping.set()
        self._dirty.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        failed = False
        while not self._stopping.is_set():
            if not self._dirty.wait(_IDLE_S) or self._stopping.wait(self._every_s):
                continue
            self._dirty.clear()
            try:
                self._sync()
            except Exception as error:  # noqa: BLE001  nobody watches this thread: it goes on
                self._dirty.set()
                if not failed:  # once, not twenty times a second
                    self._tell(f"the ledger could not be synced, and is tried again: {error}")
                failed = True
            else:
                failed = False
