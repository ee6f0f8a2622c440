"""A series: an engine plays all matches of a duel to their end, a stride of frames at a time.

Once half of the matches are over, their columns leave the batch. Results keep the order of the
seeds, whichever columns are left at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Array, mapped
from understudy.match.duel import STRIDE, Duel, DuelState, begin, stride
from understudy.match.players import members

FEW = 256
"""A batch of so few columns is never made smaller: compiling the program again takes 6 s."""

Stride: TypeAlias = Callable[[DuelState], DuelState]
Engine: TypeAlias = Callable[[Duel], Stride]
"""Makes the function that plays a stride of a duel: `plain`, or `arena.compiling.compiled_duel`."""


def plain(duel: Duel) -> Stride:
    """The engine of NumPy."""
    return lambda duel_state: stride(NUMPY, duel, duel.weights, duel_state)


class Results(NamedTuple):
    """How B matches ended; fields as in `DuelState`."""

    score: NDArray
    frames: NDArray
    path: NDArray
    returned: NDArray
    measured: NDArray


def play(
    duel: Duel,
    seeds: NDArray,
    second: NDArray,
    *,
    engine: Engine = plain,
    few: int = FEW,
    show: Callable[[float], None] = lambda share: None,
) -> Results:
    """Plays one match for each seed, uint32 [B], to its end.

    The player is the game's second where `second`, bool [B]. A batch of more than `few` columns
    shrinks as matches end. After each stride `show` gets the share of the longest possible match.
    """
    duel_state, carry_on = begin(duel, seeds, second), engine(duel)
    results = Results(*(np.zeros_like(getattr(duel_state, name)) for name in Results._fields))
    columns = np.arange(len(seeds))
    for frame in range(STRIDE, duel.game.max_frames + STRIDE, STRIDE):
        duel_state = carry_on(duel_state)
        going = np.asarray(duel_state.going)
        for name, field in zip(Results._fields, results, strict=True):
            field[..., columns] = np.asarray(getattr(duel_state, name))
        show(min(frame / duel.game.max_frames, 1.0))
        if not going.any():
            break
        if len(going) > few and 2 * going.sum() <= len(going):
            keep = evened(duel, going)
            if keep.all():
                continue
            duel, duel_state = thinned(duel, duel_state, keep)
            columns, carry_on = columns[keep], engine(duel)
    return results


def evened(duel: Duel, going: NDArray) -> NDArray:
    """The columns to keep, bool [B]: all matches that are `going`, and some that are over.

    The members of a pool (`PoolPlayer`) play as one batch [members, n], so each must keep equally
    many columns, although their matches do not end together. The columns of an opponent are seen
    as a view [members, n] of the result, one row for each member. `most` is the largest number of
    open matches in a row. Sorting a row by `going` and turning it round gives its columns with the
    open ones first; the first `most` of them are set. So every row keeps its open matches, and
    finished ones fill it up to `most`. An opponent of one member keeps its open matches alone.
    """
    keep, start = going.copy(), 0
    for opponent, count in duel.opponents:
        rows = keep[start : start + count].reshape(members(opponent), -1)
        most = rows.sum(1).max()
        open_first = np.argsort(rows, axis=1, kind="stable")[:, ::-1]
        np.put_along_axis(rows, open_first[:, :most], True, axis=1)
        start += count
    return keep


def thinned(duel: Duel, duel_state: DuelState, keep: NDArray) -> tuple[Duel, DuelState]:
    """The duel and its state without the columns where `keep`, bool [B], is false."""
    starts = np.cumsum([count for _, count in duel.opponents])[:-1]
    groups = np.split(keep, starts) if duel.opponents else []
    left = [index for index, group in enumerate(groups) if group.any()]
    opponents = tuple((duel.opponents[index][0], int(groups[index].sum())) for index in left)
    own, *theirs = duel_state.memories
    kept = [(own, keep), *((theirs[index], groups[index]) for index in left)]
    memories = tuple(mapped(partial(_rows, rows), memory) for memory, rows in kept)
    state = type(duel_state.state)(*(np.asarray(leaf)[..., keep] for leaf in duel_state.state))
    rest = (np.asarray(field)[..., keep] for field in duel_state[2:])
    return replace(duel, opponents=opponents), DuelState(state, memories, *rest)


def _rows(rows: NDArray, array: Array) -> NDArray:
    return np.asarray(array)[rows]
