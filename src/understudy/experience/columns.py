"""Columns: what belongs to the slots of a replay, by name, one row for each slot.

A row holds all columns side by side, so gathering a batch touches each slot's memory once and not
once a column: at a million rows that is what sampling costs.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from understudy.core.arrays import NDArray
from understudy.core.errors import InputError

Indices = npt.NDArray[np.intp]


class Columns:
    """Arrays by slot, such as `Columns(1000, {"seen": ((28,), np.float32), "reward": ((), "f4")})`.

    Memory is reserved at once and taken by the system as rows are first written.
    """

    def __init__(
        self, capacity: int, columns: Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]
    ) -> None:
        fields = [(name, dtype, shape) for name, (shape, dtype) in columns.items()]
        self._rows = np.zeros(capacity, np.dtype(fields, align=True))
        # Rows are moved as opaque bytes: NumPy copies those several times faster than fields.
        self._bytes = self._rows.view(np.dtype((np.void, self._rows.itemsize)))

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return self._rows.nbytes

    @property
    def row_nbytes(self) -> int:
        """Bytes of one row."""
        return self._rows.itemsize

    def put(self, slots: Indices, values: Mapping[str, NDArray]) -> None:
        """Write rows `slots` [B], an array [B, *shape] for every column; skip slots below 0."""
        names = self._rows.dtype.names or ()
        if set(values) != set(names):
            raise InputError(f"columns: expected {sorted(names)}, got {sorted(values)}")
        wanted = slots >= 0
        everything = bool(wanted.all())
        for name, value in values.items():
            shape = (len(slots), *self._rows.dtype[name].shape)
            if value.shape != shape:
                raise InputError(f"column {name!r}: expected shape {shape}, got {value.shape}")
            if everything:
                self._rows[name][slots] = value
            else:
                self._rows[name][slots[wanted]] = value[wanted]

    def take(self, slots: Indices) -> dict[str, NDArray]:
        """Rows `slots` [B], as an array [B, *shape] for every column.

        They are copies, and views of one block: `np.ascontiguousarray` makes one contiguous.
        """
        rows = self._bytes.take(slots).view(self._rows.dtype)
        return {name: rows[name] for name in self._rows.dtype.names or ()}
