"""The update of the ring: a batch of whole episodes in, better parameters out, compiled."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from understudy.core.config import LearnerConfig
from understudy.core.ops import Array
from understudy.learner.batch import Batch, starts
from understudy.learner.maths.descent import (
    ChampionWeights,
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
from understudy.learner.maths.losses import from_behaviour
from understudy.learner.maths.returns import (
    discounted_returns,
    explained,
    moments,
    standardised_beside,
    vtrace,
)
from understudy.policy import distributions
from understudy.policy.layers import Params
from understudy.policy.spec import PolicySpec


class _Targets(NamedTuple):
    """What each decision [T, B] is trained towards, fixed before the first step.

    Advantages are in units of the return scale.
    """

    anchor_log_probs: Array
    targets: Array
    advantages: Array


@partial(jax.jit, static_argnames=("spec", "config"))
def update(
    spec: PolicySpec, config: LearnerConfig, state: LearnerState, fixed: FixedInputs, batch: Batch
) -> tuple[LearnerState, UpdateReport]:
    """Some passes over the batch; every episode begins with an empty memory."""
    champion = _champion_log_probs(spec, config, fixed.champion, batch)
    batch = batch._replace(
        obs=normalised(fixed, batch.obs), rewards=batch.rewards / fixed.value_scale
    )
    logits, values = _whole(spec, config, state.params, batch)
    log_p = distributions.log_probs(JAX, spec.actions, logits, batch.legal)
    believed = fixed.slope * values + fixed.intercept
    # Credit passes through values as far as they are believed, and else comes from what followed.
    lam = 1.0 - fixed.explained * (1.0 - config.gae_lambda)
    targets = _targets(
        spec,
        config,
        logits,
        believed,
        batch,
        lam=lam,
        corrected=fixed.corrected,
        imitation=fixed.imitation,
    )
    if fixed.max_behaviour_kl is not None:
        batch = _without_far(batch, targets.anchor_log_probs, limit=fixed.max_behaviour_kl)
    if fixed.imitation is not None:
        batch = batch._replace(imitated=batch.imitated * fixed.imitation)
    counted = jnp.maximum(batch.on_policy, batch.imitated)
    advantages = targets.advantages * fixed.value_scale
    scaled = standardised_beside(advantages, counted, fixed.advantages)
    if fixed.most_ratio is not None:
        batch = _without_outrun(batch, targets.anchor_log_probs, scaled, most=fixed.most_ratio)
        counted = jnp.maximum(batch.on_policy, batch.imitated)
    training_batch = _training_batch(batch, targets._replace(advantages=scaled))._replace(
        # Where the policy is neither rewarded nor shown what to do, entropy has no counterweight.
        explored=None if fixed.imitation is None and fixed.most_ratio is None else counted,
        champion_log_probs=champion,
    )
    memory = spec.network.memory(JAX, batch.valid.shape[1])
    state, details = descend(spec, config, state, fixed, training_batch, memory)
    after_logits, _ = _whole(spec, config, state.params, batch)
    after = distributions.log_probs(JAX, spec.actions, after_logits, batch.legal)
    apart = distributions.divergence(JAX, spec.actions, log_p, after)
    means, norm, steps = summary(details, training_batch)
    report = UpdateReport(
        losses=means,
        kl=(apart * batch.valid).sum() / jnp.maximum(batch.valid.sum(), 1.0),
        explained_variance=explained(targets.targets, values, batch.valid),
        behaviour_kl=details.losses.behaviour_kl[0],
        behaviour_kl_max=details.losses.behaviour_kl_max[0],
        gradient_norm=norm,
        gradient_steps=steps,
        finite=finite(state.params),
        surprise=_surprise(targets.targets, values, batch) * fixed.value_scale,
        advantages=moments(advantages, counted),
    )
    return state, report


@partial(jax.jit, static_argnames=("spec", "config"))
def moved(
    spec: PolicySpec,
    config: LearnerConfig,
    params: tuple[Params, Params],
    fixed: tuple[FixedInputs, FixedInputs],
    batch: Batch,
) -> Array:
    """KL divergence a decision from one policy to another, (before, after), on raw observations."""
    before, after = (
        distributions.log_probs(
            JAX,
            spec.actions,
            _whole(spec, config, each, batch._replace(obs=normalised(under, batch.obs)))[0],
            batch.legal,
        )
        for each, under in zip(params, fixed, strict=True)
    )
    apart = distributions.divergence(JAX, spec.actions, before, after)
    return (apart * batch.valid).sum() / jnp.maximum(batch.valid.sum(), 1.0)


def _training_batch(batch: Batch, targets: _Targets) -> TrainingBatch:
    """Nothing is known of opponents here."""
    return TrainingBatch(
        obs=batch.obs,
        legal=batch.legal,
        actions=batch.actions,
        first=_first(batch),
        behaviour_log_probs=batch.log_probs,
        **targets._asdict(),
        on_policy=batch.on_policy,
        imitated=batch.imitated,
        valid=batch.valid,
        foretold=jnp.zeros_like(batch.valid),
        opponent_actions=batch.actions,
        opponent_kinds=jnp.full(batch.valid.shape, -1, jnp.int32),
        weights=batch.weights,
        value_weights=batch.value_weights,
    )


def _champion_log_probs(
    spec: PolicySpec, config: LearnerConfig, champion: ChampionWeights | None, batch: Batch
) -> Array | None:
    """[T, B, options] of the champion on raw observations; None where there is none."""
    if champion is None:
        return None
    fixed = FixedInputs(champion.obs_mean, champion.obs_scale, 1.0, 0.0, 0.0)
    seen = batch._replace(obs=normalised(fixed, batch.obs))
    logits, _ = _whole(spec, config, champion.params, seen)
    return distributions.log_probs(JAX, spec.actions, logits, batch.legal)


def _without_far(batch: Batch, log_probs: Array, *, limit: Array) -> Batch:
    """Columns that are farther than `limit` from what played them train the value alone.

    The distance is the mean over the decisions that train the policy, as far as they do; the
    policy gives the actions these `log_probs` [T, B].
    """
    apart = from_behaviour(log_probs, batch.log_probs, batch.on_policy)
    mean = (apart * batch.on_policy).sum(0) / jnp.maximum(batch.on_policy.sum(0), 1.0)
    return batch._replace(on_policy=batch.on_policy * (mean <= limit))


def _without_outrun(batch: Batch, log_probs: Array, advantages: Array, *, most: Array) -> Batch:
    """Decisions that the policy has outrun train the value alone: what turned out well is `most`
    times as likely by now as it was when it was played, or what turned out badly that much less.

    Without this, matches of old versions go on pushing where they have pushed already: the answer
    to the push is in matches that are not learned from yet (ADR 0053). The policy gives the actions
    these `log_probs` [T, B].
    """
    gained = jnp.sign(advantages) * (log_probs - batch.log_probs)
    return batch._replace(on_policy=batch.on_policy * (gained <= jnp.log(most)))


def _surprise(targets: Array, values: Array, batch: Batch) -> Array:
    """[B]: how far the values of each column were from what they are trained towards."""
    count = jnp.maximum(batch.valid.sum(0), 1.0)
    return (jnp.abs(targets - values) * batch.valid).sum(0) / count


def _first(batch: Batch) -> Array:
    return jnp.asarray(starts(batch.valid.shape)) if batch.first is None else batch.first


def _whole(
    spec: PolicySpec, config: LearnerConfig, params: Params, batch: Batch
) -> tuple[Array, Array]:
    """logits and values of whole episodes from empty memory under the given parameters."""
    memory = spec.network.memory(JAX, batch.valid.shape[1])
    outputs = forward(spec, config, params, batch.obs, _first(batch), memory)
    return outputs.logits, outputs.values


def _targets(
    spec: PolicySpec,
    config: LearnerConfig,
    logits: Array,
    values: Array,
    batch: Batch,
    *,
    lam: Array | float,
    corrected: Array | float = 1.0,
    imitation: Array | None = None,
) -> _Targets:
    """From what the parameters before the batch say.

    `corrected`, from 0 to 1, is how far traces are cut where the policy has moved away from what
    played. A cut trace ends in a value: where values know nothing, it would end the credit of a
    result that came later.

    Where imitation has faded, a decision of the rules is experience of a behaviour that chose it
    with probability 1, so its ratio is the probability of the policy: exact for rules that always
    choose alike, careful for others.
    """
    anchor = distributions.log_prob(JAX, spec.actions, logits, batch.actions, batch.legal)
    # A row that only bootstraps (or pads) ends in its own value, so that it corrects nothing. The
    # last row is always such a row: dropping its transition loses nothing.
    rewards = jnp.where(batch.valid > 0, batch.rewards, values)[:-1]
    discounts = (config.gamma * batch.ongoing)[:-1]
    ratios = jnp.where(batch.sampled > 0, jnp.exp(corrected * (anchor - batch.log_probs)), 1.0)
    if imitation is not None:
        followed = imitation + (1.0 - imitation) * jnp.exp(anchor)
        ratios = jnp.where(batch.imitated > 0, followed, ratios)
    if batch.cut is not None:
        lam = lam * (1.0 - batch.cut[:-1])
    if config.algorithm == "reinforce":
        targets = discounted_returns(rewards=rewards, discounts=discounts, bootstrap=values[-1])
        advantages = targets - values[:-1]
    else:
        targets, advantages = vtrace(
            rewards=rewards,
            discounts=discounts,
            values=values,
            ratios=ratios[:-1],
            lam=lam,
            cap=config.behaviour_clip,
        )
    targets = jnp.concatenate([targets, values[-1:]])
    advantages = jnp.concatenate([advantages, jnp.zeros_like(values[-1:])])
    return _Targets(
        anchor_log_probs=anchor,
        targets=targets,
        advantages=advantages,
    )
