"""The journal: events appended as JSON lines, one file per process, read by every screen.

Writing never raises: a full disk is reported once on stderr, the game goes on, and followers in
this process still get the event. Readers skip a line that a crash cut off, and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.clock import Clock
from understudy.telemetry.events import Event
from understudy.telemetry.text import complain

_SURROGATE = re.compile("[\ud800-\udfff]")


class Entry(msgspec.Struct, frozen=True):
    """When and by whom something happened, and what."""

    t: float
    by: str
    e: Event


class Journal:
    """The file of one process."""

    def __init__(
        self, folder: Path, by: str, clock: Clock, also: Callable[[Entry], None] | None = None
    ) -> None:
        stamp = int(clock.time() * 1e3)
        self._path = folder / f"{by}-{stamp:013d}-{os.getpid()}.jsonl"
        self._by = by
        self._clock = clock
        self._readers = [] if also is None else [also]
        self._complained = False
        self._lock = threading.Lock()

    def follow(self, reader: Callable[[Entry], None]) -> None:
        """From now on this reader is given every entry, too."""
        self._readers.append(reader)

    def write(self, event: Event) -> None:
        """Append one event."""
        entry = Entry(t=self._clock.time(), by=self._by, e=event)
        with self._lock:
            for each in (self._append, *self._readers):
                try:
                    each(entry)
                except OSError as error:
                    self._complain(error)

    def _append(self, entry: Entry) -> None:
        files.append(self._path, _encoded(entry))

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            complain(f"cannot write the journal: {error}")


class Reader:
    """Reads all journals of a folder, each call only what is new."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offsets: dict[Path, int] = {}

    def new(self) -> list[Entry]:
        """Entries since the last call, in the order of time. OSError: nothing counts as read."""
        entries: list[Entry] = []
        offsets: dict[Path, int] = {}
        for path in sorted(self._folder.glob("*.jsonl")):
            offset = self._offsets.get(path, 0)
            if path.stat().st_size == offset:
                continue
            with path.open("rb") as file:
                file.seek(offset)
                data = file.read()
            end = data.rfind(b"\n") + 1
            offsets[path] = offset + end
            entries += _decoded(data[:end])
        self._offsets |= offsets
        return sorted(entries, key=lambda entry: entry.t)


def _encoded(entry: Entry) -> bytes:
    try:
        return msgspec.json.encode(entry) + b"\n"
    except UnicodeEncodeError:  # a file name that is not UTF-8: its odd bytes are told as `\udc80`
        text = json.dumps(msgspec.to_builtins(entry), ensure_ascii=False)
        return _SURROGATE.sub(lambda odd: f"\\\\u{ord(odd[0]):04x}", text).encode() + b"\n"


def _decoded(data: bytes) -> Iterator[Entry]:
    decoder = msgspec.json.Decoder(Entry)
    for line in data.splitlines():
        try:
            yield decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue  # cut off by a crash and continued by the next line, or of a later program
