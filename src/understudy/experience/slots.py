"""Slots: which places of a bounded store are held, since when, and which of them is the oldest.

Held slots are always the first `count` of a permutation of all slots, and the free ones the rest:
one array is the free list and what uniform sampling draws from. Items may leave from anywhere, and
the oldest are known. A step costs the size of its batch, never that of the store.

Columns: what belongs to the slots of a replay, by name, one row for each slot.

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

_GONE = -1
_LOOK = 64
"""How far the queue is looked at in one go for the oldest items."""


class Slots:
    """At most `capacity` items, in order of arrival."""

    def __init__(self, capacity: int) -> None:
        self.count = 0
        self._order = np.arange(capacity, dtype=np.int32)
        """A permutation of the slots: the held ones first."""
        self._place = np.arange(capacity, dtype=np.int32)
        """Where in `_order` each slot stands."""
        self._number = np.full(capacity + 1, _GONE, np.int64)
        """The arrival number of the item in each slot; and behind them, at -1, always nobody."""
        self._at = np.zeros(capacity)
        """When it arrived; never falls with the number."""
        self._queue = np.zeros(2 * capacity, np.int32)
        """Slots by arrival number, as a ring. Items that left early stay until passed over."""
        self._first = self._next = 0
        """Arrival numbers: of the front of the queue, and of the next item to come."""
        self._latest = -np.inf

    @property
    def nbytes(self) -> int:
        """Bytes that this takes: 32 for every slot."""
        arrays = (self._order, self._place, self._number, self._at, self._queue)
        return sum(array.nbytes for array in arrays)

    def held(self) -> Indices:
        """All held slots, in no order: [count]."""
        return self._order[: self.count].astype(np.intp)

    def by_age(self) -> Indices:
        """All held slots, oldest first: [count]."""
        slots = self.held()
        return slots[np.argsort(self._number[slots])]

    def holds(self, slots: Indices) -> npt.NDArray[np.bool_]:
        """Whether each of `slots` [B] is held: [B]. -1, for what never was, is not."""
        held: npt.NDArray[np.bool_] = self._number.take(slots) != _GONE
        return held

    def draw(self, rng: np.random.Generator, count: int) -> Indices:
        """`count` of the held slots, each equally likely at each draw: [count]."""
        return self._order.take(rng.integers(self.count, size=count)).astype(np.intp)

    def latest(self, now: float) -> float:
        """`now`, or the latest time that was seen, if a clock was set back."""
        self._latest = max(self._latest, now)
        return self._latest

    def enter(self, count: int, *, now: float) -> Indices:
        """Hold `count` items more, for which there must be room: [count]."""
        if self._next + count - self._first > len(self._queue):
            self._renumber()
        slots = self._order[self.count : self.count + count].astype(np.intp)
        numbers = np.arange(self._next, self._next + count)
        self._number[slots] = numbers
        self._at[slots] = self.latest(now)
        self._queue[numbers % len(self._queue)] = slots
        self._next += count
        self.count += count
        return slots

    def leave(self, slots: Indices) -> None:
        """Hold `slots` [B] no longer: all different and all held."""
        self._number[slots] = _GONE
        kept = self.count - len(slots)
        tail = self._order[kept : self.count]
        movers = tail[self._number[tail] != _GONE]
        places = self._place[slots]
        inside = places < kept  # these give their places to those of the tail that stay
        holes, leavers, homes = places[inside], slots[inside], self._place[movers]
        self._order[holes], self._place[movers] = movers, holes
        self._order[homes], self._place[leavers] = leavers, homes
        self.count = kept

    def oldest(self, count: int) -> Indices:
        """The `count` oldest held slots, of which there must be so many, oldest first: [count]."""
        found: list[Indices] = []
        number = self._first
        while count > 0:
            numbers = np.arange(number, min(number + max(count, _LOOK), self._next))
            slots = self._queue.take(numbers % len(self._queue)).astype(np.intp)
            held = self._number.take(slots) == numbers
            if not found:  # whoever left before is never looked at again
                self._first = int(numbers[held.argmax()]) if held.any() else int(numbers[-1]) + 1
            found.append(slots[held][:count])
            count -= len(found[-1])
            number = int(numbers[-1]) + 1
        return np.concatenate(found) if found else np.zeros(0, np.intp)

    def older_than(self, at: float) -> Indices:
        """Held slots whose items arrived before `at`, oldest first."""
        look = 1
        while True:
            slots = self.oldest(min(look, self.count))
            old = self._at.take(slots) < at
            if len(slots) == self.count or not old.all():
                return slots[old]
            look *= 8

    def _renumber(self) -> None:
        """Number what is held from 0: the queue is then without those who left."""
        slots = self.by_age()
        self._number[slots] = np.arange(self.count)
        self._queue[: self.count] = slots
        self._first, self._next = 0, self.count


class SlotColumns:
    """Arrays by slot: `SlotColumns(1000, {"seen": ((28,), np.float32), "reward": ((), "f4")})`.

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
