"""The journal: events appended as JSON lines, one file per process, read by every screen.

Writing never raises: a full disk is reported once on stderr, the game goes on, and followers in
this process still get the event. Readers skip a line that a crash cut off, and nothing else.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.clock import Clock
from understudy.telemetry.events import Event
from understudy.telemetry.text import complain

SUFFIX = ".jsonl"
"""Of a journal's file name."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_CHUNK = 2**18
_LIST_EVERY_S = 30.0
_WARM_S = 86_400.0


class Entry(msgspec.Struct, frozen=True, gc=False):
    """When and by whom something happened, and what."""

    t: float
    by: str
    e: Event


_DECODER = msgspec.json.Decoder(Entry)


class Journal:
    """The file of one process; another one, under a new name, once that was deleted."""

    def __init__(
        self, folder: Path, by: str, clock: Clock, also: Callable[[Entry], None] | None = None
    ) -> None:
        self.folder = folder
        self.clock = clock
        self._by = by
        self._stamp = int(clock.time() * 1e3)
        self._begun = False
        self._readers = [] if also is None else [also]
        self._complained = False
        self._lock = threading.Lock()

    def follow(self, reader: Callable[[Entry], None]) -> None:
        """From now on this reader is given every entry, too."""
        self._readers.append(reader)

    def write(self, event: Event) -> None:
        """Append one event."""
        entry = Entry(t=self.clock.time(), by=self._by, e=event)
        with self._lock:
            for each in (self._append, *self._readers):
                try:
                    each(entry)
                except OSError as error:
                    self._complain(error)

    def _append(self, entry: Entry) -> None:
        if self._begun and not self._path.exists():
            # Retention deleted it. Readers know how much of that name they have read.
            self._stamp = max(int(entry.t * 1e3), self._stamp + 1)
        files.append(self._path, _encoded(entry))
        self._begun = True

    @property
    def _path(self) -> Path:
        return self.folder / f"{self._by}-{self._stamp:013d}-{os.getpid()}{SUFFIX}"

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            complain(f"cannot write the journal: {error}")


class Reader:
    """Reads all journals of a folder, each call only what is new.

    Args:
        folder: The journals of a run; one that is not there is empty.
        offsets: Bytes of each journal, by file name, that were read before.
        chunk: Bytes that are read at once.

    The order is that of time between journals, and that of the file within one. A journal is opened
    when the entries of the others have reached the time in its name, so that a year of journals
    needs the memory of those that were written at the same time.
    """

    def __init__(
        self, folder: Path, offsets: Mapping[str, int] | None = None, *, chunk: int = _CHUNK
    ) -> None:
        self._folder = folder
        self._chunk = chunk
        self.offsets = dict(offsets or {})
        """Bytes read of each journal, by file name."""
        self._warm: list[str] = []
        """Journals that were written to lately, or that are not read to their ends; those alone
        are looked at most of the time."""
        self._mtime_ns = -1
        self._listed = -_LIST_EVERY_S

    def new(self) -> list[Entry]:
        """Entries since the last call, in the order of time. OSError: nothing counts as read."""
        before = dict(self.offsets)
        try:
            return list(self.stream())
        except OSError:
            self.offsets = before
            raise

    def stream(
        self,
        *,
        held: tuple[float, float] | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Iterator[Entry]:
        """The same one by one, in bounded memory; an entry counts as read when it is yielded.

        Args:
            held: A time from which, and one up to which an entry is left for a later call, with all
                that follow it in its journal. So what another process writes a moment late still
                comes in order. An entry that is dated after both comes at once: a clock is wrong.
            progress: Called with the share of the bytes that were read, after each chunk.
        """
        grown = self._grown()
        total = max(1, sum(size - self.offsets.get(name, 0) for name, size in grown))
        read = 0

        def count(more: int) -> None:
            nonlocal read
            read += more
            if progress is not None:
                progress(min(read / total, 1.0))

        heap = [
            (_stamp(name), name, _Tail(self._folder / name, self.offsets, self._chunk, held, count))
            for name, _ in grown
        ]
        heapq.heapify(heap)
        while heap:
            _, name, tail = heapq.heappop(heap)
            limit, other = heap[0][:2] if heap else (math.inf, "")
            yield from tail.until(limit, first=name < other)
            if tail.next is not None:
                heapq.heappush(heap, (tail.next.t, name, tail))

    def _grown(self) -> list[tuple[str, int]]:
        """Journals with more bytes than were read, and their sizes. One that is shorter than what
        was read was deleted by retention and begun anew by a process of an older release."""
        found = []
        for name, size in self._sizes():
            offset = self.offsets.get(name, 0)
            if size < offset:
                self.offsets[name] = 0
            if size != offset:
                found.append((name, size))
        return found

    def _sizes(self) -> list[tuple[str, int]]:
        try:
            mtime_ns = self._folder.stat().st_mtime_ns
        except FileNotFoundError:
            return []
        now = time.monotonic()
        if mtime_ns == self._mtime_ns and now - self._listed < _LIST_EVERY_S:
            sizes = []
            for name in self._warm:
                with contextlib.suppress(FileNotFoundError):  # deleted this moment
                    sizes.append((name, (self._folder / name).stat().st_size))
            return sizes
        found = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX) and not entry.name.startswith(files.TEMPORARY):
                    with contextlib.suppress(FileNotFoundError):
                        # Not `entry.stat`: Windows answers that with the size at the last closing.
                        stat = os.stat(entry.path)  # noqa: PTH116  a path object takes as long again
                        found.append((entry.name, stat.st_size, stat.st_mtime))
        newest = max((written for _, _, written in found), default=0.0)
        self._warm = [
            name
            for name, size, written in found
            if written > newest - _WARM_S or self.offsets.get(name, 0) != size
        ]
        # A journal made in the same tick of the file system's clock would not change the time.
        settled = mtime_ns < time.time_ns() - 1_000_000_000
        self._mtime_ns, self._listed = mtime_ns if settled else -1, now
        return sorted((name, size) for name, size, _ in found)


