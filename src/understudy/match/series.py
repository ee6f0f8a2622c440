"""A series: many matches of a duel, each carried to its end by an engine, and how they ended.

Results stay with the column that a match began in, whatever columns are left at the end.
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
"""Columns that cost too little to be worth making fewer: compiling anew takes six seconds."""

Stride: TypeAlias = Callable[[DuelState], DuelState]
Engine: TypeAlias = Callable[[Duel], Stride]
"""Makes of a duel what carries it on: `plain` here, `arena.compiling.compiled_duel` under JAX."""


def plain(duel: Duel) -> Stride:
    """Under NumPy."""
    return lambda standing: stride(NUMPY, duel, duel.weights, standing)


class Results(NamedTuple):
    """How B matches ended; fields as in `Standing`."""

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
    """Every match to its end; `show` is told how much of the longest possible match is over."""
    standing, carry_on = begin(duel, seeds, second), engine(duel)
    results = Results(*(np.zeros_like(getattr(standing, name)) for name in Results._fields))
    columns = np.arange(len(seeds))
    for frame in range(STRIDE, duel.game.max_frames + STRIDE, STRIDE):
        standing = carry_on(standing)
        going = np.asarray(standing.going)
        for name, field in zip(Results._fields, results, strict=True):
            field[..., columns] = np.asarray(getattr(standing, name))
        show(min(frame / duel.game.max_frames, 1.0))
        if not going.any():
            break
        if len(going) > few and 2 * going.sum() <= len(going):
            keep = evened(duel, going)
            if keep.all():
                continue
            duel, standing = thinned(duel, standing, keep)
            columns, carry_on = columns[keep], engine(duel)
    return results


def evened(duel: Duel, going: NDArray) -> NDArray:
    """`going`, bool [B], and as many of the matches that are over as a pool's members need to have
    equal shares still."""
    keep, start = going.copy(), 0
    for opponent, count in duel.opponents:
        shares = keep[start : start + count].reshape(members(opponent), -1)
        over = np.argsort(shares, axis=1, kind="stable")[:, ::-1]  # the others last
        np.put_along_axis(shares, over[:, : shares.sum(1).max()], True, axis=1)
        start += count
    return keep


def thinned(duel: Duel, standing: DuelState, keep: NDArray) -> tuple[Duel, DuelState]:
    """The same matches without those where `keep`, bool [B], is false."""
    starts = np.cumsum([count for _, count in duel.opponents])[:-1]
    groups = np.split(keep, starts) if duel.opponents else []
    left = [index for index, group in enumerate(groups) if group.any()]
    opponents = tuple((duel.opponents[index][0], int(groups[index].sum())) for index in left)
    own, *theirs = standing.memories
    kept = [(own, keep), *((theirs[index], groups[index]) for index in left)]
    memories = tuple(mapped(partial(_rows, rows), memory) for memory, rows in kept)
    state = type(standing.state)(*(np.asarray(leaf)[..., keep] for leaf in standing.state))
    rest = (np.asarray(field)[..., keep] for field in standing[2:])
    return replace(duel, opponents=opponents), DuelState(state, memories, *rest)


def _rows(rows: NDArray, array: Array) -> NDArray:
    """Those rows, bool [B], of an array of a memory."""
    return np.asarray(array)[rows]
