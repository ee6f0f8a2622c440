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
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

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

    def stream(self, *, progress: Callable[[float], None] | None = None) -> Iterator[Entry]:
        """The same one by one, in bounded memory. For a caller that takes all of them: entries
        count as read a batch at a time."""
        for batch in self.batches(progress=progress):
            yield from batch

    def batches(
        self,
        *,
        held: tuple[float, float] | None = None,
        most: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Iterator[list[Entry]]:
        """The same in lists, whose entries count as read when the list is yielded.

        Args:
            held: A time from which, and one up to which an entry is left for a later call, with all
                that follow it in its journal. So what another process writes a moment late still
                comes in order. An entry that is dated after both comes at once: a clock is wrong.
            most: Entries of all lists together; None: all.
            progress: Called with the share of the bytes that were read, after each chunk.

        How it works: each journal has a limit, before which nothing unread of it can come: the time
        in its name until it is opened, then the time of the last entry that was decoded. What all
        open journals hold up to the lowest limit is merged and yielded; then that journal is read
        on.
        """
        grown = self._grown()
        total = max(1, sum(size - self.offsets.get(name, 0) for name, size in grown))
        read = 0

        def count(more: int) -> None:
            nonlocal read
            read += more
            if progress is not None:
                progress(min(read / total, 1.0))

        tails = [
            _Tail(self._folder / name, self.offsets, self._chunk, held, count) for name, _ in grown
        ]
        limits = [(tail.limit, tail) for tail in tails]
        heapq.heapify(limits)
        opened: list[_Tail] = []
        while limits or opened:
            limit, lowest = heapq.heappop(limits) if limits else (_NO_LIMIT, None)
            if batch := _merged(opened, limit, most):
                yield batch
                if most is not None and not (most := most - len(batch)):
                    return
            if lowest is not None:
                lowest.read_on()
                opened = sorted({*opened, lowest}, key=lambda tail: tail.name)
                if not lowest.ended:
                    heapq.heappush(limits, (lowest.limit, lowest))
            opened = [tail for tail in opened if tail.entries or not tail.ended]

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


_Limit: TypeAlias = tuple[float, str]
"""A place in the order of entries: a time, and the journal's name among equal times."""
_NO_LIMIT: _Limit = (math.inf, "")


class _Tail:
    """What is unread of one journal, a chunk at a time.

    The order within a journal is that of its lines. So the place of an entry between those of other
    journals is not its own time but the latest one up to it, should a clock have been set back.
    """

    def __init__(
        self,
        path: Path,
        offsets: dict[str, int],
        chunk: int,
        held: tuple[float, float] | None,
        count: Callable[[int], None],
    ) -> None:
        self.name = path.name
        self.entries: list[Entry] = []
        """Decoded, and not taken yet."""
        self.times: list[float] = []
        """Their places in the order."""
        self.ended = False
        self.limit: _Limit = _stamp(path.name), path.name
        self._path = path
        self._offsets = offsets
        self._chunk = chunk
        self._held = held or (math.inf, math.inf)
        self._count = count
        self._ends: list[int] = []
        """Offsets behind the entries."""

    def ready(self, limit: _Limit) -> int:
        """How many entries lie up to a limit."""
        time, name = limit
        return (bisect_right if self.name <= name else bisect_left)(self.times, time)

    def take(self, count: int) -> None:
        """The first entries count as read, and are dropped."""
        if count:
            self._offsets[self.name] = self._ends[count - 1]
            del self.entries[:count], self.times[:count], self._ends[:count]

    def read_on(self) -> None:
        """Decode the next chunk that has an entry, once all entries are taken."""
        while not self.entries and not self.ended:
            begin = self._offsets.get(self.name, 0)
            data = self._whole_lines()
            self.entries, self._ends = _decoded(data, begin)
            if data and not self.entries:
                self._offsets[self.name] = begin + len(data)
            self._hold()
        times = accumulate((entry.t for entry in self.entries), max, initial=self.limit[0])
        self.times = list(times)[1:]
        if self.times:
            self.limit = self.times[-1], self.name

    def _hold(self) -> None:
        """Leave the first entry that is too young for a later call, with all that follow it."""
        low, high = self._held
        for place, entry in enumerate(self.entries if low < math.inf else ()):
            if low < entry.t <= high:
                del self.entries[place:], self._ends[place:]
                self.ended = True
                return

    def _whole_lines(self) -> bytes:
        """The next chunk up to its last line break; empty: no whole line is there."""
        size = self._chunk
        with self._path.open("rb") as file:
            file.seek(self._offsets.get(self._path.name, 0))
            data = file.read(size)
            while len(data) == size and b"\n" not in data:  # one long line
                data += file.read(size)
                size *= 2
        self.ended = len(data) < size
        data = data[: data.rfind(b"\n") + 1]
        self._count(len(data))
        return data


def _decoded(data: bytes, begin: int) -> tuple[list[Entry], list[int]]:
    """The entries of whole lines that begin at an offset, and the offsets behind them. A line that
    is no entry was cut off by a crash and continued by the next one, or is of a newer program; its
    bytes count with the entry before it."""
    lines, decode = data.split(b"\n")[:-1], _DECODER.decode
    try:
        entries = [decode(line) for line in lines]
        return entries, list(accumulate((len(line) + 1 for line in lines), initial=begin))[1:]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        entries, ends, end = [], [], begin
        for line in lines:
            end += len(line) + 1
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                entries.append(decode(line))
                ends.append(end)
        return entries, [*ends[:-1], end] if ends else []


def _merged(tails: Sequence[_Tail], limit: _Limit, most: int | None) -> list[Entry]:
    """Take the entries of journals, in the order of their names, up to a limit and a number."""
    ready = [(tail, count) for tail in tails if (count := tail.ready(limit))]
    entries = [entry for tail, count in ready for entry in tail.entries[:count]]
    if len(ready) > 1:
        times = [time for tail, count in ready for time in tail.times[:count]]
        order = sorted(range(len(times)), key=times.__getitem__)
    else:
        order = list(range(len(entries)))
    begin = 0
    for tail, count in ready:
        whole = most is None or len(entries) <= most
        tail.take(count if whole else sum(begin <= place < begin + count for place in order[:most]))
        begin += count
    return [entries[place] for place in order[:most]]


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
