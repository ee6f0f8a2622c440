"""The ledger on disk: numbered log files, the reservation of decision ids, and their syncing.

Records are appended to `00000001.log`, `00000002.log` and so on. An append survives SIGKILL at once
and a power cut after `sync`. A file is removed when no live decision needs it, after all older
files, and only after the records that replace it are synced. So a record refers to its own file or
to an older one for as long as either exists.

Ids ascend across restarts and power cuts, even if all log files are lost: `ids.json` reserves a
block of them ahead, and every id that a client got before a power cut is below that block.
"""

from __future__ import annotations

import contextlib
import errno
import threading
import zlib
from collections import deque
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.locks import BoundedLock
from understudy.experience.ledger.index import DecisionIndex
from understudy.experience.ledger.records import Carried, Header, Record, frame
from understudy.policy.spec import PolicySpec

BLOCK = 65_536
"""Ids that are reserved ahead."""
_IDS_NAME = "ids.json"
_SUFFIX = ".log"
_DIGITS = 8
_IDLE_S = 5.0
_FEW_FILES = 8
_CARRIED = 512
"""The most decisions that one sync carries over: it holds the lock for about a millisecond."""
_ABOUT_BYTES = 160
"""Of a decision on disk, beside its features."""


@dataclass(eq=False)
class LogFile:
    """One file, and the decisions that still need it."""

    path: Path
    size: int = 0
    ids: deque[int] = field(default_factory=deque)

    def needed(self, live: Container[int]) -> bool:
        """Whether a decision in it is live; forgets those in front that are not."""
        while self.ids and self.ids[0] not in live:
            self.ids.popleft()
        return bool(self.ids)


class Log:
    """All files, oldest first; the last one is appended to. Called under the ledger's lock."""

    def __init__(self, folder: Path, *, rotate_bytes: int, header: Callable[[], Header]) -> None:
        self._folder = folder
        self._rotate_bytes = rotate_bytes
        self._header = header
        self.files: list[LogFile] = [
            LogFile(path, path.stat().st_size) for path in log_paths(folder)
        ]
        self._current: LogFile | None = None
        """None: the next append begins a file. Files of an earlier process and files with a failed
        write get no more records: half a frame can only be at the end of a file."""
        self._dirty: list[LogFile] = []
        self._new_name = False

    def append(self, records: Sequence[Record], ids: Iterable[int] = ()) -> None:
        """Appends one frame; the file is kept for as long as one of `ids` is live."""
        data = frame(records)
        if self._current is not None and self._current.size >= self._rotate_bytes:
            self.end()
        current = self._current = self._current or self._begin()
        try:
            files.append(current.path, data)
        except OSError:
            self.end()
            raise
        current.size += len(data)
        current.ids.extend(ids)
        if current not in self._dirty:
            self._dirty.append(current)

    def end(self) -> None:
        """Closes the current file; the next append begins another."""
        if self._current is not None:
            files.release(self._current.path)
            self._current = None

    def take_dirty(self) -> tuple[list[LogFile], bool]:
        """Takes the files with unsynced records, and whether one of them has a new name."""
        dirty, new_name = self._dirty, self._new_name
        self._dirty, self._new_name = [], False
        return dirty, new_name

    def put_back(self, dirty: list[LogFile]) -> None:
        """Returns files whose sync failed."""
        self._dirty = dirty + [one for one in self._dirty if one not in dirty]
        self._new_name = True

    def take_done(self, live: Container[int]) -> list[LogFile]:
        """Takes the oldest files that no live decision needs; never the newest file."""
        done = 0
        while done < len(self.files) - 1 and not self.files[done].needed(live):
            done += 1
        taken, self.files = self.files[:done], self.files[done:]
        return taken

    def _begin(self) -> LogFile:
        number = _number(self.files[-1].path) + 1 if self.files else 1
        path = self._folder / f"{number:0{_DIGITS}d}{_SUFFIX}"
        data = frame([self._header()])
        try:
            files.hold(path)
            files.append(path, data)
        except OSError:
            files.release(path)
            with contextlib.suppress(OSError):
                files.remove(path)
            raise
        self.files.append(LogFile(path, len(data)))
        self._new_name = True
        return self.files[-1]


def log_paths(folder: Path) -> list[Path]:
    """The files of a ledger, oldest first."""
    found = folder.glob(f"*{_SUFFIX}")
    return sorted((one for one in found if one.stem.isdecimal() and one.is_file()), key=_number)


def _number(path: Path) -> int:
    return int(path.stem)


