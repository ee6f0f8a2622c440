"""The watcher: a thread that reads, verifies and builds new versions, off the decision path.

The policy is swapped by reference, so that a decision sees the old one or the new one. Only `stop`
ends the thread; errors are reported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from understudy.core.errors import FileFormatError, RunFolderError
from understudy.core.locks import BoundedLock
from understudy.policy.policy import Policy
from understudy.registry.run_folder import RunFolder

LOOK_EVERY_S = 0.05


class Watcher:
    """Follows the champion pointer of a run folder; calls `tick` after each look."""

    def __init__(
        self,
        folder: RunFolder,
        *,
        adopt: Callable[[Policy], None],
        problem: Callable[[str], None],
        tick: Callable[[], None],
        playing: int,
    ) -> None:
        self._folder = folder
        self._adopt = adopt
        self._problem = problem
        self._tick = tick
        self._playing = playing
        self._complained = ""
        self._failed = ""
        self._stop = threading.Event()
        self._lock = BoundedLock("the watcher")
        self._thread = threading.Thread(target=self._follow, name="understudy-follow", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def look(self) -> None:
        """Adopts the champion if it is another version than the one that plays."""
        with self._lock:
            try:
                record = self._folder.pointers.read("champion")
                if record is None or record.version == self._playing:
                    return
                policy = self._folder.versions.policy(record.version)
                if policy.spec != self._folder.spec:
                    raise RunFolderError(f"version {record.version} was made for another run")
            except (FileFormatError, RunFolderError, msgspec.MsgspecError, OSError) as error:
                if str(error) != self._complained:  # once, not twenty times a second
                    self._complained = str(error)
                    self._problem(f"the champion cannot be played: {error}")
                return
            self._complained = ""
            self._playing = policy.version
            self._adopt(policy)

    def _follow(self) -> None:
        while not self._stop.wait(LOOK_EVERY_S):
            try:
                self.look()
                self._tick()
            except Exception as error:  # noqa: BLE001  a thread without supervisor
                words = f"{type(error).__name__}: {error}"
                if words != self._failed:
                    self._failed = words
                    self._problem(f"following the run failed, and goes on: {words}")
            else:
                self._failed = ""
