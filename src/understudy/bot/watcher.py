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
from understudy.registry.pointers import PointerRecord
from understudy.registry.run_folder import RunFolder

LOOK_EVERY_S = 0.05


class Watcher:
    """Follows the champion or the candidate of a run folder; calls `tick` after each look.

    Where evidence moves the champion it follows the newest version, unless a person pinned the
    champion. With `untrained` it follows the champion alone, and adopts that policy where the
    champion is version 0, the rules; else version 0 is passed over.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        adopt: Callable[[Policy], None],
        problem: Callable[[str], None],
        tick: Callable[[], None],
        playing: int,
        untrained: Policy | None = None,
    ) -> None:
        self._folder = folder
        self._adopt = adopt
        self._problem = problem
        self._tick = tick
        self._playing = playing
        self._untrained = untrained
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
        """Adopts the version to follow if it is another one than the present one."""
        with self._lock:
            try:
                record = self._followed()
                if record is None or record.version == self._playing:
                    return
                policy = self._loaded(record.version)
                if policy is None:
                    return
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

    def _loaded(self, version: int) -> Policy | None:
        return self._folder.versions.policy(version) if version else self._untrained

    def _followed(self) -> PointerRecord | None:
        pointers = self._folder.pointers
        champion = pointers.read("champion")
        pinned = champion is not None and champion.pinned
        if self._untrained is not None or pinned or not self._folder.by_evidence:
            return champion
        return pointers.read("candidate")

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
