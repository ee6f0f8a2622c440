"""The store: the ledger's files kept small and synced, by a thread or when asked.

A file goes when nothing needs it, in order, and only after what replaces it is safe from a power
cut; what is still needed of a file that stands in the way is carried over to the newest.

Decision ids: ascending for ever, across restarts and power cuts, also when all logs are gone.

Ids are reserved ahead in blocks, in one small synced file: whatever a client was told before a
power cut is below the block that the next process begins with. A clean stop gives the rest back.

A thread that syncs a moment after something was written, and not at all when nothing is.
"""

from __future__ import annotations

import contextlib
import errno
import threading
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.locks import BoundedLock
from understudy.experience.ledger.index import DecisionIndex
from understudy.experience.ledger.log import Log, LogFile
from understudy.experience.ledger.records import Carried, Header, Record
from understudy.experience.ledger.recovery import Found, recover
from understudy.policy.spec import PolicySpec

_NAME = "ids.json"
BLOCK = 65_536


class Reservation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of the file."""

    below: int
    """Every id that was ever given out is below this."""
    crc32: int


class Ids:
    """Gives out ids: `take` under the ledger's lock, `top_up` without it."""

    def __init__(self, folder: Path, *, tell: Callable[[str], None]) -> None:
        self._path = folder / _NAME
        self._writing = BoundedLock("the file of ids")
        self._below = self._read(tell)
        self.next = max(1, self._below)

    def at_least(self, key: int) -> None:
        """The logs say that everything below this was given out."""
        if key > self.next:
            # The reservation was lost, so a power cut may have taken higher ones with it.
            self.next = key + BLOCK

    def take(self, count: int) -> range:
        """New ids; an OSError where they cannot be reserved."""
        if self.next + count > self._below:
            self._reserve(self.next + count + BLOCK)
        taken = range(self.next, self.next + count)
        self.next += count
        return taken

    def top_up(self) -> None:
        """Reserve ahead, so that `take` never has to wait for the disk."""
        if self._below - self.next < BLOCK // 2:
            self._reserve(self.next + BLOCK)

    def give_back(self) -> None:
        """A clean stop: the next process goes on from here."""
        with self._writing:
            self._write(self.next)

    def _reserve(self, below: int) -> None:
        with self._writing:
            if below > self._below:
                self._write(below)
                self._below = below

    def _write(self, below: int) -> None:
        reservation = Reservation(below=below, crc32=_checksum(below))
        files.write_atomic(self._path, msgspec.json.encode(reservation))

    def _read(self, tell: Callable[[str], None]) -> int:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return 0
        try:
            found = msgspec.json.decode(data, type=Reservation)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            found = Reservation(below=0, crc32=-1)
        if found.crc32 != _checksum(found.below):
            tell(f"{_NAME} is damaged: ids go on from what the logs name")
            return 0
        return found.below


def _checksum(below: int) -> int:
    return zlib.crc32(str(below).encode())


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


_FEW_FILES = 8
_CARRIED = 512
"""Decisions that one sync carries over at most: it holds the lock for about a millisecond."""
_ABOUT_BYTES = 160
"""Of a decision on disk, beside its features."""


class Store:
    """Logs and ids in one folder. `write`, `ids.take` and `recover` under the ledger's lock."""

    def __init__(
        self,
        folder: Path,
        spec: PolicySpec,
        book: DecisionIndex,
        lock: BoundedLock,
        *,
        rotate_bytes: int,
        unsealed: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> None:
        files.make_folders(folder)
        files.sweep(folder)
        self._spec, self._book, self._lock, self._unsealed = spec, book, lock, unsealed
        self._tell, self._folder = tell, folder
        self._stopped = False
        self._rotate_bytes = rotate_bytes
        self._syncing = threading.Lock()
        self._syncer: Syncer | None = None
        self._doomed: list[LogFile] = []
        self.ids = Ids(folder, tell=tell)
        self._log = Log(folder, rotate_bytes=rotate_bytes, header=self._header)

    def recover(self) -> Found:
        """What the files say; ids go on after the highest."""
        found = recover(self._log.files, self._spec, tell=self._tell)
        self.ids.at_least(found.next_id)
        return found

    def write(self, records: Sequence[Record], ids: Sequence[int] = ()) -> None:
        """All of them in one go; the file is kept for as long as one of `ids` is live."""
        if self._stopped:  # a spool that hung until now must not write beside the next process
            raise OSError(errno.EBADF, "the ledger was stopped", str(self._folder))
        self._log.append(records, ids)
        if self._syncer is not None:
            self._syncer.dirty()

    def sync(self, timeout_s: float = -1.0) -> None:
        """Everything so far survives a power cut from here on; files that are done are removed.

        TimeoutError where another sync takes longer than `timeout_s`; negative: wait for it.
        """
        if not self._syncing.acquire(timeout=timeout_s):
            raise TimeoutError(f"the disk has not answered for {timeout_s:g} s")
        try:
            self._sync()
            self.ids.top_up()
            with self._lock:
                self._carry()
        finally:
            self._syncing.release()

    def start(self, every_s: float) -> None:
        """Sync from now on, this long after something was written."""
        self._syncer = Syncer(self.sync, every_s, tell=self._tell)

    def stop(self, timeout_s: float) -> None:
        """Sync a last time, and let the next process go on with the ids."""
        if self._syncer is not None:
            self._syncer.stop(timeout_s)
        try:
            self.sync(timeout_s)
            self.ids.give_back()
        except OSError as error:  # TimeoutError is one
            self._tell(f"the last moment of the ledger could not be synced: {error}")
        self._stopped = True
        if self._lock.acquire(timeout_s):  # else a write hangs, and the file stays held
            try:
                self._log.end()
            finally:
                self._lock.release()

    def _sync(self) -> None:
        with self._lock:
            dirty, new_name = self._log.take_dirty()
            if not self._unsealed():  # else what is left might look like another segment
                self._doomed += self._log.take_done(self._book.live)
        try:
            for file in dirty:
                files.sync(file.path, name=new_name)
        except OSError:
            with self._lock:
                self._log.put_back(dirty)
            raise
        while self._doomed:
            with contextlib.suppress(FileNotFoundError):
                files.remove(self._doomed[0].path, synced=True)  # in order, also on disk
            del self._doomed[0]

    def _header(self) -> Header:
        counts = self._book.counts
        return Header(
            next_id=self.ids.next,
            opened=counts.opened,
            settled=counts.settled,
            expired=counts.expired,
            superseded=counts.superseded,
            orphaned=counts.orphaned,
        )

    def _carry(self) -> None:
        """Copy what is needed of the oldest file to the newest, where old files pile up.

        One idle territory would otherwise keep every file since. This begins when a third of what
        lies on disk is needed at most, so it adds at most half to what is written anyhow.
        """
        live = self._book.live
        needed = len(live) * (4 * len(self._spec.features) + _ABOUT_BYTES)
        if len(self._log.files) <= max(_FEW_FILES, 3 * needed // self._rotate_bytes):
            return
        oldest = self._log.files[0]
        ids = [key for key in oldest.ids if key in live]
        # What was sealed is about to go, and has to stay before the record that says so.
        entries = [live[key] for key in ids if not live[key].sealed][:_CARRIED]
        if not entries:
            return
        carried = [entry.opened.id for entry in entries]
        self.write(
            [
                Carried(
                    opened=entry.opened,
                    closing=entry.closing,
                    bootstrap=entry.cut,
                    outcome=entry.outcome,
                    added=entry.added,
                )
                for entry in entries
            ],
            carried,
        )
        oldest.ids = deque(sorted(set(ids) - set(carried)))
