"""Rollouts: a segment of every slot's match, played by the policy against its opponents.

Only our own decisions are kept; what the opponent did stands beside them, to be foretold.

What the policy makes of its opponents, looked at once an iteration: latents and attention.

One look at the last frame of a rollout costs as much as one frame of it, which had to be thought
about anyway, for the value of what follows.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from understudy.arena import slots as slotting
from understudy.arena.slots import Ends, MatchCounts, Plan, Slots
from understudy.core.ops import Array, Tree
from understudy.games.moments import Moment
from understudy.learner.hardware import computing, frames_at_once
from understudy.learner.maths.descent import FixedInputs, normalised
from understudy.learner.maths.jax_ops import JAX
from understudy.learner.segments import Segments
from understudy.policy import distributions
from understudy.policy.layers import Params
from understudy.policy.network import emptied
from understudy.policy.strategist import Strategist


class Strategy(NamedTuple):
    """Latents [L] of the slots at one frame; all empty for a network that has none."""

    means: Array
    """float32 [seats, L]: of the slots that meet each of them"""
    slots: Array
    """float32 [seats]: how many do"""
    mean: Array
    """float32 []: of all numbers of all latents"""
    spread: Array
    """float32 []: how far latents lie from their mean, a number of them"""
    attention_entropy: Array
    """float32 []: of the shares that frames have in a latent, in nats"""


def looked_at(
    plan: Plan, params: Params, seen: Array, memory: Tree, slots: Slots
) -> tuple[Array, Strategy]:
    """Values [B] of what is seen [B, F] with this memory, and what is made of the opponents."""
    network = plan.spec.network
    if not isinstance(network, Strategist):
        _, values, _ = network.step(JAX, params, seen, memory)
        nothing = jnp.zeros((), jnp.float32)
        empty = jnp.zeros((plan.seats, 0), jnp.float32)
        return values, Strategy(empty, jnp.zeros(plan.seats), nothing, nothing, nothing)
    insight = network.step_insight(JAX, params, seen, memory)
    latent = insight.latent.astype(jnp.float32)
    seats = jnp.arange(plan.seats, dtype=jnp.int32)[:, None] == slotting.seat(plan, slots)
    hits = seats.astype(jnp.float32)
    held = hits.sum(1)
    middle = latent.mean(0)
    strategy = Strategy(
        means=hits @ latent / jnp.maximum(held, 1.0)[:, None],
        slots=held,
        mean=middle.mean(),
        spread=jnp.sqrt(jnp.square(latent - middle).mean()),
        attention_entropy=_entropy(insight.attention),
    )
    return insight.values, strategy


def _entropy(attention: Array) -> Array:
    """The mean entropy of shares [B, window]: 0 where all is one frame's."""
    shares = attention.astype(jnp.float32)
    return -jnp.where(shares > 0, shares * jnp.log(jnp.maximum(shares, 1e-30)), 0.0).sum(1).mean()


class RolloutParameters(NamedTuple):
    """Who plays, in the precision that networks compute in."""

    params: Params
    rivals: Params
    """[groups, ...]: the snapshot that each group may meet"""
    bounds: Array
    """float32 [B, N]: whom each slot may meet next, see `Mix.bounds`"""
    weights: Array
    """float32 [terms]: what each term of the rewards weighs"""


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
    opponent_kinds: Array


class Rollout(NamedTuple):
    """What a rollout came to, but for the slots."""

    segments: Segments
    counts: MatchCounts
    ends: Ends
    strategy: Strategy


def rollout(
    plan: Plan, cast: RolloutParameters, frozen: FixedInputs, slots: Slots
) -> tuple[Slots, Rollout]:
    """`plan.segment` frames of every slot."""

    def frame(slots: Slots, _: None) -> tuple[Slots, tuple[_Row, Ends]]:
        return _frame(plan, cast, frozen, slots)

    memory = slots.ours
    slots, (rows, ends) = jax.lax.scan(frame, slots, length=plan.segment, unroll=frames_at_once())
    obs, _ = _views(plan, plan.game.observe(JAX, slots.state))
    seen = computing(plan.config, normalised(frozen, obs))
    bootstrap, strategy = looked_at(
        plan, cast.params, seen, emptied(JAX, slots.ours, slots.first), slots
    )
    segments = Segments(
        **rows._asdict(),
        foretold=jnp.ones_like(rows.valid),
        memory=memory,
        bootstrap=bootstrap,
    )
    return slots, Rollout(segments, slotting.counted(plan, ends), ends, strategy)


