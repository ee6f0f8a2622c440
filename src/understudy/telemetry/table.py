"""A CSV file that grows while training runs: buffered, appended in one write, never synced.

Every table has a column `steps` that never falls from row to row, so a session that goes on from a
version can cut off what is not part of it. Writing never raises: a full disk, or a file that
another program holds, is said once, and what was not written comes with the next rows.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from understudy.core import files
from understudy.telemetry.text import complain, plain

Value: TypeAlias = float | int | str | None
Row: TypeAlias = Mapping[str, Value]

STEPS = "steps"
_MOST = 20_000
"""Rows that wait for a file that cannot be written; of more, the oldest are lost."""


class Table:
    """One file; `preamble` is a line before the header, which begins with `#`."""

    def __init__(self, path: Path, columns: Sequence[str], *, preamble: str = "") -> None:
        self._path = path
        self._columns = list(columns)
        self._preamble = preamble
        self._buffer: list[Row] = []
        self._left = b""
        """what is missing of the last append; it may begin in the middle of a row"""
        self._complained = False

    def begin(self, at_steps: int) -> None:
        """Make the file, or cut an earlier one off after the last row of these steps."""
        try:
            before = self._path.read_bytes() if self._path.exists() else b""
            preamble, header, rows = _parsed(before)
            if before and STEPS not in header:  # lost in a power cut, or not ours
                files.move(self._path, self._path.with_name(f"{self._path.name}.damaged"))
            self._preamble = preamble or self._preamble
            columns = list(dict.fromkeys([*header, *self._columns]))
            if STEPS in header:
                self._columns = header  # until the file has the others, too
            kept = [row for row in rows if _steps(row) <= at_steps]
            after = self._whole(kept, columns)
            if after != before:
                files.write_atomic(self._path, after)
            self._columns = columns
        except OSError as error:
            self._complain(error)

    def add(self, row: Row) -> None:
        """One more row; columns that it leaves out stay empty."""
        self._buffer.append(row)

    def flush(self) -> None:
        """Everything added so far is in the file, or will be after a later flush."""
        try:
            self._append(self._left)  # first, as a file is widened by whole rows
            self._widen(self._buffer)
            rows, self._buffer = self._buffer, []
            self._append(_written(rows, self._columns))
        except OSError as error:
            del self._buffer[:-_MOST]
            self._complain(error)

    def rows(self) -> Iterator[dict[str, str]]:
        """What is in the file, as text by column."""
        try:
            yield from _parsed(self._path.read_bytes())[2]
        except OSError as error:
            self._complain(error)

    def _append(self, data: bytes) -> None:
        """Of a write that fails, what did not reach the file is left for the next one."""
        if not data:
            return
        self._left, before = data, self._size()
        try:
            files.append(self._path, data)
        except OSError:
            self._left = data[max(self._size() - before, 0) :]
            raise
        self._left = b""

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0

    def _widen(self, rows: Sequence[Row]) -> None:
        """Adds a new column (a new reward term) to the file, once."""
        new = {name: None for row in rows for name in row if name not in self._columns}
        if new:
            columns = [*self._columns, *new]
            written = _parsed(self._path.read_bytes() if self._path.exists() else b"")[2]
            files.write_atomic(self._path, self._whole(written, columns))
            self._columns = columns

    def _whole(self, rows: Sequence[Row], columns: Sequence[str]) -> bytes:
        preamble = f"{self._preamble}\n" if self._preamble else ""
        header = _written([dict(zip(columns, columns, strict=True))], columns)
        return preamble.encode() + header + _written(rows, columns)

    def _complain(self, error: OSError) -> None:
        if not self._complained:
            self._complained = True
            complain(f"cannot write {self._path}: {error}")


class GrowingTable:
    """Reads the rows of a table that another process appends to, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._made: object = None
        self._offset = 0
        self._header = b""

    def stamp(self) -> tuple[object, int, int]:
        """Which file it is, its size and its time; without a file, zeros."""
        try:
            stat = self._path.stat()
        except OSError:
            return None, 0, 0
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    def replaced(self) -> bool:
        """Whether the file is another one than that whose rows were given: `Table` appends, and
        makes a new file for everything else."""
        made, size, _ = self.stamp()
        return bool(self._offset) and (made != self._made or size < self._offset)

    def rewind(self) -> None:
        """Begin at the first row."""
        self._offset, self._header = 0, b""

    def new_rows(self) -> list[dict[str, str]]:
        """Whole rows that came since, as text by column."""
        self._made = self.stamp()[0]
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        if not self._header:
            self._header = _head(whole)
            rows = _parsed(whole)[2]
        else:
            rows = _parsed(self._header + whole)[2] if whole else []
        self._offset += len(whole)
        return rows


def _head(data: bytes) -> bytes:
    """The preamble and the header of a file."""
    end = data.find(b"\n") + 1
    return data[:end] if not data.startswith(b"#") else data[: data.find(b"\n", end) + 1]


def number(value: object) -> float:
    """A cell as a number; NaN where it is empty or none."""
    try:
        return float(value)  # type: ignore[arg-type]  # what is no number is told by the error
    except (TypeError, ValueError):
        return math.nan


def csv_bytes(rows: Iterable[Iterable[object]]) -> bytes:
    """Rows of cells as CSV, with the same bytes on every system."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def _written(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    return csv_bytes([_cell(row.get(name)) for name in columns] for row in rows)


def _cell(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.7g}" if math.isfinite(value) else ""
    return "" if value is None else plain(value) if isinstance(value, str) else str(int(value))


def _parsed(data: bytes) -> tuple[str, list[str], list[dict[str, str]]]:
    """Preamble, header and the whole rows of a file; nothing is raised for what is damaged."""
    text = data[: data.rfind(b"\n") + 1].decode("utf-8", "replace")
    preamble = ""
    if text.startswith("#"):
        preamble, _, text = text.partition("\n")
    lines = csv.reader(io.StringIO(text, newline=""))
    header: list[str] = []
    rows: list[dict[str, str]] = []
    try:
        header = next(lines, [])
        rows += [dict(zip(header, line, strict=True)) for line in lines if len(line) == len(header)]
    except csv.Error:
        pass  # a power cut left something else than text: what came before it is kept
    return preamble, header, [row for row in rows if row.get(STEPS, "").isdecimal()]


def _steps(row: Mapping[str, str]) -> int:
    return int(row[STEPS])
