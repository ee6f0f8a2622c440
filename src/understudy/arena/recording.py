"""Recording matches of the arena, and playing them again on the same engine.

A few columns are recorded. The compiled iteration returns their seeds, both sides' actions and a
checksum of every state; where nothing is recorded, the program has none of this in it. The host
joins frames of several iterations to whole matches. A match is chosen as it begins, never by how
long it was or how it ended, and a column's very first match, which may be cut, never is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import jax
import numpy as np

from understudy.arena.columns import Ends
from understudy.arena.compiling import options
from understudy.core.arrays import NDArray
from understudy.core.ops import Array
from understudy.games.base import Game, State
from understudy.learner.maths.jax_ops import JAX
from understudy.match.replaying import checksum

_AT_ONCE = 128
"""Frames that a replay computes in one call."""
_COPIES = 64
"""Columns that a replay computes, all alike: XLA fails on barriers in a loop over very little data,
as one match of a small game is."""


class RecordedFrames(NamedTuple):
    """What the recorded columns played: one frame [C, ...], or a whole rollout [T, C, ...]."""

    seeds: Array
    """uint32: of the match"""
    actions: Array
    """int32 [..., players, parts, C], as executed"""
    checksums: Array
    """uint32: of the state after the frame"""


def recorded_columns(games: int, count: int, *, devices: int = 1) -> tuple[int, ...]:
    """At most `count` of the columns, spread over all groups and over both sides; on several
    devices as many on each, in the same places, so at least one."""
    here = games // devices
    count = min(here, -(-count // devices))
    # Every other one is odd, which is to play the second side.
    even = (2 * (index * here // (2 * count)) for index in range(count))
    places = sorted({min(column + index % 2, here - 1) for index, column in enumerate(even)})
    return tuple(device * here + place for device in range(devices) for place in places)


def record(columns: Sequence[int], seeds: Array, actions: Array, after: State) -> RecordedFrames:
    """One frame of these columns: seeds [B], actions [players, parts, B], the state after it."""
    chosen = np.array(columns)
    state = jax.tree.map(lambda leaf: leaf[..., chosen], after)
    return RecordedFrames(seeds[chosen], actions[..., chosen], checksum(JAX, state))


class PlayedMatch(NamedTuple):
    """A match that was recorded whole."""

    seed: int
    side: int
    opponent: str
    score: int
    actions: NDArray
    """int32 [T, players, parts]"""
    checksums: NDArray
    """uint32 [T]"""


class MatchRecorder:
    """Joins recorded frames to matches, as many of them as `per_step` allows."""

    def __init__(self, columns: Sequence[int], *, steps: int, per_step: float) -> None:
        """`steps`: of an iteration; `per_step`: matches to record for each of them."""
        self._columns = np.array(columns, np.int64)
        self._growth = steps * per_step
        self._most = max(self._growth, float(len(columns)))
        self._owed = 1.0
        """Matches that may be chosen by now; those of a long time without any do not pile up."""
        self._open: dict[int, list[RecordedFrames]] = {}
        """By column, the pieces of the match that is recorded there."""
        self._whole: list[PlayedMatch] = []

    def add(self, frames: RecordedFrames, ends: Ends, names: Sequence[str]) -> None:
        """What one iteration played; `names` are the opponents by index."""
        began = ends.began[:, self._columns]
        self._owed = min(self._owed + self._growth, self._most)
        chosen = {(int(t), int(c)) for t, c in np.argwhere(began)[: int(self._owed)]}
        self._owed -= len(chosen)
        for index, column in enumerate(self._columns.tolist()):
            own = RecordedFrames(*(field[..., index] for field in frames))
            start = 0
            for last in np.flatnonzero(began[:, index]).tolist():
                self._extend(column, own, start, last + 1)
                pieces = self._open.pop(column, None)
                if pieces and ends.counts[last, column]:
                    opponent = names[ends.opponent[last, column]]
                    self._whole.append(
                        _joined(pieces, column, opponent, int(ends.score[last, column]))
                    )
                start = last + 1
                if (last, index) in chosen:
                    self._open[column] = []
            self._extend(column, own, start, len(began))

    def take(self) -> list[PlayedMatch]:
        """The matches that ended since the last call."""
        whole, self._whole = self._whole, []
        return whole

    def _extend(self, column: int, own: RecordedFrames, start: int, stop: int) -> None:
        pieces = self._open.get(column)
        if pieces is None or start == stop:
            return
        if pieces and pieces[0].seeds[0] != own.seeds[start]:
            del self._open[column]  # a population began all matches of this agent anew
            return
        pieces.append(RecordedFrames(*(field[start:stop] for field in own)))


def _joined(
    pieces: Sequence[RecordedFrames], column: int, opponent: str, score: int
) -> PlayedMatch:
    actions = np.concatenate([piece.actions for piece in pieces])
    return PlayedMatch(
        seed=int(pieces[0].seeds[0]),
        side=column % actions.shape[1],  # as `columns.sides`
        opponent=opponent,
        score=score,
        actions=actions,
        checksums=np.concatenate([piece.checksums for piece in pieces]),
    )


def engine_name() -> str:
    """What computes the states here: `jax 0.10.2 on cpu`."""
    return f"jax {jax.__version__} on {jax.devices()[0].device_kind}"


def replayed(game: Game, seed: int, actions: NDArray) -> list[State]:
    """A `ReplayEngine`: the game compiled as the arena compiles it, for one match."""
    frames = -(-len(actions) // _AT_ONCE) * _AT_ONCE
    padded = np.zeros((frames, *actions.shape[1:], _COPIES), np.int32)
    padded[: len(actions)] = actions[..., None]
    start, carry_on = _program(game)  # type: ignore[arg-type]  # games are frozen
    state = start(np.full(_COPIES, seed, np.uint32))
    states = [jax.tree.map(lambda leaf: np.asarray(leaf[..., :1]), state)]
    for first in range(0, frames, _AT_ONCE):
        state, rows = carry_on(state, padded[first : first + _AT_ONCE])
        rows = jax.device_get(rows)
        states += [jax.tree.map(lambda leaf, t=t: leaf[t], rows) for t in range(_AT_ONCE)]
    return states[: len(actions) + 1]


@cache
def _program(game: Game) -> tuple[jax.stages.Wrapped, jax.stages.Wrapped]:
    """The start, and `_AT_ONCE` frames. Barriers stand where the arena has them: they keep the
    rules apart from what surrounds them, so both programs compute the same bits."""

    def frame(state: State, actions: Array) -> tuple[State, State]:
        after = JAX.barrier(game.step(JAX, *JAX.barrier((state, actions))))
        return after, jax.tree.map(lambda leaf: leaf[..., :1], after)

    def carry_on(state: State, actions: Array) -> tuple[State, State]:
        return jax.lax.scan(frame, state, actions)

    begin = jax.jit(lambda seeds: game.start(JAX, seeds), compiler_options=options())
    return begin, jax.jit(carry_on, compiler_options=options())