class _Tail:
    """What is unread of one journal, a chunk at a time."""

    def __init__(
        self,
        path: Path,
        offsets: dict[str, int],
        chunk: int,
        held: tuple[float, float] | None,
        count: Callable[[int], None],
    ) -> None:
        self._path = path
        self._offsets = offsets
        self._chunk = chunk
        self._held = held
        self._count = count
        self.next: Entry | None = None
        """The next entry, once `until` was called; None: there is no more."""
        self._behind = 0
        """The offset behind that entry."""
        self._ended = False
        self._entries = self._read()

    def until(self, limit: float, *, first: bool) -> Iterator[Entry]:
        """Entries before this time, or with `first` up to it; the one that is next anyway."""
        name, offsets, entries = self._path.name, self._offsets, self._entries
        entry = self.next
        if entry is None:
            entry = self.next = next(entries, None)
            if entry is None or entry.t > limit or (entry.t == limit and not first):
                return
        while entry is not None:
            offsets[name] = self._behind
            yield entry
            entry = self.next = next(entries, None)
            if entry is not None and (entry.t > limit or (entry.t == limit and not first)):
                return

    def _read(self) -> Iterator[Entry]:
        name, decode = self._path.name, _DECODER.decode
        low, high = self._held or (math.inf, math.inf)
        while not self._ended:
            data = self._whole_lines()
            offset = self._offsets.get(name, 0)
            for line in data.split(b"\n")[:-1]:
                offset += len(line) + 1
                try:
                    entry = decode(line)
                except (msgspec.MsgspecError, UnicodeDecodeError):
                    continue  # cut off by a crash and continued by the next line, or of a later one
                if low < entry.t <= high:
                    return
                self._behind = offset
                yield entry
            self._offsets[name] = offset

    def _whole_lines(self) -> bytes:
        """The next chunk up to its last line break; empty: no whole line is there."""
        size = self._chunk
        with self._path.open("rb") as file:
            file.seek(self._offsets.get(self._path.name, 0))
            data = file.read(size)
            while len(data) == size and b"\n" not in data:  # one long line
                data += file.read(size)
                size *= 2
        self._ended = len(data) < size
        data = data[: data.rfind(b"\n") + 1]
        self._count(len(data))
        return data


def _stamp(name: str) -> float:
    """When a journal was begun, by its name; 0: that does not say it."""
    parts = name.rsplit("-", 2)
    return int(parts[1]) / 1e3 if len(parts) == 3 and parts[1].isdecimal() else 0.0


def _encoded(entry: Entry) -> bytes:
    try:
        return msgspec.json.encode(entry) + b"\n"
    except UnicodeEncodeError:  # a file name that is not UTF-8: its odd bytes are told as `\udc80`
        text = json.dumps(msgspec.to_builtins(entry), ensure_ascii=False)
        return _SURROGATE.sub(lambda odd: f"\\\\u{ord(odd[0]):04x}", text).encode() + b"\n"
