"""Rollouts: a segment of every column's match, played by the policy against its opponents.

Only the policy's own decisions are kept; the opponent's actions stand beside them as targets of the
auxiliary loss that predicts them. At the last frame of a rollout, latents and attention are read
too: the policy computes that frame anyway, for the value of what follows.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from understudy.arena.columns import (
    Columns,
    Ends,
    MatchCounts,
    Plan,
    action_uniforms,
    bot_actions,
    counted,
    endings,
    in_groups,
    meets_snapshot,
    opponent_index,
    restart,
    sides,
    ungrouped,
)
from understudy.arena.devices import COLUMNS, GROUPS, columns_placement, mesh
from understudy.arena.recording import RecordedFrames, record
from understudy.core.ops import Array, Tree
from understudy.games.frame import BySide, by_side, own_side, play_frame
from understudy.learner.hardware import computing, frames_at_once, partition, per_device
from understudy.learner.maths.descent import FixedInputs, normalised
from understudy.learner.maths.jax_ops import JAX
from understudy.learner.maths.segments import Segments
from understudy.policy import distributions
from understudy.policy.layers import Params
from understudy.policy.network import emptied
from understudy.policy.strategist import Strategist


class Strategy(NamedTuple):
    """Latents [L] of the columns at one frame; all empty for a network that has none."""

    means: Array
    """float32 [opponents, L]: of the columns that meet each of them"""
    columns: Array
    """float32 [opponents]: how many do"""
    mean: Array
    """float32 []: of all numbers of all latents"""
    spread: Array
    """float32 []: how far latents lie from their mean, a number of them"""
    attention_entropy: Array
    """float32 []: of the shares that frames have in a latent, in nats"""


class _LastFrame(NamedTuple):
    """What the policy makes of the frame that follows a rollout, by column."""

    values: Array
    latents: Array
    """float32 [B, L]; L is 0 for a network that has none"""
    attention: Array
    """[B, window]: the shares of frames in a latent"""


def _last_frame(plan: Plan, params: Params, seen: Array, memory: Tree) -> _LastFrame:
    network = plan.spec.network
    if not isinstance(network, Strategist):
        _, values, _ = network.step(JAX, params, seen, memory)
        nothing = jnp.zeros((len(seen), 0), jnp.float32)
        return _LastFrame(values, nothing, nothing)
    insight = network.step_insight(JAX, params, seen, memory)
    return _LastFrame(insight.values, insight.latent.astype(jnp.float32), insight.attention)


def _strategy(plan: Plan, last: _LastFrame, columns: Columns) -> Strategy:
    """What is made of the opponents, over all columns."""
    latent = last.latents
    if not latent.shape[1]:
        nothing = jnp.zeros((), jnp.float32)
        empty = jnp.zeros((plan.opponents, 0), jnp.float32)
        return Strategy(empty, jnp.zeros(plan.opponents), nothing, nothing, nothing)
    indices = jnp.arange(plan.opponents, dtype=jnp.int32)[:, None]
    hits = (indices == opponent_index(plan, columns)).astype(jnp.float32)
    held = hits.sum(1)
    middle = latent.mean(0)
    return Strategy(
        means=hits @ latent / jnp.maximum(held, 1.0)[:, None],
        columns=held,
        mean=middle.mean(),
        spread=jnp.sqrt(jnp.square(latent - middle).mean()),
        attention_entropy=_entropy(last.attention),
    )


def _entropy(attention: Array) -> Array:
    """The mean entropy of shares [B, window]: 0 where all is one frame's."""
    shares = attention.astype(jnp.float32)
    return -jnp.where(shares > 0, shares * jnp.log(jnp.maximum(shares, 1e-30)), 0.0).sum(1).mean()


class RolloutParameters(NamedTuple):
    """The networks that play, in the precision that they compute in; rewards and opponents."""

    params: Params
    snapshots: Params
    """[groups, ...]: the snapshot that each group may meet"""
    bounds: Array
    """float32 [B, N]: whom each column may meet next, see `Mix.bounds`"""
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
    """What a rollout came to, but for the columns."""

    segments: Segments
    counts: MatchCounts
    ends: Ends
    strategy: Strategy
    recorded: RecordedFrames | None = None
    """None where no column is recorded"""


def rollout(
    plan: Plan, parameters: RolloutParameters, fixed: FixedInputs, columns: Columns
) -> tuple[Columns, Rollout]:
    """`plan.segment` frames of every column; each device plays its own."""
    memory = columns.ours
    placed = columns_placement(plan)
    of_columns, by_frame = partition(COLUMNS), partition(None, COLUMNS)
    columns, rows, ends, last, recorded = per_device(
        partial(_play, plan),
        mesh(plan),
        given=(
            RolloutParameters(
                params=partition(),
                snapshots=partition(GROUPS),
                bounds=of_columns,
                weights=partition(),
            ),
            partition(),
            placed,
        ),
        made=(
            placed,
            by_frame,
            Ends(
                *(
                    partition(None, None, COLUMNS) if name == "sums" else by_frame
                    for name in Ends._fields
                )
            ),
            of_columns,
            RecordedFrames(by_frame, partition(None, None, None, COLUMNS), by_frame)
            if plan.recorded
            else None,
        ),
    )(parameters, fixed, columns)
    segments = Segments(
        **rows._asdict(),
        foretold=jnp.zeros_like(rows.valid) if plan.alone else jnp.ones_like(rows.valid),
        memory=memory,
        bootstrap=last.values,
    )
    strategy = _strategy(plan, last, columns)
    return columns, Rollout(segments, counted(plan, ends), ends, strategy, recorded)


