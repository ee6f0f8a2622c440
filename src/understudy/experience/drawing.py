"""Draws one after the other, where nothing is drawn more often than it has room for.

Whole batches are drawn at once; what goes beyond an item's room is dropped and drawn again from
those that have room left, which is the same distribution as one draw after the other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.intp]


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
