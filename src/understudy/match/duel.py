"""The duel: one player against several opponents, all matches side by side, frame by frame.

Everything is a pure function over `ops`. The player's network runs once over all columns of the
batch, each opponent's over its own. In a game of one player there are no opponents. A match that is
over no longer counts: its columns go on, and what they show is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from understudy.core import chance
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Array, Ops, Tree
from understudy.games.base import Game, State
from understudy.games.frame import NO_MEASURES, BySide, own_side, play_frame
from understudy.games.moments import RewardSet
from understudy.match.players import Player, PlayerView, ProgramPlayer, members

STRIDE = 64
"""Frames between two checks whether all matches are over: 2 s, a fortieth of a long match."""
_ZERO = np.zeros((), np.float32)


@dataclass(frozen=True)
class Duel:
    """The players of B matches: columns of the batch belong to `opponents` in their order."""

    game: Game
    player: Player
    opponents: tuple[tuple[Player, int], ...] = ()
    """Each with the number of matches that it plays; none in a game of one player."""
    measures: RewardSet = NO_MEASURES
    """What is summed over each match beside the reward, from the player's side."""

    @property
    def players(self) -> tuple[Player, ...]:
        """The player, then the opponents."""
        return (self.player, *(opponent for opponent, _ in self.opponents))

    @property
    def weights(self) -> Tree:
        """Those of `players`, in their order."""
        return tuple(one.weights for one in self.players)

    @property
    def program_key(self) -> Duel | None:
        """The duel without weights: duels with equal keys share one compiled program. None where a
        player has no key."""
        keys = [one.program_key for one in self.players if isinstance(one, ProgramPlayer)]
        if len(keys) < len(self.players):
            return None
        counts = (count for _, count in self.opponents)
        return replace(self, player=keys[0], opponents=tuple(zip(keys[1:], counts, strict=True)))


class DuelState(NamedTuple):
    """B matches in progress; scores are the player's."""

    state: State
    memories: Tree
    """Those of `Duel.players`, in their order."""
    seeds: Array
    """uint32 [B]"""
    second: Array
    """bool [B]: where the player is the game's second."""
    frame: Array
    """int32 [B], the same everywhere."""
    going: Array
    """bool [B]"""
    frames: Array
    """int32 [B]: the length of the match so far, or of all of it."""
    score: Array
    """float32 [B]: +1, 0 or -1; 0 until the match is over."""
    path: Array
    """uint32 [B]: a hash of what both did in each frame; equal matches have equal paths."""
    returned: Array
    """float32 [B]: the game's own reward, summed."""
    measured: Array
    """float32 [K, B]: `Duel.measures`, summed."""


def begin(duel: Duel, seeds: NDArray, second: NDArray) -> DuelState:
    """New matches from seeds uint32 [B]; the player is the game's second where `second` [B]."""
    matches = len(seeds)
    counts = [matches, *(count for _, count in duel.opponents)]
    if duel.opponents and sum(counts[1:]) != matches:
        raise ValueError(f"{matches} seeds for {sum(counts[1:])} matches")
    for opponent, count in duel.opponents:
        if count % members(opponent):
            raise ValueError(f"{count} matches for a pool of {members(opponent)}: unequal shares")
    zeros = np.zeros(matches, np.int32)
    return DuelState(
        state=duel.game.start(NUMPY, seeds),
        memories=tuple(one.memory(NUMPY, n) for one, n in zip(duel.players, counts, strict=True)),
        seeds=seeds,
        second=second,
        frame=zeros,
        going=np.ones(matches, np.bool_),
        frames=zeros,
        score=np.zeros(matches, np.float32),
        path=np.zeros(matches, np.uint32),
        returned=np.zeros(matches, np.float32),
        measured=np.zeros((len(duel.measures.names), matches), np.float32),
    )


def advance(ops: Ops, duel: Duel, weights: Tree, duel_state: DuelState) -> DuelState:
    """All matches one frame further."""
    xp, going = ops.xp, duel_state.going

    def act(obs: BySide, legal: BySide) -> tuple[BySide, Tree]:
        return _act(ops, duel, weights, duel_state, obs, legal)

    frame = play_frame(ops, duel.game, duel_state.state, duel_state.second, act, duel.measures)
    before, after = frame.moment.before, frame.moment.after
    reward = own_side(ops, duel_state.second, duel.game.reward(ops, before, after))
    ended = going & frame.over
    path = duel_state.path
    for row in (row for actions in frame.chosen for row in actions):
        path = chance.fold(path, row.astype(xp.uint32))
    return duel_state._replace(
        state=after,
        memories=frame.kept,
        frame=duel_state.frame + np.int32(1),
        going=going & ~ended,
        frames=duel_state.frames + going,
        score=xp.where(ended, frame.score, duel_state.score),
        path=xp.where(going, path, duel_state.path),
        returned=duel_state.returned + xp.where(going, reward, _ZERO),
        measured=duel_state.measured + xp.where(going, frame.measured, _ZERO),
    )


def stride(ops: Ops, duel: Duel, weights: Tree, duel_state: DuelState) -> DuelState:
    """All matches `STRIDE` frames further."""

    def one(carry: DuelState, _: Array) -> tuple[DuelState, Tree]:
        return advance(ops, duel, weights, carry), ()

    return ops.scan(one, duel_state, ops.xp.arange(STRIDE))[0]  # type: ignore[no-any-return]


def witnessed(duel: Duel, seeds: NDArray, second: NDArray) -> Iterator[State]:
    """The states of one match under NumPy, from the first frame to the one that ends it."""
    duel_state = begin(duel, seeds, second)
    yield duel_state.state
    while duel_state.going.any():
        duel_state = advance(NUMPY, duel, duel.weights, duel_state)
        yield duel_state.state


def _act(
    ops: Ops, duel: Duel, weights: Tree, duel_state: DuelState, obs: BySide, legal: BySide
) -> tuple[BySide, Tree]:
    """The player's actions and the opponents', int32 [parts, B], and the next memory of each."""
    seeds, second, frame = duel_state.seeds, duel_state.second, duel_state.frame
    sides = zip(obs, legal, (second, ~second), strict=False)
    views = ops.barrier(
        tuple(PlayerView(seen, allowed, seeds, side, frame) for seen, allowed, side in sides)
    )
    own, memory = duel.player.act(ops, weights[0], views[0], duel_state.memories[0])
    memories, others, start = [memory], [], 0
    for index, (opponent, count) in enumerate(duel.opponents, 1):
        view = PlayerView(*(field[..., start : start + count] for field in views[1]))
        actions, memory = opponent.act(ops, weights[index], view, duel_state.memories[index])
        memories.append(memory)
        others.append(actions)
        start += count
    chosen = (own, ops.xp.concatenate(others, -1)) if others else (own,)
    return chosen, ops.barrier(tuple(memories))
