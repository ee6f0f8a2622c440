"""The duel: one player against several opponents, all matches side by side, frame by frame.

Everything is a pure function over `ops`: the player's forward runs once over all columns, each
opponent's over its own. In a game of one player there is nobody opposite, and all the rest holds.
A match that is over no longer counts, whatever its columns go on to show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from understudy.core import chance
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Array, Ops, Tree
from understudy.games.base import Game, State
from understudy.games.moments import Moment, RewardSet
from understudy.match.players import Formed, Player, PlayerView, members

STRIDE = 64
"""Frames between two looks at whether all is over: 2 s of play, a fortieth of a long match."""
_ZERO = np.zeros((), np.float32)
_NOTHING = RewardSet((), ())


@dataclass(frozen=True)
class Duel:
    """Who meets whom: columns of the batch belong to `opponents` in their order."""

    game: Game
    player: Player
    opponents: tuple[tuple[Player, int], ...] = ()
    """Each with how many matches it plays; none in a game of one player."""
    measures: RewardSet = _NOTHING
    """What is summed over each match beside the reward, from the player's side."""

    @property
    def weights(self) -> Tree:
        """Of everyone, the player's first."""
        return (self.player.weights, *(opponent.weights for opponent, _ in self.opponents))

    @property
    def form(self) -> Duel | None:
        """The same without anybody's weights: equal forms are one program. None where somebody
        has no form."""
        everyone = [self.player, *(opponent for opponent, _ in self.opponents)]
        forms = [one.form for one in everyone if isinstance(one, Formed)]
        if len(forms) < len(everyone):
            return None
        counts = (count for _, count in self.opponents)
        return replace(self, player=forms[0], opponents=tuple(zip(forms[1:], counts, strict=True)))


class DuelState(NamedTuple):
    """B matches in progress; scores are the player's."""

    state: State
    memories: Tree
    """Of everyone, the player's first."""
    seeds: Array
    """uint32 [B]"""
    second: Array
    """bool [B]: where the player sits in the second slot."""
    frame: Array
    """int32 [B], the same everywhere."""
    going: Array
    """bool [B]"""
    frames: Array
    """int32 [B]: how long the match was, or has been so far."""
    score: Array
    """float32 [B]: +1, 0 or -1; 0 until the match is over."""
    path: Array
    """uint32 [B]: a hash of what both did in each frame; equal matches have equal paths."""
    returned: Array
    """float32 [B]: the game's own reward, summed."""
    measured: Array
    """float32 [K, B]: `Duel.measures`, summed."""


def begin(duel: Duel, seeds: NDArray, second: NDArray) -> DuelState:
    """New matches from seeds uint32 [B]; the player sits in the second slot where `second` [B]."""
    matches = len(seeds)
    counts = [matches, *(count for _, count in duel.opponents)]
    if duel.opponents and sum(counts[1:]) != matches:
        raise ValueError(f"{matches} seeds for {sum(counts[1:])} matches")
    for opponent, count in duel.opponents:
        if count % members(opponent):
            raise ValueError(f"{count} matches for a pool of {members(opponent)}: unequal shares")
    everyone = [duel.player, *(opponent for opponent, _ in duel.opponents)]
    zeros = np.zeros(matches, np.int32)
    return DuelState(
        state=duel.game.start(NUMPY, seeds),
        memories=tuple(one.memory(NUMPY, n) for one, n in zip(everyone, counts, strict=True)),
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


def advance(ops: Ops, duel: Duel, weights: Tree, standing: DuelState) -> DuelState:
    """All matches one frame further."""
    xp, game = ops.xp, duel.game
    mine, theirs, memories = _choices(ops, duel, weights, standing)
    if theirs is None:
        actions = mine[None]
    else:
        first, other = _exchanged(xp, standing.second, mine, theirs)
        actions = xp.stack([first, other])
    state, actions, memories = ops.barrier((standing.state, actions, memories))
    after = ops.barrier(game.step(ops, state, actions))
    going = standing.going
    ended = going & game.over(ops, after)
    moment = Moment(game, state, after, actions)
    score, reward, measured = (
        _of_side(xp, standing.second, both)
        for both in (
            game.score(ops, after),
            game.reward(ops, state, after),
            duel.measures.values(ops, moment),
        )
    )
    path = standing.path
    for row in (*mine, *(() if theirs is None else theirs)):
        path = chance.fold(path, row.astype(xp.uint32))
    return standing._replace(
        state=after,
        memories=memories,
        frame=standing.frame + np.int32(1),
        going=going & ~ended,
        frames=standing.frames + going,
        score=xp.where(ended, score, standing.score),
        path=xp.where(going, path, standing.path),
        returned=standing.returned + xp.where(going, reward, _ZERO),
        measured=standing.measured + xp.where(going, measured, _ZERO),
    )


def stride(ops: Ops, duel: Duel, weights: Tree, standing: DuelState) -> DuelState:
    """All matches `STRIDE` frames further."""

    def one(carry: DuelState, _: Array) -> tuple[DuelState, Tree]:
        return advance(ops, duel, weights, carry), ()

    return ops.scan(one, standing, ops.xp.arange(STRIDE))[0]  # type: ignore[no-any-return]


def witnessed(duel: Duel, seeds: NDArray, second: NDArray) -> Iterator[State]:
    """The states of one match under NumPy, from the first frame to the one that ends it."""
    standing = begin(duel, seeds, second)
    yield standing.state
    while standing.going.any():
        standing = advance(NUMPY, duel, duel.weights, standing)
        yield standing.state


def _choices(
    ops: Ops, duel: Duel, weights: Tree, standing: DuelState
) -> tuple[Array, Array | None, Tree]:
    """The player's actions and the opponents', int32 [parts, B], and everyone's next memory."""
    xp, second = ops.xp, standing.second
    obs = duel.game.observe(ops, standing.state)
    legal = duel.game.legal(ops, standing.state)
    if not duel.opponents:
        view = PlayerView(obs[0], legal[0], standing.seeds, standing.frame)
        mine, memory = duel.player.act(ops, weights[0], view, standing.memories[0])
        return mine, None, (memory,)
    # The chance of each slot is its own: two copies of one bot must not slip in step.
    mixed = chance.fold(standing.seeds, 1)
    seeds = _exchanged(xp, second, standing.seeds, mixed)
    seen = _exchanged(xp, second, obs[0], obs[1])
    allowed = _exchanged(xp, second, legal[0], legal[1])
    view, across = (PlayerView(seen[i], allowed[i], seeds[i], standing.frame) for i in (0, 1))
    view, across = ops.barrier((view, across))
    mine, memory = duel.player.act(ops, weights[0], view, standing.memories[0])
    memories, theirs, start = [memory], [], 0
    for index, (opponent, count) in enumerate(duel.opponents, 1):
        part = PlayerView(*(field[..., start : start + count] for field in across))
        choice, memory = opponent.act(ops, weights[index], part, standing.memories[index])
        memories.append(memory)
        theirs.append(choice)
        start += count
    return mine, xp.concatenate(theirs, -1), tuple(memories)


def _of_side(xp: Any, second: Array, both: Array) -> Array:
    """[..., players, B] as [..., B] of the player."""
    one = both[..., 0, :]
    return one if both.shape[-2] == 1 else xp.where(second, both[..., 1, :], one)


def _exchanged(xp: Any, second: Array, one: Array, two: Array) -> tuple[Array, Array]:
    """(one, two), exchanged in the columns where the player sits second."""
    return xp.where(second, two, one), xp.where(second, one, two)