def _play(
    plan: Plan, parameters: RolloutParameters, fixed: FixedInputs, columns: Columns
) -> tuple[Columns, _Row, Ends, _LastFrame, RecordedFrames | None]:
    """All frames of the columns of one device, and the frame that follows."""

    def frame(
        columns: Columns, _: None
    ) -> tuple[Columns, tuple[_Row, Ends, RecordedFrames | None]]:
        return _frame(plan, parameters, fixed, columns)

    columns, (rows, ends, recorded) = jax.lax.scan(
        frame, columns, length=plan.segment, unroll=frames_at_once()
    )
    obs = by_side(JAX, _second(plan, columns), plan.game.observe(JAX, columns.state))[0].T
    seen = computing(plan.config, normalised(fixed, obs))
    last = _last_frame(plan, parameters.params, seen, emptied(JAX, columns.ours, columns.first))
    return columns, rows, ends, last, recorded


def _frame(
    plan: Plan, parameters: RolloutParameters, fixed: FixedInputs, columns: Columns
) -> tuple[Columns, tuple[_Row, Ends, RecordedFrames | None]]:
    second = _second(plan, columns)

    def act(obs: BySide, legal: BySide) -> tuple[BySide, Tree]:
        seen, allowed = obs[0].T, legal[0].T
        logits, values, ours = _think(
            plan, parameters.params, fixed, seen, columns.ours, columns.first
        )
        uniforms = action_uniforms(plan, columns, ours=True)
        actions, log_probs = distributions.choose(JAX, plan.spec.actions, logits, allowed, uniforms)
        if plan.alone:
            return (actions.T,), (seen, allowed, log_probs, values, ours, columns.theirs)
        theirs = bot_actions(plan, columns, obs[1])
        their_memory = columns.theirs
        if plan.meets_itself:
            own, their_memory = _snapshot_actions(
                plan, parameters, fixed, columns, obs[1].T, legal[1].T
            )
            theirs = jnp.where(meets_snapshot(plan, columns), own.T, theirs)
        return (actions.T, theirs), (seen, allowed, log_probs, values, ours, their_memory)

    frame = play_frame(JAX, plan.game, columns.state, second, act, plan.measures)
    obs, legal, log_probs, values, ours, their_memory = frame.kept
    actions = frame.chosen[0]
    theirs = jnp.zeros_like(actions) if plan.alone else frame.chosen[1]
    recorded = None
    if plan.recorded:
        recorded = record(
            plan.recorded_here, columns.seeds, frame.moment.actions, frame.moment.after
        )
    terms = own_side(JAX, second, plan.rewards.parts(JAX, frame.moment, parameters.weights))
    rewards = terms.sum(0)
    over = frame.over
    columns = columns._replace(
        state=frame.moment.after,
        frame=columns.frame + 1,
        returned=columns.returned + rewards,
        sums=columns.sums + jnp.concatenate([terms, frame.measured]),
        ours=ours,
        theirs=their_memory,
    )
    cut = (columns.frame >= columns.cut_at) & ~over
    row = _Row(
        obs=obs,
        legal=legal,
        actions=actions.T,
        log_probs=log_probs,
        values=values,
        rewards=rewards,
        ongoing=1.0 - (over | cut).astype(jnp.float32),
        first=columns.first,
        valid=1.0 - cut.astype(jnp.float32),
        opponent_actions=theirs.T,
        opponent_kinds=_kinds(plan, columns),
    )
    anew = restart(plan, columns, over | cut, parameters.bounds)
    return anew, (row, endings(plan, columns, over, frame.score, anew), recorded)


def _kinds(plan: Plan, columns: Columns) -> Array:
    """int32 [B]: who is met, as the network learns to name it."""
    if not plan.kinds:
        return jnp.full(len(columns.kind), -1, jnp.int32)
    return jnp.asarray(plan.kinds, jnp.int32)[columns.kind]


def _think(
    plan: Plan, params: Params, fixed: FixedInputs, obs: Array, memory: Tree, first: Array
) -> tuple[Array, Array, Tree]:
    """logits, values and memory of one network for obs [B, F]."""
    memory = emptied(JAX, memory, first)
    seen = computing(plan.config, normalised(fixed, obs))
    return plan.spec.network.step(JAX, params, seen, memory)


def _snapshot_actions(
    plan: Plan,
    parameters: RolloutParameters,
    fixed: FixedInputs,
    columns: Columns,
    obs: Array,
    legal: Array,
) -> tuple[Array, Tree]:
    """Actions [B, parts] of each group's snapshot, and their memory [groups, ...]."""
    groups = len(jax.tree.leaves(parameters.snapshots)[0])  # those of this device
    first, obs = in_groups(groups, (columns.first, obs))

    def one_group(
        params: Params, obs: Array, memory: Tree, first: Array
    ) -> tuple[Array, Array, Tree]:
        return _think(plan, params, fixed, obs, memory, first)

    def think(memory: Tree) -> tuple[Array, Tree]:
        logits, _, memory = jax.vmap(one_group)(parameters.snapshots, obs, memory, first)
        uniforms = action_uniforms(plan, columns, ours=False)
        logits = ungrouped(logits)
        actions, _ = distributions.choose(JAX, plan.spec.actions, logits, legal, uniforms)
        return actions, memory

    def rest(memory: Tree) -> tuple[Array, Tree]:
        parts = len(plan.spec.actions.parts)
        return jnp.zeros((len(columns.kind), parts), jnp.int32), memory

    # Before there is a snapshot, and in stages that meet none, no snapshot is computed.
    acted: tuple[Array, Tree] = jax.lax.cond(
        meets_snapshot(plan, columns).any(), think, rest, columns.theirs
    )
    return acted


def _second(plan: Plan, columns: Columns) -> Array:
    """bool [B]: where we are the game's second player."""
    return sides(plan, columns) == 1
