"""The slots of the arena: matches side by side, each against one opponent, restarted as they end.

A slot is a column of every array. Its opponent is a scripted bot or its group's snapshot; it draws
a new one with every match. Nothing of a match reaches the next one: memories are emptied, and
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
"""Terms of rewards are summed over matches in multiples of this, and the rest apart."""


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

    @property
    def opponents(self) -> int:
        """How many kinds of opponent there are: each bot, and a group's snapshot."""
        return len(self.bots) + self.meets_itself

    @property
    def seats(self) -> int:
        """How many opponents are counted apart: each bot, and each group's snapshot."""
        return len(self.bots) + (self.groups if self.meets_itself else 0)

    @property
    def ledger(self) -> int:
        """How many numbers are summed over a match: the rewards' terms, then the measures."""
        return len(self.rewards.names) + len(self.measures.names)

    @property
    def cache_dtype(self) -> type:
        """What attention caches are kept in."""
        return jnp.bfloat16 if narrow(self.config) else np.float32


class Slots(NamedTuple):
    """What a match in progress is; the batch is the last axis of `state`, the first of memories."""

    state: Tree
    seeds: Array
    """uint32 [B], of the match"""
    started: Array
    """uint32 [B]: matches that this slot has begun"""
    frame: Array
    """int32 [B], of the match"""
    first: Array
    """bool [B]: the match begins with the next frame"""
    cut_at: Array
    """int32 [B]: the frame at which a slot's very first match is cut off, so that the slots' clocks
    are spread and matches end evenly over time"""
    opponent: Array
    """int32 [B]: the kind that is met"""
    returned: Array
    """float32 [B]: rewards of the match so far"""
    ledger: Array
    """float32 [ledger, B]: the same term by term, and the measures"""
    ours: Tree
    theirs: Tree
    """[groups, B / groups, ...]; nothing where `self` is not met"""


class MatchCounts(NamedTuple):
    """By seat, float32 [seats]. A slot's very first match is in none of these, whether it ended or
    was cut off: only the short ones of them end."""

    started: Array
    wins: Array
    draws: Array
    losses: Array
    frames: Array
    returns: Array
    ledger: Array
    """[seats, ledger]; of the rewards' terms, multiples of 2**-4 alone"""
    rest: Array
    """[seats, terms]: what the terms have beside that. float32 holds multiples of 2**-16 up to 256
    and no further, but the sums of many matches go further: in these two parts both are exact, for
    2**13 matches and for a million of rewards at the least"""
    residual: Array
    """The largest difference between a return and the sum of its terms: 0 where they are exact."""


class Ends(NamedTuple):
    """The matches that ended and those that began, by frame and slot [T, B]."""

    counts: Array
    """bool: a match ended, and it counts"""
    seat: Array
    """int32: whom it was against"""
    score: Array
    """float32"""
    frames: Array
    """int32"""
    returned: Array
    """float32"""
    ledger: Array | None
    """float32 [T, ledger, B]; None once it was counted"""
    began: Array
    """bool: a match begins with the next frame"""
    next_seat: Array
    """int32: whom that is against"""


def sides(plan: Plan) -> Array:
    """int32 [B]: the player that a slot plays; every other slot the second one."""
    return jnp.arange(plan.games, dtype=jnp.int32) % plan.game.players


def begin(plan: Plan, seed: Array, bounds: Array) -> Slots:
    """All slots at the start of their first match; seed uint32 [], bounds as in `restart`."""
    slot = jnp.arange(plan.games, dtype=jnp.uint32)
    key = fold(fold(jnp.full(plan.games, TRAINING, jnp.uint32), seed), slot)
    started = jnp.ones(plan.games, jnp.uint32)
    seeds = fold(fold(key, _SEED), started)
    share = _draw(fold(key, _CUT))
    network = plan.spec.network
    return Slots(
        state=plan.game.start(JAX, seeds),
        seeds=seeds,
        started=started,
        frame=jnp.zeros(plan.games, jnp.int32),
        first=jnp.ones(plan.games, bool),
        cut_at=1 + (share * (plan.game.max_frames - 1)).astype(jnp.int32),
        opponent=_opponents(seeds, bounds),
        returned=jnp.zeros(plan.games, jnp.float32),
        ledger=jnp.zeros((plan.ledger, plan.games), jnp.float32),
        ours=network.memory(JAX, plan.games, plan.cache_dtype),
        theirs=_for_groups(plan) if plan.meets_itself else (),
    )


