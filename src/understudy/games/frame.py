"""One frame of many matches: every side observes and acts, the game steps, one side is scored.

`match.duel`, the arena and the balance tables all play through `play_frame`. They differ in how
actions are chosen, so that is the argument `act`. "Own" is the side that a caller follows and
"other" the one opposite; in each column of the batch, `second` says which player is which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from understudy.core import chance
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Array, Ops, Tree
from understudy.games.base import Bot, Game, State
from understudy.games.moments import Moment, RewardSet

BySide: TypeAlias = tuple[Array, ...]
"""The own side's array [..., B], then the other's; of a game of one player the first alone."""
Act: TypeAlias = Callable[[BySide, BySide], tuple[BySide, Tree]]
"""From what each side sees, float32 [features, B], and may do, bool [options, B], to its actions,
int32 [parts, B], and anything else that the caller wants to have back."""
NO_MEASURES = RewardSet((), ())


class Frame(NamedTuple):
    """A frame of B matches that has been played."""

    moment: Moment
    """The states before and after, and the actions in the order of the players."""
    chosen: BySide
    """int32 [parts, B]: the same actions, the own side's first."""
    over: Array
    """bool [B]: the match has ended."""
    score: Array
    """float32 [B], the own side's."""
    measured: Array
    """float32 [K, B]: the own side's measures."""
    kept: Tree
    """What `act` returned beside the actions."""


def play_frame(
    ops: Ops, game: Game, state: State, second: Array, act: Act, measures: RewardSet = NO_MEASURES
) -> Frame:
    """One frame of every match, with an optimisation barrier on either side of the step.

    Without the barriers XLA fuses the game into the networks and computes parts of it many times.
    `act` may set up more of them. `second`, bool [B], is where the own side is player 1.
    """
    obs, legal = (by_side(ops, second, seen(ops, state)) for seen in (game.observe, game.legal))
    chosen, kept = act(obs, legal)
    state, chosen = ops.barrier((state, chosen))
    actions = ops.xp.stack(by_side(ops, second, chosen))
    after = ops.barrier(game.step(ops, state, actions))
    moment = Moment(game, state, after, actions)
    return Frame(
        moment=moment,
        chosen=chosen,
        over=game.over(ops, after),
        score=own_side(ops, second, game.score(ops, after)),
        measured=own_side(ops, second, measures.values(ops, moment)),
        kept=kept,
    )


def by_side(ops: Ops, second: Array, players: Array | BySide) -> BySide:
    """Arrays [..., B] by player to arrays by side, or back: one exchange undoes the other."""
    if len(players) == 1:
        return (players[0],)
    one, two = players
    return ops.xp.where(second, two, one), ops.xp.where(second, one, two)


def own_side(ops: Ops, second: Array, players: Array) -> Array:
    """[..., players, B] to [..., B] of the own side."""
    one = players[..., 0, :]
    return one if players.shape[-2] == 1 else ops.xp.where(second, players[..., 1, :], one)


def bot_frames(
    game: Game, bots: Sequence[Bot], seeds: NDArray, second: NDArray
) -> Iterator[tuple[NDArray, Frame]]:
    """Plays scripted bots under NumPy, the own side's first, until every match is over.

    Yields the numbers of the matches that were open, int [N], and their frame. A match that ends
    leaves the batch: seeds uint32 [B] and second bool [B] are those of all.
    """
    state, matches, number = game.start(NUMPY, seeds), np.arange(len(seeds)), 0
    sides = (second, ~second)[: game.players]
    keys = [chance.side_key(NUMPY, seeds, side) for side in sides]

    def act(obs: BySide, legal: BySide) -> tuple[BySide, Tree]:
        clock = np.full(len(matches), number, np.int32)
        turns = zip(bots, obs, keys, strict=True)
        return tuple(bot.act(NUMPY, seen, key[matches], clock) for bot, seen, key in turns), ()

    while len(matches):
        frame = play_frame(NUMPY, game, state, second[matches], act)
        yield matches, frame
        state, number = frame.moment.after, number + 1
        if frame.over.any():
            matches = matches[~frame.over]
            state = type(state)(*(leaf[..., ~frame.over] for leaf in state))