def _frame(
    plan: Plan, cast: RolloutParameters, frozen: FixedInputs, slots: Slots
) -> tuple[Slots, tuple[_Row, Ends]]:
    game, space = plan.game, plan.spec.actions
    obs, their_obs = _views(plan, game.observe(JAX, slots.state))
    legal, their_legal = _views(plan, game.legal(JAX, slots.state))
    logits, values, ours = _think(plan, cast.params, frozen, obs, slots.ours, slots.first)
    uniforms = slotting.draws(plan, slots, ours=True)
    actions, log_probs = distributions.choose(JAX, space, logits, legal, uniforms)
    theirs = slotting.scripted(plan, slots, their_obs.T).T
    their_memory = slots.theirs
    if plan.meets_itself:
        met = slotting.met(plan, slots)
        own, their_memory = _rivals(plan, cast, frozen, slots, their_obs, their_legal)
        theirs = jnp.where(met[:, None], own, theirs)
    state, theirs, actions = JAX.barrier((slots.state, theirs, actions))
    both = _joined(plan, actions, theirs)
    after = JAX.barrier(game.step(JAX, state, both))
    side = slotting.sides(plan)
    terms, measures = _worth(plan, cast.weights, Moment(game, state, after, both), side)
    rewards = terms.sum(0)
    over = game.over(JAX, after)
    slots = slots._replace(
        state=after,
        frame=slots.frame + 1,
        returned=slots.returned + rewards,
        ledger=slots.ledger + jnp.concatenate([terms, measures]),
        ours=ours,
        theirs=their_memory,
    )
    cut = (slots.frame >= slots.cut_at) & ~over
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
        opponent_kinds=_kinds(plan, slots),
    )
    score = _of_side(side, game.score(JAX, after))
    anew = slotting.restart(plan, slots, over | cut, cast.bounds)
    return anew, (row, slotting.endings(plan, slots, over, score, anew))


def _kinds(plan: Plan, slots: Slots) -> Array:
    """int32 [B]: who is met, as the network learns to name it."""
    if not plan.kinds:
        return jnp.full(plan.games, -1, jnp.int32)
    return jnp.asarray(plan.kinds, jnp.int32)[slots.opponent]


def _worth(plan: Plan, weights: Array, moment: Moment, side: Array) -> tuple[Array, Array]:
    """Our weighted terms [terms, B] and our measures [measures, B] of one frame."""
    parts = plan.rewards.parts(JAX, moment, weights)
    values = plan.measures.values(JAX, moment)
    terms, measures = (jnp.where(side == 1, both[:, 1], both[:, 0]) for both in (parts, values))
    return terms, measures


def _think(
    plan: Plan, params: Params, frozen: FixedInputs, obs: Array, memory: Tree, first: Array
) -> tuple[Array, Array, Tree]:
    """logits, values and memory of one network for obs [B, F]."""
    memory = emptied(JAX, memory, first)
    seen = computing(plan.config, normalised(frozen, obs))
    return plan.spec.network.step(JAX, params, seen, memory)


def _rivals(
    plan: Plan, cast: RolloutParameters, frozen: FixedInputs, slots: Slots, obs: Array, legal: Array
) -> tuple[Array, Tree]:
    """Actions [B, parts] of each group's snapshot, and their memory [groups, ...]."""
    first, obs = slotting.in_groups(plan, (slots.first, obs))

    def one_group(
        params: Params, obs: Array, memory: Tree, first: Array
    ) -> tuple[Array, Array, Tree]:
        return _think(plan, params, frozen, obs, memory, first)

    def think(memory: Tree) -> tuple[Array, Tree]:
        logits, _, memory = jax.vmap(one_group)(cast.rivals, obs, memory, first)
        uniforms = slotting.draws(plan, slots, ours=False)
        logits = slotting.side_by_side(logits)
        actions, _ = distributions.choose(JAX, plan.spec.actions, logits, legal, uniforms)
        return actions, memory

    def rest(memory: Tree) -> tuple[Array, Tree]:
        parts = len(plan.spec.actions.parts)
        return jnp.zeros((plan.games, parts), jnp.int32), memory

    # Before there is a snapshot, and in stages that meet none, nobody needs to think.
    acted: tuple[Array, Tree] = jax.lax.cond(
        slotting.met(plan, slots).any(), think, rest, slots.theirs
    )
    return acted


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
