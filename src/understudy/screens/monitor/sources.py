"""Where a monitor reads from: one run, or the runs of a folder. `server_reader` reads a server.

A reader raises `UnderstudyError` or `OSError` where there is nothing to read; the screen says so
and asks again. `Poller` reads in a thread of its own, so that a slow disk never stops the screen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from understudy.core.errors import UnderstudyError
from understudy.telemetry.run_view import RunView
from understudy.telemetry.text import plain

_REST = 9.0

R = TypeVar("R")


class RollbackChoice(NamedTuple):
    """Where a rollback may go."""

    version: int
    """The one that is proposed."""
    why: str
    versions: tuple[int, ...]
    """All that are kept, ascending."""


class RunControls(NamedTuple):
    """What a person may change from the screen; each returns what to say. They may raise
    `UnderstudyError` or `OSError`."""

    rollback_choice: Callable[[], RollbackChoice]
    roll_back: Callable[[int], str]
    switch_pause: Callable[[bool], str]


class RunSource(NamedTuple):
    """One run."""

    name: str
    read: Callable[[], RunView]
    controls: RunControls | None = None
    """None: nothing can be changed from here."""


class RunLine(NamedTuple):
    """One run of a folder, for the table of all: its newest view, or why there is none."""

    name: str
    view: RunView | None = None
    error: str = ""


class FolderSource(NamedTuple):
    """The runs of a folder."""

    name: str
    read: Callable[[], Sequence[RunLine]]
    open: Callable[[str], RunSource]


class Reading(NamedTuple, Generic[R]):
    """What a reader gave, or why it gave nothing."""

    value: R | None = None
    error: str = ""


READER = "monitor"
"""The name of each thread that reads."""


def wait_for_readers(seconds: float) -> bool:
    """Wait until no thread reads any more, at most so long: an interpreter that ends while one of
    them imports or decodes may abort. False: one still reads, from a folder that hangs maybe."""
    end = time.monotonic() + seconds
    readers = [one for one in threading.enumerate() if one.name == READER]
    for one in readers:
        one.join(max(end - time.monotonic(), 0.0))
    return not any(one.is_alive() for one in readers)


class Poller(Generic[R]):
    """Calls `read` in a daemon thread, every `interval_s` and when it is woken.

    Reading takes a tenth of the time at most: a run that is slow to read is read less often. The
    first reading does not count: it opens the run, and imports what reads it.
    """

    def __init__(
        self, read: Callable[[], R], show: Callable[[Reading[R]], None], interval_s: float
    ) -> None:
        self._read = read
        self._show = show
        self._interval_s = interval_s
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._poll, name=READER, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Read now: something was changed."""
        self._wake.set()

    def stop(self) -> None:
        """Show nothing more; a reading that is under way is dropped."""
        self._stopped.set()
        self._wake.set()

    def _poll(self) -> None:
        opened = False
        while not self._stopped.is_set():
            began = time.thread_time()
            reading = taken(self._read)
            if self._stopped.is_set():
                return
            self._show(reading)
            used_s = time.thread_time() - began if opened else 0.0
            opened = True
            self._wake.wait(max(self._interval_s, _REST * used_s))
            self._wake.clear()


def taken(read: Callable[[], R]) -> Reading[R]:
    """One reading. Whatever a damaged run folder makes a reader raise is said, and tried again."""
    try:
        return Reading(read())
    except (UnderstudyError, OSError) as error:
        return Reading(error=plain(str(error), limit=400))
    except Exception as error:  # noqa: BLE001  the boundary: a screen must outlive what it shows
        return Reading(error=plain(f"{type(error).__name__}: {error}", limit=400))