class Reservation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of the file of ids."""

    below: int
    """All ids that were given out are below this"""
    crc32: int


class Ids:
    """Gives out ids, which it reserves on disk in blocks: `take` under the ledger's lock, `top_up`
    without it."""

    def __init__(self, folder: Path, *, tell: Callable[[str], None]) -> None:
        self._path = folder / _IDS_NAME
        self._writing = BoundedLock("the file of ids")
        self._below = self._read(tell)
        self.next = max(1, self._below)

    def at_least(self, key: int) -> None:
        """Goes on from `key` where the logs name higher ids than the reservation."""
        if key > self.next:
            # The reservation was lost, and a power cut may have lost records with higher ids.
            self.next = key + BLOCK

    def take(self, count: int) -> range:
        """New ids; OSError if they cannot be reserved."""
        if self.next + count > self._below:
            self._reserve(self.next + count + BLOCK)
        taken = range(self.next, self.next + count)
        self.next += count
        return taken

    def top_up(self) -> None:
        """Reserves ahead, so that `take` does not wait for the disk."""
        if self._below - self.next < BLOCK // 2:
            self._reserve(self.next + BLOCK)

    def give_back(self) -> None:
        """Ends the reservation at a clean stop: the next process continues without a gap."""
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
            tell(f"{_IDS_NAME} is damaged: ids go on from what the logs name")
            return 0
        return found.below


def _checksum(below: int) -> int:
    return zlib.crc32(str(below).encode())


class Syncer:
    """A thread that calls `sync` once, `every_s` after the first `dirty` since the last sync."""

    def __init__(
        self, sync: Callable[[], None], every_s: float, *, tell: Callable[[str], None]
    ) -> None:
        self._sync, self._every_s, self._tell = sync, every_s, tell
        self._dirty = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ledger-sync", daemon=True)
        self._thread.start()

    def dirty(self) -> None:
        if not self._dirty.is_set():
            self._dirty.set()

    def stop(self, timeout_s: float) -> None:
        """Ends the thread after the sync under way."""
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
            except Exception as error:  # noqa: BLE001  a thread without supervisor
                self._dirty.set()
                if not failed:  # once, not twenty times a second
                    self._tell(f"the ledger could not be synced, and is tried again: {error}")
                failed = True
            else:
                failed = False


class Store:
    """Log files and ids in one folder. `write` and `ids.take` need the ledger's lock."""

    def __init__(
        self,
        folder: Path,
        spec: PolicySpec,
        index: DecisionIndex,
        lock: BoundedLock,
        *,
        rotate_bytes: int,
        unsealed: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> None:
        files.make_folders(folder)
        files.sweep(folder)
        self._spec, self._index, self._lock, self._unsealed = spec, index, lock, unsealed
        self._tell, self._folder, self._rotate_bytes = tell, folder, rotate_bytes
        self._stopped = False
        self._syncing = threading.Lock()
        self._syncer: Syncer | None = None
        self._doomed: list[LogFile] = []
        self.ids = Ids(folder, tell=tell)
        self._log = Log(folder, rotate_bytes=rotate_bytes, header=self._header)

    @property
    def files(self) -> list[LogFile]:
        """Oldest first."""
        return self._log.files

    def write(self, records: Sequence[Record], ids: Sequence[int] = ()) -> None:
        """Appends one frame; its file is kept for as long as one of `ids` is live."""
        if self._stopped:  # a hung spooler must not write beside the next process
            raise OSError(errno.EBADF, "the ledger was stopped", str(self._folder))
        self._log.append(records, ids)
        if self._syncer is not None:
            self._syncer.dirty()

    def sync(self, timeout_s: float = -1.0) -> None:
        """Syncs what was written, then removes files that no live decision needs.

        TimeoutError if another sync takes longer than `timeout_s`; negative: no limit.
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
        """Starts the thread that syncs `every_s` after a write."""
        self._syncer = Syncer(self.sync, every_s, tell=self._tell)

    def stop(self, timeout_s: float) -> None:
        """Ends the thread, syncs once more and ends the reservation of ids."""
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
            if (
                not self._unsealed()
            ):  # else recovery would find another segment in the remaining files
                self._doomed += self._log.take_done(self._index.live)
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
        counts = self._index.counts
        return Header(
            next_id=self.ids.next,
            opened=counts.opened,
            settled=counts.settled,
            expired=counts.expired,
            superseded=counts.superseded,
            orphaned=counts.orphaned,
        )

    def _carry(self) -> None:
        """Copies live decisions of the oldest file to the newest, if there are many files.

        Without this, one idle territory would keep every later file. It begins when at most a third
        of the bytes on disk are live, so it adds at most half to what is written anyway.
        """
        live = self._index.live
        needed = len(live) * (4 * len(self._spec.features) + _ABOUT_BYTES)
        if len(self._log.files) <= max(_FEW_FILES, 3 * needed // self._rotate_bytes):
            return
        oldest = self._log.files[0]
        ids = [key for key in oldest.ids if key in live]
        # Sealed decisions leave soon, and must stay in a file before their `Sealed` record.
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
