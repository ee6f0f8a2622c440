"""The columns of the arena: matches side by side, each against one opponent, restarted as they end.

Column b of every array belongs to match b. Its opponent is a scripted bot or its group's snapshot,
drawn anew with every match. Nothing of a match reaches the next one: memories are emptied, and
random numbers come from the seed of the match alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from understudy.core.chance import fold, uniform
from understudy.core.config import LearnerConfig
from understudy.core.ops import Array, Tree
from understudy.games.base import Bot, Game
from understudy.games.moments import RewardSet
from understudy.learner.hardware import narrow
from understudy.learner.maths.jax_ops import JAX
from understudy.match.live_match import TRAINING
from understudy.policy.spec import PolicySpec

_SEED, _OPPONENT, _CUT, _OURS, _THEIRS, _BOT = range(101, 107)
"""What a random number is for."""
_NEVER = np.iinfo(np.int32).max
_COARSE = 2.0**-4
"""Terms of rewards are summed over matches in multiples of this, and the rest apart: `counted`."""


@dataclass(frozen=True)
class Plan:
    """Everything about an arena that is fixed when it is compiled."""

    spec: PolicySpec
    config: LearnerConfig
    game: Game
    bots: tuple[Bot, ...]
    meets_itself: bool
    """whether snapshots are met, too: kind `len(bots)`, after the bots"""
    rewards: RewardSet
    """what decisions are trained on"""
    measures: RewardSet
    """what is summed over a match beside that, to be told"""
    games: int
    segment: int
    groups: int
    kinds: tuple[int, ...] = ()
    """what the network learns to name each kind of opponent by, snapshots last; none: nothing"""
    recorded: tuple[int, ...] = ()
    """columns whose matches are recorded"""
    devices: int = 1
    """that share the columns evenly, see `arena.devices`"""

    @property
    def recorded_here(self) -> tuple[int, ...]:
        """The recorded columns of a device, by their place there; all devices have the same."""
        here = self.games // self.devices
        return tuple(column for column in self.recorded if column < here)

    @property
    def opponent_kinds(self) -> int:
        """How many kinds of opponent there are: each bot, and a group's snapshot."""
        return len(self.bots) + self.meets_itself

    @property
    def opponents(self) -> int:
        """How many opponents are counted apart: each bot, and each group's snapshot; the rules of a
        game of one player are one."""
        if self.alone:
            return 1
        return len(self.bots) + (self.groups if self.meets_itself else 0)

    @property
    def alone(self) -> bool:
        """Whether the game has one player: there are no bots and no snapshots."""
        return self.game.players == 1

    @property
    def sums(self) -> int:
        """How many numbers are summed over a match: the rewards' terms, then the measures."""
        return len(self.rewards.names) + len(self.measures.names)

    @property
    def cache_dtype(self) -> type:
        """What attention caches are kept in."""
        return jnp.bfloat16 if narrow(self.config) else np.float32


class Columns(NamedTuple):
    """What a match in progress is; the batch is the last axis of `state`, the first of memories."""

    state: Tree
    index: Array
    """int32 [B]: the number of the column, which says its side and its group"""
    seeds: Array
    """uint32 [B], of the match"""
    started: Array
    """uint32 [B]: matches that this column has begun"""
    frame: Array
    """int32 [B], of the match"""
    first: Array
    """bool [B]: the match begins with the next frame"""
    cut_at: Array
    """int32 [B]: the frame at which a column's very first match is cut off, so that the clocks of
    the columns are spread and matches end evenly over time"""
    kind: Array
    """int32 [B]: the kind of opponent that is met: a bot, or the group's snapshot, which is last"""
    returned: Array
    """float32 [B]: rewards of the match so far"""
    sums: Array
    """float32 [sums, B]: the same term by term, and the measures"""
    ours: Tree
    theirs: Tree
    """[groups, B / groups, ...]; nothing where `self` is not met"""


class MatchCounts(NamedTuple):
    """By opponent, float32 [opponents]. A column's very first match is in none of these, whether it
    ended or was cut off: only the short ones of them end."""

    started: Array
    wins: Array
    draws: Array
    losses: Array
    frames: Array
    returns: Array
    sums: Array
    """[opponents, sums]; of the rewards' terms, multiples of 2**-4 alone"""
    rest: Array
    """[opponents, terms]: what the terms have beside that, see `counted`"""
    residual: Array
    """The largest difference between a return and the sum of its terms: 0 where they are exact."""


