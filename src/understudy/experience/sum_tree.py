"""Weighted sampling: a sum tree for priorities that change, and bounded draws from an array.

`SumTree` finds an index with probability proportional to its number, in a few NumPy calls a batch.
A node is always recomputed as the sum of its children and never adjusted by differences, so sums
do not drift; an index whose number is 0 is never found. The tree is wide and flat: the 16 children
of a node lie side by side in two cache lines, beside their exclusive prefix sums, so that a step
down is one comparison along a row. A million numbers are two such levels under a top of 4,096,
which is searched as a whole.

`draw_bounded` draws from an array without priorities that change, each index at most so many times.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_BITS = 4
_WIDTH = 1 << _BITS
_TOP = 4096
_NODE = np.dtype((np.void, _WIDTH * 8))
"""A row as opaque bytes: scattered three times as fast as 16 numbers."""
_EARLIER = np.triu(np.ones((_WIDTH, _WIDTH)), 1)
"""A row times this is its exclusive prefix sum: five times as fast as cumsum along rows that short
(1,024 rows: 11 us and 61)."""


class SumTree:
    """Numbers of at least 0, one for every index below `capacity`; all are 0 at first.

    They must be small enough for their sum to be finite.
    """

    def __init__(self, capacity: int) -> None:
        depth = 0
        while capacity > _TOP << (depth * _BITS):
            depth += 1
        self._top = np.zeros(max(-(-capacity >> (depth * _BITS)), 1))
        shapes = [(len(self._top) << (level * _BITS), _WIDTH) for level in reversed(range(depth))]
        self._values = [np.zeros(shape) for shape in shapes]
        """Numbers of each level, [nodes, 16], leaves first; the sum of a node is a number above."""
        self._before = [np.zeros(shape) for shape in shapes]
        """The exclusive prefix sum of each of them within its node."""
        self._running = np.zeros(len(self._top) + 1)
        """The exclusive prefix sums of the top; the last one is the sum of all."""
        self._leaves = self._values[0].reshape(-1) if self._values else self._top

    @property
    def total(self) -> float:
        """The sum of all numbers."""
        return float(self._running[-1])

    @property
    def nbytes(self) -> int:
        """About 17 bytes an index."""
        arrays = [*self._values, *self._before, self._top, self._running]
        return sum(array.nbytes for array in arrays)

    def take(self, indices: Indices) -> Floats:
        """The numbers at `indices` [B]: [B]."""
        return self._leaves.take(indices)

    def put(self, indices: Indices, values: Floats | float) -> None:
        """Sets the numbers at `indices` [B]; of an index that comes twice, the later one holds."""
        self._leaves[indices] = values
        nodes = indices
        parents = [*self._values, self._top][1:]
        for level, before, above in zip(self._values, self._before, parents, strict=True):
            nodes = nodes >> _BITS
            rows = level.take(nodes, axis=0)
            earlier = rows @ _EARLIER
            before.view(_NODE).put(nodes, earlier.view(_NODE))
            above.reshape(-1)[nodes] = earlier[:, -1] + rows[:, -1]
        np.cumsum(self._top, out=self._running[1:])

    def find(self, masses: Floats) -> Indices:
        """The index at which the cumulative sum passes each of `masses` [B] in [0, total): [B].

        A uniform mass finds an index with probability number / total. The total must be above 0.
        """
        found = self._running[:-1].searchsorted(masses, side="right") - 1
        rest = masses - self._running.take(found)
        rows_at = np.arange(0, len(masses) * _WIDTH, _WIDTH)
        for before in reversed(self._before):
            rows = before.take(found, axis=0)
            # The child before the first one that begins beyond the rest; if none does, the last.
            child = ((rows > rest[:, None]).argmax(axis=1) - 1) & (_WIDTH - 1)
            rest -= rows.reshape(-1).take(rows_at + child)
            found = (found << _BITS) + child
        empty = self._leaves.take(found) <= 0.0
        if empty.any():
            found[empty] = self._last_above_zero(found[empty])
        return found

    def _last_above_zero(self, indices: Indices) -> Indices:
        """The last index up to each of `indices` [B] whose number is not 0, or the first: [B].

        Rounding can leave a mass behind the last child of a node. That is rare, so the cost of this
        search does not matter.
        """
        known = np.flatnonzero(self._leaves > 0.0)
        return known[np.maximum(known.searchsorted(indices, side="right") - 1, 0)]


def fitting(drawn: Indices, room: Indices) -> npt.NDArray[np.bool_]:
    """Which of the draws [B] are among the first `room` [B] draws of their index: [B]."""
    order = drawn.argsort(kind="stable")
    ordered = drawn[order]
    earlier = np.arange(len(drawn)) - ordered.searchsorted(ordered)
    fits = np.zeros(len(drawn), np.bool_)
    fits[order] = earlier < room[order]
    return fits


def draw_bounded(rng: np.random.Generator, count: int, *, likely: Floats, room: Indices) -> Indices:
    """Draws indices in proportion to `likely` [N], each at most `room` [N] times: [<= count].

    Returns fewer than `count` only if no room is left. Draws whole batches: draws beyond the room
    of an index are dropped and drawn again from those with room left, which has the distribution of
    one draw after the other.
    """
    where = np.flatnonzero((room > 0) & (likely > 0.0))
    room = room[where]
    chosen = np.zeros(0, np.intp)
    while len(chosen) < count and len(where):
        running = likely[where].cumsum()
        masses = rng.random(count - len(chosen)) * np.nextafter(running[-1], 0.0)
        picks = running.searchsorted(masses, side="right")
        picks = picks[fitting(picks, room[picks])]
        chosen = np.concatenate([chosen, where[picks]])
        room = room - np.bincount(picks, minlength=len(room))
        where, room = where[room > 0], room[room > 0]
    return chosen
