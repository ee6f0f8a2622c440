"""The promotion log of a run: numbered records, created exclusively, never changed.

    00000001-00001000.jsonl    a block: the files of 1,000 records, one after the other
    00001001.json              a record: its checksum, and its content in the second line

The order of records is the order in which their numbers were taken, so it needs neither a lock nor
a clock: of two processes that create the same number one fails, reads what the other wrote, and
takes the next. A record is whole and synced before it has its name.

Old records are put into blocks (`compact`), several processes at once if it so happens. A block is
created exclusively, and synced before the files of its records are removed. So a record is always
in a file of its own, in a block, or in both, and two rules make every reader see it once:

- A file of a record counts only while its block does not exist *after* it was read. A process that
  stalled before it created a record may find the number free again, long after it was used; what it
  creates then is covered by the block, and no reader takes it.
- After creating a record its writer looks for the block. If another record has the number there,
  the number was used: the new record is void, and is created again under the next number. A writer
  that stalled after it created its record finds that one in the block.

A damaged record is void too: its number stays taken, the others are read, and `problem` names the
file. A block with a damaged record is not made, so that the file stays where a person finds it.
ADR 0035 gives the reasons.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from understudy.core import files
from understudy.core.errors import FileFormatError
from understudy.core.seals import fits, seal, unseal
from understudy.gates.promotion.records import Record
from understudy.registry.pointers import record_numbers
from understudy.telemetry.text import complain

OWN = "own"
"""Inside the log's folder, where matches are judged on another machine: the log of this machine's
own records. The records beside it are then copies of the log that is judged by."""
BLOCK = 1000
"""Records of a block. A block is made when as many records lie behind it."""
_DIGITS = 8
_PATIENCE_S = 1.0
_LOOK_AGAIN_S = 0.01


class _Stored(NamedTuple):
    path: Path
    body: bytes | None
    """None: damaged."""


class PromotionLog:
    """The log of one run folder, read from its beginning and then on."""

    def __init__(
        self, folder: Path, *, problem: Callable[[str], None] = complain, after: int = 0
    ) -> None:
        """`after`: the record behind which reading begins."""
        self.folder = folder
        self._problem = problem
        self._next = after + 1
        self._compacted = 0
        """Blocks that this process has looked after."""
        self._decoder = msgspec.json.Decoder(Record)

    @property
    def read(self) -> int:
        """The last record that was read."""
        return self._next - 1

    def new(self) -> list[tuple[int, Record]]:
        """The records since the last call, in order.

        Raises:
            FileFormatError: A record is whole, but of a kind that this program does not know.
        """
        records: list[tuple[int, Record]] = []
        try:
            for block in self.new_blocks():
                records += block
        except FileFormatError:
            if not records:  # else these first; the next call comes back to that one
                raise
        return records

    def new_blocks(self) -> Iterator[list[tuple[int, Record]]]:
        """The same, at most a block at a time: a log of any length needs the memory of one.

        Raises:
            FileFormatError: As of `new`, after the records before that one.
        """
        while found := self._read_on():
            records: list[tuple[int, Record]] = []
            for path, body in found:
                number = self._next
                if body is None:
                    self._problem(
                        f"{path}: record {number} of the promotion log is damaged and counts as "
                        "not written; restore the file from a copy and restart, or leave it"
                    )
                else:
                    try:
                        records.append((number, self._decoder.decode(body)))
                    except msgspec.MsgspecError as error:
                        if records:  # these first
                            break
                        raise FileFormatError(
                            f"{path}: record {number}: {error}; a newer Understudy may have "
                            "written it: update this one"
                        ) from error
                self._next = number + 1
            yield records

    def new_bodies(self) -> list[bytes]:
        """The same, as bytes: from the next number on without gaps, empty where one is damaged."""
        bodies: list[bytes] = []
        while found := self._read_on():
            bodies += [one.body or b"" for one in found]
            self._next += len(found)
        return bodies

    def copy(self, body: bytes) -> None:
        """Append a record of another folder's log under the number that it has there. Only one
        process may do so, and none may `create` beside it."""
        files.make_folders(self.folder)
        with contextlib.suppress(FileExistsError):  # it was killed before it had read on
            files.create_exclusive(self._path(self._next), seal(body) if body else b"")
        self._next += 1

    def create(self, record: Record) -> int:
        """Append after everything that was read; FileExistsError: read on first, there is more."""
        number = self._next
        path = self._path(number)
        files.make_folders(self.folder)
        # A later number is taken: the file of this one is gone, after a power cut with several
        # writers or by a person's hand. The number stays void.
        gone = self._path(number + 1).exists()
        body = msgspec.json.encode(record)
        files.create_exclusive(path, b"" if gone else seal(body))
        block = self._read_block(number - (number - 1) % BLOCK)
        used = block is not None and block[(number - 1) % BLOCK].body != body
        if used:
            with contextlib.suppress(FileNotFoundError):  # another process compacts too
                files.remove(path)
        if used or gone:
            raise FileExistsError(str(path))
        self._next += 1
        return number

    def compact(self) -> int:
        """Put old records into blocks, as far as they were read; returns how many blocks."""
        whole = (self._next - 1) // BLOCK - 1
        if whole <= self._compacted:
            return 0
        files.sweep(self.folder)
        single = set(record_numbers(self.folder))
        made = 0
        for first in range(1 + self._compacted * BLOCK, whole * BLOCK, BLOCK):
            left = [number for number in range(first, first + BLOCK) if number in single]
            if not left:
                continue
            if len(left) == BLOCK:
                made += self._make_block(first)
            block = self._read_block(first)
            for number in left:
                if block is not None and block[number - first].body is not None:
                    with contextlib.suppress(FileNotFoundError):  # another process compacts too
                        files.remove(self._path(number))
        self._compacted = whole
        return made

    # --- reading ---------------------------------------------------------------------------------

    def _read_on(self) -> list[_Stored]:
        """The next records, to the end of their block at most; empty: there are none yet."""
        first = self._next - (self._next - 1) % BLOCK
        found: list[_Stored] = []
        for number in range(self._next, first + BLOCK):
            stored = self._read(number)
            if stored is None:
                break
            found.append(stored)
        block = self._read_block(first)  # after the records: see above
        return found if block is None else block[self._next - first :]

    def _read(self, number: int) -> _Stored | None:
        """A record that has a file of its own; None: it has none."""
        path = self._path(number)
        patient_until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                body = unseal(path.read_bytes())
            except FileNotFoundError:
                return None
            if body is not None or self._path(number + 1).exists():
                return _Stored(path, body)
            if time.monotonic() > patient_until:
                return _Stored(path, None)
            # Where there are no hard links a record has its name before its content.
            time.sleep(_LOOK_AGAIN_S)

    def _read_block(self, first: int) -> list[_Stored] | None:
        """All records of a block; None: it does not exist, or its records have their own files."""
        path = self._block_path(first)
        try:
            lines = path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return None
        if len(lines) == 2 * BLOCK + 1:
            pairs = zip(lines[0:-1:2], lines[1:-1:2], strict=True)
            return [_Stored(path, body if fits(digest, body) else None) for digest, body in pairs]
        single = [self._read(number) for number in range(first, first + BLOCK)]
        if None not in single:  # without hard links: a block that is or was being written
            return None
        return [one or _Stored(path, None) for one in single]

    # --- blocks ----------------------------------------------------------------------------------

    def _make_block(self, first: int) -> bool:
        """Whether this process made the block; not if a record is damaged or another was faster."""
        whole: list[bytes] = []
        for number in range(first, first + BLOCK):
            try:
                data = self._path(number).read_bytes()
            except FileNotFoundError:  # another process compacts too
                return False
            if unseal(data) is None:
                return False
            whole.append(data + b"\n")
        try:
            files.create_exclusive(self._block_path(first), b"".join(whole))
        except FileExistsError:
            return False
        return True

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:0{_DIGITS}d}.json"

    def _block_path(self, number: int) -> Path:
        """The block that this record belongs to."""
        first = number - (number - 1) % BLOCK
        return self.folder / f"{first:0{_DIGITS}d}-{first + BLOCK - 1:0{_DIGITS}d}.jsonl"