class Ends(NamedTuple):
    """The matches that ended and those that began, by frame and column [T, B]."""

    counts: Array
    """bool: a match ended, and it counts"""
    opponent: Array
    """int32: whom it was against, see `opponent_index`"""
    score: Array
    """float32"""
    frames: Array
    """int32"""
    returned: Array
    """float32"""
    sums: Array | None
    """float32 [T, sums, B]; None once it was counted"""
    began: Array
    """bool: a match begins with the next frame"""
    next_opponent: Array
    """int32: whom that is against"""


def sides(plan: Plan, columns: Columns) -> Array:
    """int32 [B]: the player that a column plays; every other column the second one."""
    return columns.index % plan.game.players


def begin(plan: Plan, seed: Array, bounds: Array) -> Columns:
    """All columns at the start of their first match; seed uint32 [], bounds [groups, N]."""
    column = jnp.arange(plan.games, dtype=jnp.uint32)
    key = fold(fold(jnp.full(plan.games, TRAINING, jnp.uint32), seed), column)
    started = jnp.ones(plan.games, jnp.uint32)
    seeds = fold(fold(key, _SEED), started)
    share = _draw(fold(key, _CUT))
    network = plan.spec.network
    return Columns(
        state=plan.game.start(JAX, seeds),
        index=column.astype(jnp.int32),
        seeds=seeds,
        started=started,
        frame=jnp.zeros(plan.games, jnp.int32),
        first=jnp.ones(plan.games, bool),
        cut_at=1 + (share * (plan.game.max_frames - 1)).astype(jnp.int32),
        kind=_opponents(seeds, per_column(plan, bounds)),
        returned=jnp.zeros(plan.games, jnp.float32),
        sums=jnp.zeros((plan.sums, plan.games), jnp.float32),
        ours=network.memory(JAX, plan.games, plan.cache_dtype),
        theirs=_for_groups(plan) if plan.meets_itself else (),
    )


def restart(plan: Plan, columns: Columns, ended: Array, bounds: Array) -> Columns:
    """A new match in the columns where `ended` [B]; bounds [B, N] say whom they may meet."""
    started = columns.started + ended.astype(jnp.uint32)
    seeds = jnp.where(ended, fold(fold(columns.seeds, _SEED), started), columns.seeds)
    fresh = plan.game.start(JAX, seeds)
    return columns._replace(
        state=jax.tree.map(lambda new, old: jnp.where(ended, new, old), fresh, columns.state),
        seeds=seeds,
        started=started,
        frame=jnp.where(ended, 0, columns.frame),
        first=ended,
        cut_at=jnp.where(ended, _NEVER, columns.cut_at),
        kind=jnp.where(ended, _opponents(seeds, bounds), columns.kind),
        returned=jnp.where(ended, 0.0, columns.returned),
        sums=jnp.where(ended, 0.0, columns.sums),
    )


def bot_actions(plan: Plan, columns: Columns, obs: Array) -> Array:
    """What the bots do, int32 [parts, B], from obs [F, B]; anything where a snapshot is met."""
    if not plan.bots:
        return jnp.zeros((len(plan.spec.actions.parts), len(columns.kind)), jnp.int32)
    seeds = fold(columns.seeds, _BOT)
    chosen = [bot.act(JAX, obs, seeds, columns.frame) for bot in plan.bots]
    return reduce(
        lambda before, item: jnp.where(columns.kind == item[0], item[1], before),
        enumerate(chosen[1:], start=1),
        chosen[0],
    )


def action_uniforms(plan: Plan, columns: Columns, *, ours: bool) -> Array:
    """float32 [B, parts]: what actions are sampled with."""
    key = fold(fold(columns.seeds, _OURS if ours else _THEIRS), columns.frame.astype(jnp.uint32))
    parts = jnp.arange(len(plan.spec.actions.parts), dtype=jnp.uint32)
    return uniform(JAX, key, parts).T