def restart(plan: Plan, slots: Slots, ended: Array, bounds: Array) -> Slots:
    """A new match in the slots where `ended` [B]; bounds [B, N] say whom they may meet."""
    started = slots.started + ended.astype(jnp.uint32)
    seeds = jnp.where(ended, fold(fold(slots.seeds, _SEED), started), slots.seeds)
    fresh = plan.game.start(JAX, seeds)
    return slots._replace(
        state=jax.tree.map(lambda new, old: jnp.where(ended, new, old), fresh, slots.state),
        seeds=seeds,
        started=started,
        frame=jnp.where(ended, 0, slots.frame),
        first=ended,
        cut_at=jnp.where(ended, _NEVER, slots.cut_at),
        opponent=jnp.where(ended, _opponents(seeds, bounds), slots.opponent),
        returned=jnp.where(ended, 0.0, slots.returned),
        ledger=jnp.where(ended, 0.0, slots.ledger),
    )


def scripted(plan: Plan, slots: Slots, obs: Array) -> Array:
    """What the bots do, int32 [parts, B], from obs [F, B]; anything where a snapshot is met."""
    if not plan.bots:
        return jnp.zeros((len(plan.spec.actions.parts), plan.games), jnp.int32)
    seeds = fold(slots.seeds, _BOT)
    chosen = [bot.act(JAX, obs, seeds, slots.frame) for bot in plan.bots]
    return reduce(
        lambda before, item: jnp.where(slots.opponent == item[0], item[1], before),
        enumerate(chosen[1:], start=1),
        chosen[0],
    )


def draws(plan: Plan, slots: Slots, *, ours: bool) -> Array:
    """float32 [B, parts]: what actions are sampled with."""
    key = fold(fold(slots.seeds, _OURS if ours else _THEIRS), slots.frame.astype(jnp.uint32))
    parts = jnp.arange(len(plan.spec.actions.parts), dtype=jnp.uint32)
    return uniform(JAX, key, parts).T


def in_groups(plan: Plan, tree: Tree) -> Tree:
    """[B, ...] to [groups, B / groups, ...]."""
    return jax.tree.map(lambda x: x.reshape(plan.groups, -1, *x.shape[1:]), tree)


def side_by_side(tree: Tree) -> Tree:
    """[groups, B / groups, ...] to [B, ...]."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), tree)


def met(plan: Plan, slots: Slots) -> Array:
    """bool [B]: in a match against the group's snapshot."""
    return (slots.opponent == len(plan.bots)) & plan.meets_itself


def meetings(plan: Plan, slots: Slots) -> Array:
    """int32 [groups]: how many slots of each group are in a match against its snapshot."""
    return in_groups(plan, met(plan, slots)).sum(1, dtype=jnp.int32)


def seat(plan: Plan, slots: Slots) -> Array:
    """int32 [B]: whom each slot meets, each group's snapshot apart."""
    group = jnp.arange(plan.games, dtype=jnp.int32) // (plan.games // plan.groups)
    return slots.opponent + jnp.where(met(plan, slots), group, 0)


def endings(plan: Plan, slots: Slots, ended: Array, score: Array, after: Slots) -> Ends:
    """One frame of `Ends`: the matches that `ended` [B] with our score [B], then as `after`."""
    return Ends(
        counts=ended & (slots.cut_at == _NEVER),
        seat=seat(plan, slots),
        score=score,
        frames=slots.frame,
        returned=slots.returned,
        ledger=slots.ledger,
        began=after.first,
        next_seat=seat(plan, after),
    )


def counted(plan: Plan, ends: Ends) -> MatchCounts:
    """All of a rollout, added up by seat."""
    assert ends.ledger is not None
    seats = jnp.arange(plan.seats, dtype=jnp.int32)[:, None, None]
    hits = ((seats == ends.seat) & ends.counts).astype(jnp.float32)
    terms, measures = jnp.split(ends.ledger, [len(plan.rewards.names)], axis=1)
    coarse = jnp.rint(terms / _COARSE) * _COARSE
    parts = jnp.concatenate([coarse, measures, terms - coarse], axis=1)
    # Frame by frame, then over frames: in one go, both would be turned over in memory first.
    sums = jnp.einsum("stb,tmb->tsm", hits, parts, precision=jax.lax.Precision.HIGHEST).sum(0)

    def over(values: Array) -> Array:
        return (hits * values).sum((1, 2))

    return MatchCounts(
        started=((seats == ends.next_seat) & ends.began).astype(jnp.float32).sum((1, 2)),
        wins=over(ends.score > 0),
        draws=over(ends.score == 0),
        losses=over(ends.score < 0),
        frames=over(ends.frames),
        returns=over(ends.returned),
        ledger=sums[:, : plan.ledger],
        rest=sums[:, plan.ledger :],
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
    return in_groups(plan, plan.spec.network.memory(JAX, plan.games, plan.cache_dtype))
