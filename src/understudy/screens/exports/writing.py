"""Writes tables as CSV or Parquet: a piece at a time, and each file whole or not at all."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from understudy.core import files
from understudy.core.dependencies import needs
from understudy.screens.exports.schema import Cells, ColumnKind, ExportFormat, ExportTable
from understudy.telemetry.table import csv_bytes
from understudy.telemetry.text import plain

_GROUP = 8_192
"""Rows that are held in memory before they are written together."""
_CELLS = 4_000_000
"""Of a numbered file, about: 30 to 60 MB of CSV."""
_LONGEST = 1_000_000
"""Characters of a cell."""
_PIECE = 2**20


class _Encoder(Protocol):
    """One file in the making."""

    def write(self, columns: Sequence[Cells]) -> None: ...

    def close(self) -> None: ...


class TableFiles:
    """The files of one table, opened when the first row comes.

    As a context it commits the last file, or discards it where the block fails.
    """

    def __init__(self, folder: Path, table: ExportTable, form: ExportFormat) -> None:
        self._folder = folder
        self._table = table
        self._form = form
        self._waiting: list[Sequence[Cells]] = []
        self._held = 0
        self._rows_left = 0
        self._file: files.AtomicFile | None = None
        self._encoder: _Encoder | None = None
        self.rows = 0
        self.bytes = 0
        self.names: list[str] = []
        """Of the files, in their order."""

    def add(self, columns: Sequence[Cells]) -> None:
        """Some rows more; those of one call stay together in one file."""
        self._waiting.append(columns)
        self._held += len(columns[0])
        if self._held >= _GROUP:
            self._flush()

    def __enter__(self) -> TableFiles:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._abandon()
            return
        try:
            self._flush()
            self._finish()
        except BaseException:
            self._abandon()
            raise

    def _flush(self) -> None:
        if not self._held:
            return
        joined = [_joined(parts) for parts in zip(*self._waiting, strict=True)]
        rows, self._held = self._held, 0
        self._waiting = []
        if self._encoder is None:
            self._begin()
        assert self._encoder is not None
        self._encoder.write(joined)
        self.rows += rows
        self._rows_left -= rows
        if self._rows_left <= 0:
            self._finish()

    def _begin(self) -> None:
        number = f"-{len(self.names) + 1:05d}" if self._table.numbered else ""
        name = f"{self._table.name}{number}.{self._form}"
        self.names.append(name)
        self._file = files.AtomicFile(self._folder / name)
        make: Callable[..., _Encoder] = _Csv if self._form == "csv" else _Parquet
        self._encoder = make(self._file, self._table)
        most = max(_CELLS // len(self._table.columns), 1)
        self._rows_left = most if self._table.numbered else 2**62

    def _finish(self) -> None:
        if self._encoder is None or self._file is None:
            return
        self._encoder.close()
        self._file.commit()
        self.bytes += self._file.size
        self._file = self._encoder = None

    def _abandon(self) -> None:
        if self._encoder is not None:
            # An open writer of pyarrow writes the end of its file when it is collected: it is
            # closed now, before the file is discarded. What made the export fail, a full disk say,
            # may fail this, too; that first error is the one that is raised.
            with contextlib.suppress(Exception):
                self._encoder.close()
        if self._file is not None:
            self._file.discard()
        self._file = self._encoder = None


def check_installed(form: ExportFormat) -> None:
    """Raises MissingDependency where a format needs a library that is not installed."""
    if form == "parquet":
        with needs("--format parquet needs pyarrow", extra="parquet"):
            import pyarrow.parquet  # noqa: F401


class _Csv:
    """UTF-8, commas, a header; an empty cell is a missing value."""

    def __init__(self, file: files.AtomicFile, table: ExportTable) -> None:
        self._file = file
        self._kinds = [column.kind for column in table.columns]
        file.write(csv_bytes([[_readable(column.name) for column in table.columns]]))

    def write(self, columns: Sequence[Cells]) -> None:
        cells = [
            _csv_cells(column, kind) for column, kind in zip(columns, self._kinds, strict=True)
        ]
        for piece in _pieces(csv_bytes(zip(*cells, strict=True))):
            self._file.write(piece)

    def close(self) -> None:
        """Everything is written already."""


class _Parquet:
    """One row group for each piece, compressed."""

    def __init__(self, file: files.AtomicFile, table: ExportTable) -> None:
        import pyarrow
        import pyarrow.parquet

        types = {
            "text": pyarrow.string(), "json": pyarrow.string(), "integer": pyarrow.int64(),
            "float": pyarrow.float64(), "float32": pyarrow.float32(), "boolean": pyarrow.bool_(),
        }  # fmt: skip
        self._kinds = [column.kind for column in table.columns]
        self._schema = pyarrow.schema(
            [(_readable(column.name), types[column.kind]) for column in table.columns]
        )
        self._writer = pyarrow.parquet.ParquetWriter(_Sink(file), self._schema)

    def write(self, columns: Sequence[Cells]) -> None:
        import pyarrow

        arrays = [
            pyarrow.array(_texts(column) if kind in ("text", "json") else column, type=field.type)
            for column, kind, field in zip(columns, self._kinds, self._schema, strict=True)
        ]
        self._writer.write_table(pyarrow.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


class _Sink(io.RawIOBase):
    """What pyarrow writes to."""

    def __init__(self, file: files.AtomicFile) -> None:
        super().__init__()
        self._file = file

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.size

    def write(self, data: Any) -> int:
        whole = bytes(data)
        for piece in _pieces(whole):
            self._file.write(piece)
        return len(whole)


def _pieces(data: bytes) -> Iterable[bytes]:
    return (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))


def _joined(parts: Sequence[Cells]) -> Cells:
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts):
        return np.concatenate(arrays)
    return [one for part in parts for one in part]


def _csv_cells(column: Cells, kind: ColumnKind) -> list[str]:
    values = column.tolist() if isinstance(column, np.ndarray) else column
    match kind:
        case "text" | "json":
            return ["" if one is None else one for one in _texts(values)]
        case "boolean":
            return ["" if one is None else "true" if one else "false" for one in values]
        case "float32":
            return ["" if one is None else f"{one:.9g}" for one in values]
        case "float":
            return ["" if one is None else _float(one) for one in values]
        case "integer":
            return ["" if one is None else str(int(one)) for one in values]


def _float(value: float) -> str:
    """The shortest text that is this number; `nan` and `inf` where it is not finite."""
    return repr(float(value)) if math.isfinite(value) else f"{value:g}"


def _texts(column: Iterable[str | None]) -> list[str | None]:
    return [None if one is None else _readable(one) for one in column]


def _readable(text: str) -> str:
    """As it is, or with characters that cannot be seen as `\\x00`: no file has a NUL."""
    return text if text.isprintable() else plain(text, limit=_LONGEST)


def files_named_like(folder: Path, tables: Iterable[ExportTable]) -> list[Path]:
    """Files in a folder with names that files of these tables have, whatever wrote them."""
    if not folder.is_dir():
        return []
    found = []
    for table in tables:
        middle = "-[0-9][0-9][0-9][0-9][0-9]" if table.numbered else ""
        for form in ("csv", "parquet"):
            found += sorted(folder.glob(f"{table.name}{middle}.{form}"))
    return found
