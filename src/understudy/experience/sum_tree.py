"""A sum tree: numbers by index, found in proportion to their size, in a handful of NumPy calls.

Every node is the sum of its children as they are now, recomputed and never adjusted by differences,
so sums do not drift however many updates there were; an index whose number is 0 is never found.

The tree is wide and flat: 16 children a node lie side by side in two cache lines, beside what comes
before each of them in the node, so that a step down is one comparison along a row. A million
numbers are two such levels under a top of 4,096 that is searched as a whole.

Draws one after the other, where nothing is drawn more often than it has room for.

Whole batches are drawn at once; what goes beyond an item's room is dropped and drawn again from
those that have room left, which is the same distribution as one draw after the other.
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
"""A row as opaque bytes: scattered three times as quickly as 16 numbers."""
_EARLIER = np.triu(np.ones((_WIDTH, _WIDTH)), 1)
"""A row times this is, for each child, the sum of those before it: five times as quick as cumsum
along rows that short (1,024 rows: 11 us and 61)."""


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
        """Numbers of each level, [nodes, 16], leaves first; a node's sum is a number one up."""
        self._before = [np.zeros(shape) for shape in shapes]
        """What comes before each of them in its node."""
        self._running = np.zeros(len(self._top) + 1)
        """What comes before each number of the top; the last one is the sum of all."""
        self._leaves = self._values[0].reshape(-1) if self._values else self._top

    @property
    def total(self) -> float:
        """The sum of all numbers."""
        return float(self._running[-1])

    @property
    def nbytes(self) -> int:
        """Bytes that the tree takes: about 17 for every index."""
        arrays = [*self._values, *self._before, self._top, self._running]
        return sum(array.nbytes for array in arrays)

    def take(self, indices: Indices) -> Floats:
        """The numbers at `indices` [B]: [B]."""
        return self._leaves.take(indices)

    def put(self, indices: Indices, values: Floats | float) -> None:
        """Set the numbers at `indices` [B]; where an index comes twice the later one stays."""
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
        """Where the running sum of all numbers passes each of `masses` [B] in [0, total): [B].

        A uniform mass thus finds an index with probability number / total. The total is above 0.
        """
        found = self._running[:-1].searchsorted(masses, side="right") - 1
        rest = masses - self._running.take(found)
        rows_at = np.arange(0, len(masses) * _WIDTH, _WIDTH)
        for before in reversed(self._before):
            rows = before.take(found, axis=0)
            # The first child that begins beyond the rest, less one; none does: it is the last.
            child = ((rows > rest[:, None]).argmax(axis=1) - 1) & (_WIDTH - 1)
            rest -= rows.reshape(-1).take(rows_at + child)
            found = (found << _BITS) + child
        empty = self._leaves.take(found) <= 0.0
        if empty.any():
            found[empty] = self._last_above_zero(found[empty])
        return found

    def _last_above_zero(self, indices: Indices) -> Indices:
        """The last index up to each of `indices` [B] whose number is not 0, or the first: [B].

        Rounding can leave a mass behind the last child of a node; once in a blue moon, so this may
        cost as much as it does.
        """
        known = np.flatnonzero(self._leaves > 0.0)
        return known[np.maximum(known.searchsorted(indices, side="right") - 1, 0)]


def fitting(drawn: Indices, room: Indices) -> npt.NDArray[np.bool_]:
    """Which of the draws [B] are among the first `room` [B] of the same item: [B]."""
    order = drawn.argsort(kind="stable")
    ordered = drawn[order]
    earlier = np.arange(len(drawn)) - ordered.searchsorted(ordered)
    fits = np.zeros(len(drawn), np.bool_)
    fits[order] = earlier < room[order]
    return fits


def draw(
    rng: np.random.Generator, count: int, *, likely: npt.NDArray[np.float64], room: Indices
) -> Indices:
    """Indices in proportion to `likely` [N], each at most `room` [N] times: [<= count].

    Fewer than `count` only where no room is left.
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
