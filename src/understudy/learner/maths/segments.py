"""Segments: stretches of matches of one length, as the arena and environments play them, and the
update that learns from them.

Where the policy that is trained is the policy that played, advantages come from the values that it
gave while it played; nothing is computed again before the first gradient step. Where segments were
played with older weights (`next_obs` is given), the policy of now gives values, and V-trace
corrects for how its probabilities differ from those that played.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from understudy.core.config import LearnerConfig
from understudy.core.ops import Array, Tree
from understudy.learner.maths.descent import (
    FixedInputs,
    LearnerState,
    TrainingBatch,
    UpdateReport,
    descend,
    finite,
    forward,
    normalised,
    summary,
)
from understudy.learner.maths.jax_ops import JAX
from understudy.learner.maths.returns import explained, gae, standardised, vtrace
from understudy.policy import distributions
from understudy.policy.spec import PolicySpec


class Segments(NamedTuple):
    """Time-major arrays; a column is one game (or one side of it) for T frames."""

    obs: Array
    """float32 [T, B, F], raw"""
    legal: Array
    """bool [T, B, options]"""
    actions: Array
    """int32 [T, B, parts] (float32 where actions are continuous)"""
    log_probs: Array
    """float32 [T, B]"""
    values: Array
    """float32 [T, B], as the network gave them: in units of the return scale"""
    rewards: Array
    """float32 [T, B]"""
    ongoing: Array
    """float32 [T, B]: 1 where the match goes on after this decision"""
    first: Array
    """bool [T, B]: a match begins with this decision"""
    valid: Array
    """float32 [T, B]: 0 where nothing is to be learned: the arena cut a match off there, and the
    value of that decision stands for what follows; or an agent of an environment was out.
    (Environment rollouts add the value after a time limit to the reward, and it stays valid.)"""
    opponent_actions: Array
    """int32 [T, B, parts]"""
    foretold: Array
    """float32 [T, B]: 1 where the opponent's action is known"""
    opponent_kinds: Array
    """int32 [T, B]: which opponent it is; -1: unknown"""
    memory: Tree
    """[B, ...]: what the policy remembered when the segment began (a constant)"""
    bootstrap: Array
    """float32 [B]: the value of what follows the last row, in units of the return scale"""
    next_obs: Array | None = None
    """float32 [B, F], raw: what follows the last row, where older weights played; else None"""
    next_first: Array | None = None
    """bool [B]: a match begins there"""


class _Targets(NamedTuple):
    """What each decision [T, B] is trained towards; values are in units of the return scale."""

    anchor_log_probs: Array
    values: Array
    targets: Array
    advantages: Array


@partial(jax.jit, static_argnames=("spec", "config", "blockwise", "mesh"))
def improve(
    spec: PolicySpec,
    config: LearnerConfig,
    state: LearnerState,
    fixed: FixedInputs,
    segments: Segments,
    *,
    blockwise: bool = False,
    mesh: Mesh | None = None,
) -> tuple[LearnerState, UpdateReport, Array]:
    """PPO on segments; also returns the mean square of the returns, in units of reward.

    `blockwise`: how columns are dealt to minibatches, see `descent`. `mesh`: the devices that share
    the columns; None: one has them all.
    """
    if segments.next_obs is None:
        goals = _as_played(config, segments, fixed.value_scale)
    else:
        goals = _corrected(spec, config, state, fixed, segments)
    valid = segments.valid
    batch = TrainingBatch(
        obs=normalised(fixed, segments.obs),
        legal=segments.legal,
        actions=segments.actions,
        first=segments.first,
        anchor_log_probs=goals.anchor_log_probs,
        behaviour_log_probs=segments.log_probs,
        targets=goals.targets,
        advantages=standardised(goals.advantages, valid),
        on_policy=valid,
        imitated=jnp.zeros_like(valid),
        valid=valid,
        foretold=segments.foretold * valid,
        opponent_actions=segments.opponent_actions,
        opponent_kinds=segments.opponent_kinds,
    )
    state, details = descend(
        spec, config, state, fixed, batch, segments.memory, blockwise=blockwise, mesh=mesh
    )
    means, norm, steps = summary(details, batch)
    report = UpdateReport(
        losses=means,
        kl=_last_pass(details.losses.kl, details.taken, config.minibatches),
        explained_variance=explained(goals.targets, goals.values, valid),
        behaviour_kl=details.losses.behaviour_kl[0],
        behaviour_kl_max=details.losses.behaviour_kl_max[0],
        gradient_norm=norm,
        gradient_steps=steps,
        finite=finite(state.params),
    )
    squares = (jnp.square(goals.targets) * valid).sum() / jnp.maximum(valid.sum(), 1.0)
    return state, report, squares * jnp.square(fixed.value_scale)


def _as_played(config: LearnerConfig, segments: Segments, scale: Array) -> _Targets:
    """GAE, from what the policy said while it played."""
    advantages = gae(
        rewards=_rewards(segments, segments.values, scale),
        discounts=config.gamma * segments.ongoing,
        values=jnp.concatenate([segments.values, segments.bootstrap[None]]),
        lam=config.gae_lambda,
    )
    targets = segments.values + advantages
    return _Targets(segments.log_probs, segments.values, targets, advantages)


def _corrected(
    spec: PolicySpec,
    config: LearnerConfig,
    state: LearnerState,
    fixed: FixedInputs,
    segments: Segments,
) -> _Targets:
    """V-trace, from the values of the policy of now. Decisions of columns that are not older have a
    ratio of 1: for them it is GAE.

    The update is clipped around the policy that played, not around that of now, and its KL is the
    distance from there. The update before has gone a step already that these decisions know nothing
    of: with a whole step of its own from there, the policy goes twice as far as its data reaches.
    """
    assert segments.next_obs is not None and segments.next_first is not None
    obs = normalised(fixed, jnp.concatenate([segments.obs, segments.next_obs[None]]))
    first = jnp.concatenate([segments.first, segments.next_first[None]])
    outputs = forward(spec, config, state.params, obs, first, segments.memory)
    values = outputs.values
    now = distributions.log_prob(
        JAX, spec.actions, outputs.logits[:-1], segments.actions, segments.legal
    )
    targets, advantages = vtrace(
        rewards=_rewards(segments, values[:-1], fixed.value_scale),
        discounts=config.gamma * segments.ongoing,
        values=values,
        ratios=jnp.where(segments.valid > 0, jnp.exp(now - segments.log_probs), 1.0),
        lam=config.gae_lambda,
        cap=config.behaviour_clip,
    )
    return _Targets(segments.log_probs, values[:-1], targets, advantages)


def _rewards(segments: Segments, values: Array, scale: Array) -> Array:
    """[T, B] in units of the return scale. A decision after which a match was cut off ends in its
    own value: it corrects nothing."""
    return jnp.where(segments.valid > 0, segments.rewards / scale, values)


def _last_pass(kl: Array, taken: Array, minibatches: int) -> Array:
    """The mean over the last steps that were taken, one pass of them."""
    passed = taken.sum() - jnp.cumsum(taken)
    last = taken * (passed < minibatches)
    return (kl * last).sum() / jnp.maximum(last.sum(), 1.0)
