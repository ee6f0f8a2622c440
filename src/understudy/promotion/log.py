"""The promotion log of a run: numbered records, created exclusively, never changed.

The order of records is the order in which their numbers were taken, so it needs neither a lock nor
a clock: of two processes that create the same number one fails, reads what the other wrote, and
takes the next. Numbers have no gaps. A record is whole and synced before it has its name.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.errors import FileFormatError
from understudy.gates.promotion.records import Record
from understudy.registry.versions import seal, unseal

_DIGITS = 8
_PATIENCE_S = 1.0
_LOOK_AGAIN_S = 0.01


class PromotionLog:
    """The log of one run folder, read from its beginning and then on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._next = 1
        self._decoder = msgspec.json.Decoder(Record)

    def new(self) -> list[tuple[int, Record]]:
        """The records since the last call, in order."""
        records: list[tuple[int, Record]] = []
        while (data := self._read(self._next)) is not None:
            try:
                records.append((self._next, self._decoder.decode(data)))
            except msgspec.MsgspecError as error:
                raise FileFormatError(f"{self._path(self._next)}: {error}") from error
            self._next += 1
        return records

    def create(self, record: Record) -> int:
        """Append after everything that was read; FileExistsError: read on first, there is more."""
        sequence = self._next
        files.make_folders(self.folder)
        files.create_exclusive(self._path(sequence), seal(msgspec.json.encode(record)))
        self._next += 1
        return sequence

    def _read(self, sequence: int) -> bytes | None:
        """The content of a record; None: there is none yet."""
        patient_until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                body = unseal(self._path(sequence).read_bytes())
            except FileNotFoundError:
                return None
            if body is not None:
                return body
            if time.monotonic() > patient_until:
                raise FileFormatError(f"{self._path(sequence)}: does not match its checksum")
            # Where there are no hard links a record has its name before its content.
            time.sleep(_LOOK_AGAIN_S)

    def _path(self, sequence: int) -> Path:
        return self.folder / f"{sequence:0{_DIGITS}d}.json"
