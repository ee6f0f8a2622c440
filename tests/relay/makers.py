"""Machines of a relay on one disk: players' folders, a learner's, and a store that can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from walk.toys import episode, learner, open_run, settings, spool_of, work_to_the_end

from understudy.core.clock import SystemClock
from understudy.core.config import Config
from understudy.core.errors import StoreUnavailable
from understudy.registry.run_folder import RunFolder
from understudy.relay.learner import LearnerSide
from understudy.relay.local import LocalState
from understudy.relay.player import PlayerSide
from understudy.relay.side import StoreSide
from understudy.relay.stores import FolderStore, ObjectStore, StoredObject

T = TypeVar("T")
Failure: TypeAlias = Literal["before", "after", "killed"]
CONFIG = settings(relay__bundle_matches=2, relay__poll_s=0.05, learner__batch_matches=2)


class Killed(BaseException):
    """A process ends here: nothing may catch it."""


class FailingStore(FolderStore):
    """Fails at one operation: before it takes effect, after it (the answer is lost), or by the end
    of the process that asked."""

    def __init__(self, root: Path, *, at: int = -1, how: Failure = "before") -> None:
        super().__init__("store", root)
        self._at = at
        self._how = how
        self.asked = 0

    def create(self, key: str, data: bytes) -> bool:
        return self._meet(lambda: super(FailingStore, self).create(key, data))

    def get(self, key: str) -> bytes:
        return self._meet(lambda: super(FailingStore, self).get(key))

    def list(self, prefix: str, *, most: int | None = None) -> list[StoredObject]:
        return self._meet(lambda: super(FailingStore, self).list(prefix, most=most))

    def delete(self, keys: Iterable[str]) -> None:
        for key in list(keys):
            self._meet(lambda key=key: super(FailingStore, self).delete([key]))  # type: ignore[misc]

    def _meet(self, effect: Callable[[], T]) -> T:
        self.asked += 1
        if self.asked - 1 != self._at:
            return effect()
        if self._how == "before":
            raise StoreUnavailable("store: no answer")
        answer = effect()
        if self._how == "killed":
            raise Killed
        raise StoreUnavailable(f"store: the answer {type(answer).__name__} is lost")


class Machine:
    """A run folder with one side of a relay; `restart` is what the next process sees."""

    def __init__(
        self,
        root: Path,
        store: ObjectStore,
        side: Literal["player", "learner"],
        config: Config = CONFIG,
        folder: RunFolder | None = None,
    ) -> None:
        self.folder: RunFolder = folder or open_run(root, config, SystemClock())
        self.problems: list[str] = []
        self._store = store
        self._side = side
        self.restart()

    def restart(self, store: ObjectStore | None = None) -> None:
        self._store = store or self._store
        self._started = False
        local = LocalState(self.folder.root, self._store.name, self._side)
        self.name = local.machine
        kind = PlayerSide if self._side == "player" else LearnerSide
        told = self.problems.append
        self.side: StoreSide = kind(self.folder, self._store, local, problem=told, note=told)

    def play(self, *names: str) -> None:
        """Finish matches with these ids."""
        for name in names:
            now = self.folder.clock.time()
            spool_of(self.folder).put(episode(name, finished_at=now))

    def learn(self) -> None:
        work_to_the_end(learner(self.folder))

    def look(self) -> None:
        """One look at the store; one that fails is made again later."""
        try:
            if not self._started:
                self.side.start()
                self._started = True
            while self.side.cycle():
                pass
        except StoreUnavailable:
            pass
        except Killed:
            self.restart()
