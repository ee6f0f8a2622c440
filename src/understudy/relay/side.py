"""What both sides of a relay are: a run folder and a store that are kept alike, look by look."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from understudy.experience.spool import Spool
from understudy.registry.run_folder import RunFolder
from understudy.relay.local import LocalState
from understudy.relay.report import RelayCounts
from understudy.relay.stores import ObjectStore


class StoreSide(ABC):
    """One look after the other: `cycle`, after `start`.

    Args:
        problem: Called with what a person must know.
        note: Called with what a person may want to know.
    """

    def __init__(
        self,
        folder: RunFolder,
        store: ObjectStore,
        local: LocalState,
        *,
        problem: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._config = folder.config.relay
        self._store = store
        self._local = local
        self._problem = problem
        self._note = note
        self._spool = Spool(folder.root, folder.spec, folder.clock)
        self.counts = RelayCounts()

    @abstractmethod
    def start(self) -> None:
        """What needs the store before the first look. May be repeated."""

    @abstractmethod
    def cycle(self) -> bool:
        """One look at both; True: there is more to do at once."""

    @abstractmethod
    def offline(self) -> None:
        """What needs no store: keep the bounds of what waits, and count it."""
