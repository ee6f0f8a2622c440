"""The schema of an export: its tables, their columns and the kind of each (docs/exports.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from understudy.core.arrays import NDArray

ColumnKind: TypeAlias = Literal["text", "json", "integer", "float", "float32", "boolean"]
"""`json`: text that is a JSON object or list."""
ExportKind: TypeAlias = Literal["metrics", "episodes"]
ExportFormat: TypeAlias = Literal["csv", "parquet"]
Cells: TypeAlias = Sequence[Any] | NDArray
"""The values of one column, None where there is none."""


class ExportColumn(NamedTuple):
    """A column of an exported table."""

    name: str
    kind: ColumnKind


class ExportTable(NamedTuple):
    """A table of an export."""

    name: str
    columns: tuple[ExportColumn, ...]
    numbered: bool = False
    """Whether it is split into files of bounded size: `decisions-00001.csv`."""
