"""The outbox: finished matches that the spool does not have yet. A full disk only delays them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from understudy.experience.episode import Episode
from understudy.experience.spool import Spool

_MOST = 1000


class Outbox:
    """Matches may finish in several threads; each episode waits at most once."""

    def __init__(self, spool: Spool, problem: Callable[[str], None]) -> None:
        self._spool = spool
        self._problem = problem
        self._waiting: list[Episode] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Episodes that could not be saved so far."""
        return len(self._waiting)

    def pending(self) -> int:
        """Episodes on disk that the learner has not taken yet."""
        return len(self._spool.pending())

    def put(self, episode: Episode) -> bool:
        """True: the episode is on disk, and so is everything before it."""
        with self._lock:
            if episode.meta.id not in {one.meta.id for one in self._waiting}:
                self._waiting.append(episode)
        return self.flush()

    def flush(self) -> bool:
        """Puts all waiting episodes; False if the disk refuses one."""
        with self._lock:
            while self._waiting:
                try:
                    self._spool.put(self._waiting[0])
                except OSError as error:
                    self._problem(
                        f"a match could not be saved and is kept in memory "
                        f"({len(self._waiting)} so far): {error}"
                    )
                    if len(self._waiting) > _MOST:
                        self._problem("too many matches wait in memory: the oldest is given up")
                        del self._waiting[0]
                    return False
                del self._waiting[0]
        return True