def per_column(plan: Plan, bounds: Array) -> Array:
    """float32 [groups, N] as [B, N]."""
    return jnp.repeat(bounds, plan.games // plan.groups, axis=0)


def in_groups(groups: int, tree: Tree) -> Tree:
    """[B, ...] to [groups, B / groups, ...]."""
    return jax.tree.map(lambda x: x.reshape(groups, -1, *x.shape[1:]), tree)


def ungrouped(tree: Tree) -> Tree:
    """[groups, B / groups, ...] to [B, ...]."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), tree)


def meets_snapshot(plan: Plan, columns: Columns) -> Array:
    """bool [B]: in a match against the group's snapshot."""
    return (columns.kind == len(plan.bots)) & plan.meets_itself


def snapshot_meetings(plan: Plan, columns: Columns) -> Array:
    """int32 [groups]: how many columns of each group are in a match against its snapshot."""
    return in_groups(plan.groups, meets_snapshot(plan, columns)).sum(1, dtype=jnp.int32)


def opponent_index(plan: Plan, columns: Columns) -> Array:
    """int32 [B]: whom each column meets: the bots are first, then the snapshot of each group."""
    group = columns.index // (plan.games // plan.groups)
    return columns.kind + jnp.where(meets_snapshot(plan, columns), group, 0)


def endings(plan: Plan, columns: Columns, ended: Array, score: Array, after: Columns) -> Ends:
    """One frame of `Ends`: the matches that `ended` [B] with our score [B], then as `after`."""
    return Ends(
        counts=ended & (columns.cut_at == _NEVER),
        opponent=opponent_index(plan, columns),
        score=score,
        frames=columns.frame,
        returned=columns.returned,
        sums=columns.sums,
        began=after.first,
        next_opponent=opponent_index(plan, after),
    )


def counted(plan: Plan, ends: Ends) -> MatchCounts:
    """The matches of a rollout, summed by opponent.

    `hits` [opponents, T, B] is 1 where a match against that opponent ended and counts. All sums are
    products with it: over frames and columns for scalars, and one matrix product per frame, then a
    sum over frames, for the terms and measures [T, sums, B].

    The sums of the terms must equal the sum of the returns to the last bit, as the table of rewards
    shows the difference. The terms of one match are multiples of 2**-16, which float32 holds
    exactly up to 256, but the sums of many matches go beyond that. So each term is split into the
    nearest multiple of 2**-4 and the rest, which is at most 2**-5, and both parts are summed apart.
    Both sums are exact for at least 2**13 matches and a million of rewards, and the host adds them
    in float64.
    """
    assert ends.sums is not None
    indices = jnp.arange(plan.opponents, dtype=jnp.int32)[:, None, None]
    hits = ((indices == ends.opponent) & ends.counts).astype(jnp.float32)
    terms, measures = jnp.split(ends.sums, [len(plan.rewards.names)], axis=1)
    coarse = jnp.rint(terms / _COARSE) * _COARSE
    parts = jnp.concatenate([coarse, measures, terms - coarse], axis=1)
    # Frame by frame, then over frames: one product over both would first transpose both in memory.
    sums = jnp.einsum("stb,tmb->tsm", hits, parts, precision=jax.lax.Precision.HIGHEST).sum(0)

    def over(values: Array) -> Array:
        return (hits * values).sum((1, 2))

    return MatchCounts(
        started=((indices == ends.next_opponent) & ends.began).astype(jnp.float32).sum((1, 2)),
        wins=over(ends.score > 0),
        draws=over(ends.score == 0),
        losses=over(ends.score < 0),
        frames=over(ends.frames),
        returns=over(ends.returned),
        sums=sums[:, : plan.sums],
        rest=sums[:, plan.sums :],
        residual=(jnp.abs(ends.returned - terms.sum(1)) * ends.counts).max(),
    )


def _opponents(seeds: Array, bounds: Array) -> Array:
    """int32 [B], drawn by the bounds [B, N] or [N]."""
    share = _draw(fold(seeds, _OPPONENT))
    return (share[:, None] >= jnp.atleast_2d(bounds)[:, :-1]).sum(1, dtype=jnp.int32)


def _draw(key: Array) -> Array:
    """float32 [B] in [0, 1)."""
    return uniform(JAX, key, jnp.zeros(1, jnp.uint32))[0]


def _for_groups(plan: Plan) -> Tree:
    return in_groups(plan.groups, plan.spec.network.memory(JAX, plan.games, plan.cache_dtype))
