"""The slots of the arena: matches side by side, each against one opponent, restarted as they end.

A slot is a column of every array. Its opponent is a scripted bot or its group's earlier version; it
draws a new one with every match. Nothing of a match reaches the next one: memories are emptied, and
random numbers come from the seed of the match alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from understudy.arena.mix import Mix
from understudy.core.chance import fold, uniform
from understudy.core.config import LearnerConfig
from understudy.core.ops import Array, Tree
from understudy.games.base import Bot, Game
from understudy.learner.hardware import narrow
from understudy.learner.jax_ops import JAX
from understudy.match.stage import TRAINING
from understudy.policy.spec import PolicySpec

_SEED, _OPPONENT, _CUT, _OURS, _THEIRS, _BOT = range(101, 107)
"""What a random number is for."""
_NEVER = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Plan:
    """Everything about an arena that is fixed when it is compiled."""

    spec: PolicySpec
    config: LearnerConfig
    game: Game
    bots: tuple[Bot, ...]
    """in the order of the mix"""
    mix: Mix
    games: int
    segment: int
    groups: int

    @property
    def opponents(self) -> int:
        """How many kinds of opponent there are."""
        return len(self.mix.names)

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
    """int32 [B], into the mix"""
    returned: Array
    """float32 [B]: rewards of the match so far"""
    ours: Tree
    theirs: Tree
    """[groups, B / groups, ...]; nothing where `self` is not met"""


class Counts(NamedTuple):
    """By kind of opponent, float32 [N]. A slot's very first match is in none of these, whether it
    ended or was cut off: only the short ones of them end."""

    started: Array
    wins: Array
    draws: Array
    losses: Array
    frames: Array
    returns: Array


def sides(plan: Plan) -> Array:
    """int32 [B]: the player that a slot plays; every other slot the second one."""
    return jnp.arange(plan.games, dtype=jnp.int32) % plan.game.players


def begin(plan: Plan, seed: Array, bounds: Array) -> Slots:
    """All slots at the start of their first match; seed uint32 []."""
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
        ours=network.memory(JAX, plan.games, plan.cache_dtype),
        theirs=_for_groups(plan) if plan.mix.meets_itself else (),
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
    )


def scripted(plan: Plan, slots: Slots, obs: Array) -> Array:
    """What the bots do, int32 [parts, B], from obs [F, B]; anything where `self` is met."""
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


def emptied(memory: Tree, first: Array) -> Tree:
    """Memory [B, ...] with nothing in it where a match begins.

    Caches [B, past, ...] keep their bytes, since the flags beside them [B, past] say that no slot
    of them holds anything: writing zeros into them would cost as much as reading them.
    """

    def at_first(x: Array) -> Array:
        return jnp.where(first[:, None], jnp.zeros_like(x), x) if x.ndim <= 2 else x

    return jax.tree.map(at_first, memory)


def in_groups(plan: Plan, tree: Tree) -> Tree:
    """[B, ...] to [groups, B / groups, ...]."""
    return jax.tree.map(lambda x: x.reshape(plan.groups, -1, *x.shape[1:]), tree)


def side_by_side(tree: Tree) -> Tree:
    """[groups, B / groups, ...] to [B, ...]."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), tree)


def meetings(plan: Plan, slots: Slots) -> Array:
    """int32 [groups]: how many slots of each group are in a match against its version."""
    met = (slots.opponent == plan.opponents - 1) & plan.mix.meets_itself
    return in_groups(plan, met).sum(1, dtype=jnp.int32)


def no_counts(plan: Plan) -> Counts:
    """Before anything was played."""
    return Counts(*(jnp.zeros(plan.opponents, jnp.float32) for _ in Counts._fields))


def counted(plan: Plan, slots: Slots, ended: Array, score: Array) -> Counts:
    """What the matches that `ended` [B] add, with our score [B]."""
    kinds = jnp.arange(plan.opponents, dtype=jnp.int32)[:, None] == slots.opponent
    hits = (kinds & ended & (slots.cut_at == _NEVER)).astype(jnp.float32)
    return Counts(
        started=jnp.zeros(plan.opponents, jnp.float32),
        wins=(hits * (score > 0)).sum(1),
        draws=(hits * (score == 0)).sum(1),
        losses=(hits * (score < 0)).sum(1),
        frames=(hits * slots.frame).sum(1),
        returns=(hits * slots.returned).sum(1),
    )


def begun(plan: Plan, slots: Slots) -> Counts:
    """What the matches add that begin with the next frame."""
    kinds = jnp.arange(plan.opponents, dtype=jnp.int32)[:, None] == slots.opponent
    started = (kinds & slots.first).astype(jnp.float32).sum(1)
    return no_counts(plan)._replace(started=started)


def _opponents(seeds: Array, bounds: Array) -> Array:
    """int32 [B], drawn by the bounds [B, N] or [N]."""
    share = _draw(fold(seeds, _OPPONENT))
    return (share[:, None] >= jnp.atleast_2d(bounds)[:, :-1]).sum(1, dtype=jnp.int32)


def _draw(key: Array) -> Array:
    """float32 [B] in [0, 1)."""
    return uniform(JAX, key, jnp.zeros(1, jnp.uint32))[0]


def _for_groups(plan: Plan) -> Tree:
    return in_groups(plan, plan.spec.network.memory(JAX, plan.games, plan.cache_dtype))
