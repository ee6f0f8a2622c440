"""Decision ids: ascending for ever, across restarts and power cuts, also when all logs are gone.

Ids are reserved ahead in blocks, in one small synced file: whatever a client was told before a
power cut is below the block that the next process begins with. A clean stop gives the rest back.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.locks import BoundedLock

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
