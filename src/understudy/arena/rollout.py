"""Rollouts: a segment of every slot's match, played by the policy against its opponents.

Only our own decisions are kept; what the opponent did stands beside them, to be foretold.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from understudy.arena import slots as slotting
from understudy.arena.slots import Counts, Plan, Slots
from understudy.core.ops import Array, Tree
from understudy.learner.descent import Frozen, normalised
from understudy.learner.hardware import computing, frames_at_once
from understudy.learner.jax_ops import JAX
from understudy.learner.segments import Segments
from understudy.policy import distributions
from understudy.policy.layers import Params


class Cast(NamedTuple):
    """Who plays, in the precision that networks compute in."""

    params: Params
    rivals: Params
    """[groups, ...]: the earlier version that each group may meet"""
    bounds: Array
    """float32 [B, N]: whom each slot may meet next, see `Mix.bounds`"""


class _Row(NamedTuple):
    """One frame of `Segments`."""

    obs: Array
    legal: Array
    actions: Array
    log_probs: Array
    values: Array
    rewards: Array
    ongoing: Array
    first: Array
    valid: Array
    opponent_actions: Array


def rollout(plan: Plan, cast: Cast, frozen: Frozen, slots: Slots) -> tuple[Slots, Segments, Counts]:
    """`plan.segment` frames of every slot."""

    def frame(carry: tuple[Slots, Counts], _: None) -> tuple[tuple[Slots, Counts], _Row]:
        return _frame(plan, cast, frozen, *carry)

    memory = slots.ours
    (slots, counts), rows = jax.lax.scan(
        frame,
        (slots, slotting.no_counts(plan)),
        length=plan.segment,
        unroll=frames_at_once(),
    )
    obs, _ = _views(plan, plan.game.observe(JAX, slots.state))
    _, bootstrap, _ = _think(plan, cast.params, frozen, obs, slots.ours, slots.first)
    segments = Segments(
        **rows._asdict(),
        foretold=jnp.ones_like(rows.valid),
        memory=memory,
        bootstrap=bootstrap,
    )
    return slots, segments, counts


def _frame(
    plan: Plan, cast: Cast, frozen: Frozen, slots: Slots, counts: Counts
) -> tuple[tuple[Slots, Counts], _Row]:
    game, space = plan.game, plan.spec.actions
    obs, their_obs = _views(plan, game.observe(JAX, slots.state))
    legal, their_legal = _views(plan, game.legal(JAX, slots.state))
    logits, values, ours = _think(plan, cast.params, frozen, obs, slots.ours, slots.first)
    uniforms = slotting.draws(plan, slots, ours=True)
    actions, log_probs = distributions.choose(JAX, space, logits, legal, uniforms)
    theirs = slotting.scripted(plan, slots, their_obs.T).T
    their_memory = slots.theirs
    if plan.mix.meets_itself:
        met = slots.opponent == plan.opponents - 1
        own, their_memory = _rivals(plan, cast, frozen, slots, their_obs, their_legal)
        theirs = jnp.where(met[:, None], own, theirs)
    state, theirs, actions = JAX.barrier((slots.state, theirs, actions))
    after = JAX.barrier(game.step(JAX, state, _joined(plan, actions, theirs)))
    side = slotting.sides(plan)
    rewards = _of_side(side, game.reward(JAX, state, after))
    over = game.over(JAX, after)
    slots = slots._replace(
        state=after,
        frame=slots.frame + 1,
        returned=slots.returned + rewards,
        ours=ours,
        theirs=their_memory,
    )
    cut = (slots.frame >= slots.cut_at) & ~over
    added = slotting.counted(plan, slots, over, _of_side(side, game.score(JAX, after)))
    row = _Row(
        obs=obs,
        legal=legal,
        actions=actions,
        log_probs=log_probs,
        values=values,
        rewards=rewards,
        ongoing=1.0 - (over | cut).astype(jnp.float32),
        first=slots.first,
        valid=1.0 - cut.astype(jnp.float32),
        opponent_actions=theirs,
    )
    slots = slotting.restart(plan, slots, over | cut, cast.bounds)
    begun = slotting.begun(plan, slots)
    counts = Counts(*(a + b + c for a, b, c in zip(counts, added, begun, strict=True)))
    return (slots, counts), row


def _think(
    plan: Plan, params: Params, frozen: Frozen, obs: Array, memory: Tree, first: Array
) -> tuple[Array, Array, Tree]:
    """logits, values and memory of one network for obs [B, F]."""
    memory = slotting.emptied(memory, first)
    seen = computing(plan.config, normalised(frozen, obs))
    return plan.spec.network.step(JAX, params, seen, memory)


def _rivals(
    plan: Plan, cast: Cast, frozen: Frozen, slots: Slots, obs: Array, legal: Array
) -> tuple[Array, Tree]:
    """Actions [B, parts] of each group's version, and their memory [groups, ...]."""
    first, obs = slotting.in_groups(plan, (slots.first, obs))

    def one_group(
        params: Params, obs: Array, memory: Tree, first: Array
    ) -> tuple[Array, Array, Tree]:
        return _think(plan, params, frozen, obs, memory, first)

    logits, _, memory = jax.vmap(one_group)(cast.rivals, obs, slots.theirs, first)
    uniforms = slotting.draws(plan, slots, ours=False)
    logits = slotting.side_by_side(logits)
    actions, _ = distributions.choose(JAX, plan.spec.actions, logits, legal, uniforms)
    return actions, memory


def _views(plan: Plan, both: Array) -> tuple[Array, Array]:
    """[2, N, B] as [B, N] of our side and [B, N] of the other."""
    second = slotting.sides(plan) == 1
    ours = jnp.where(second, both[1], both[0])
    theirs = jnp.where(second, both[0], both[1])
    return ours.T, theirs.T


def _joined(plan: Plan, ours: Array, theirs: Array) -> Array:
    """Two times [B, parts] as [2, parts, B]."""
    second = slotting.sides(plan) == 1
    one, other = ours.T, theirs.T
    return jnp.stack([jnp.where(second, other, one), jnp.where(second, one, other)])


def _of_side(side: Array, both: Array) -> Array:
    """[2, B] as [B] of our side."""
    return jnp.where(side == 1, both[1], both[0])
