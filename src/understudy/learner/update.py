"""The one update: a batch of episodes in, better parameters out, as a pure compiled function."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from understudy.core.config import LearnerConfig
from understudy.core.ops import Array, Tree
from understudy.learner.batch import Batch
from understudy.learner.jax_ops import JAX
from understudy.learner.losses import Losses, Terms, losses
from understudy.learner.returns import discounted_returns, vtrace
from understudy.policy import distributions
from understudy.policy.layers import Params
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights, normalise


class State(NamedTuple):
    """What an update changes."""

    params: Params
    optimiser: Tree
    key: Array
    """uint32 [2]"""


class Frozen(NamedTuple):
    """What holds still during an update: the normaliser, the return scale and the learning rate."""

    obs_mean: Array
    obs_scale: Array
    value_scale: Array
    learning_rate: Array


class Report(NamedTuple):
    """Scalars about one batch."""

    losses: Losses
    kl: Array
    explained_variance: Array
    first_ratio: Array
    gradient_norm: Array


class _Targets(NamedTuple):
    """What each decision [T, B] is trained towards, fixed before the first step."""

    anchor_log_probs: Array
    targets: Array
    advantages: Array
    imitation_advantages: Array


def optimiser(config: LearnerConfig) -> optax.GradientTransformation:
    """Adam on clipped gradients; the learning rate comes with each update."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_gradient_norm), optax.scale_by_adam(eps=1e-5)
    )


@partial(jax.jit, static_argnames=("spec", "config"))
def update(
    spec: PolicySpec, config: LearnerConfig, state: State, frozen: Frozen, batch: Batch
) -> tuple[State, Report]:
    """Some passes over the batch in shuffled minibatches: of whole episodes, or, for a network
    that remembers nothing, of single decisions, which have less in common with each other."""
    batch = batch._replace(
        obs=_normalised(frozen, batch.obs), rewards=batch.rewards / frozen.value_scale
    )
    towards, log_p, explained = _targets(spec, config, state.params, batch)
    if not jax.tree.leaves(spec.network.memory(JAX, 1)):
        batch, towards, log_p = jax.tree.map(_one_row, (batch, towards, log_p))
    filled = batch.valid.any(0)
    share = jnp.maximum(batch.valid.sum() / config.minibatches, 1.0)
    key, shuffle = jax.random.split(state.key)
    order = jnp.concatenate(
        [_deal(one, filled, config.minibatches) for one in jax.random.split(shuffle, config.epochs)]
    )
    transform = optimiser(config)

    def one_step(carry: tuple[Params, Tree], index: Array) -> tuple[tuple[Params, Tree], Tree]:
        params, moments = carry
        part = jax.tree.map(lambda array: array[:, index], (batch, towards))
        gradient, detail = jax.grad(_loss, argnums=2, has_aux=True)(
            spec, config, params, part, share
        )
        step, moments = transform.update(gradient, moments)
        params = jax.tree.map(lambda p, s: p - frozen.learning_rate * s, params, step)
        # A minibatch of nothing is no step: momentum alone must not move the policy.
        real = part[0].valid.any()
        after = jax.tree.map(partial(jnp.where, real), (params, moments), carry)
        return after, (detail, optax.tree.norm(gradient))

    (params, moments), (details, norms) = jax.lax.scan(
        one_step, (state.params, state.optimiser), order
    )
    after_logits, _, _ = _forward(spec, params, batch)
    after = distributions.log_probs(JAX, spec.actions.parts, after_logits, batch.legal)
    moved = distributions.divergence(JAX, log_p, after)
    report = Report(
        losses=_over_minibatches(details, batch),
        kl=(moved * batch.valid).sum() / jnp.maximum(batch.valid.sum(), 1.0),
        explained_variance=explained,
        first_ratio=details.ratio[0],
        gradient_norm=norms.mean(),
    )
    return State(params, moments, key), report


def _over_minibatches(details: Losses, batch: Batch) -> Losses:
    """Means over the minibatches, some of which may be empty; the clipped share is of those
    decisions that can be clipped."""
    means = Losses(*(part.mean() for part in details))
    fraction = batch.on_policy.sum() / jnp.maximum(batch.valid.sum(), 1.0)
    return means._replace(clip_share=means.clip_share / jnp.maximum(fraction, 1e-6))


def _one_row(array: Array) -> Array:
    """[T, B, ...] to [1, T * B, ...]: every decision a column of its own."""
    return array.reshape(1, -1, *array.shape[2:])


def _deal(key: Array, filled: Array, hands: int) -> Array:
    """Columns [hands, size], shuffled; those that are filled [B] go round evenly, like cards.

    Left to chance, the few matches of a small batch would often sit in one minibatch together.
    """
    columns = filled.shape[0]
    shuffled = jax.random.permutation(key, columns)[: columns // hands * hands]
    return shuffled[jnp.argsort(~filled[shuffled])].reshape(-1, hands).T


def _loss(
    spec: PolicySpec,
    config: LearnerConfig,
    params: Params,
    part: Tree,
    share: Array,
) -> tuple[Array, Losses]:
    batch, towards = part
    logits, values, _ = _forward(spec, params, batch)
    parts = spec.actions.parts
    result = losses(
        config,
        Terms(
            log_probs=distributions.log_prob(JAX, parts, logits, batch.actions, batch.legal),
            entropy=distributions.entropy(JAX, parts, logits, batch.legal),
            values=values,
            behaviour_log_probs=batch.log_probs,
            **towards._asdict(),
            on_policy=batch.on_policy,
            imitated=batch.imitated,
            valid=batch.valid,
        ),
        share=share,
    )
    return result.total, result


def _forward(spec: PolicySpec, params: Params, batch: Batch) -> tuple[Array, Array, Tree]:
    """Whole episodes from empty memory under the given parameters."""
    length, columns = batch.valid.shape
    first = jnp.zeros((length, columns), bool).at[0].set(True)
    network = spec.network
    return network.unroll(JAX, params, batch.obs, first, network.memory(JAX, columns))


def _targets(
    spec: PolicySpec, config: LearnerConfig, params: Params, batch: Batch
) -> tuple[_Targets, Array, Array]:
    """Targets, log-probabilities and explained variance under the parameters before the batch."""
    parts = spec.actions.parts
    logits, values, _ = _forward(spec, params, batch)
    log_p = distributions.log_probs(JAX, parts, logits, batch.legal)
    anchor = distributions.log_prob(JAX, parts, logits, batch.actions, batch.legal)
    # A row that only bootstraps (or pads) ends in its own value, so that it corrects nothing. The
    # last row is always such a row: dropping its transition loses nothing.
    rewards = jnp.where(batch.valid > 0, batch.rewards, values)[:-1]
    discounts = (config.gamma * batch.ongoing)[:-1]
    ratios = jnp.where(batch.sampled > 0, jnp.exp(anchor - batch.log_probs), 1.0)
    if config.algorithm == "reinforce":
        targets = discounted_returns(rewards=rewards, discounts=discounts, bootstrap=values[-1])
        advantages = targets - values[:-1]
    else:
        targets, advantages = vtrace(
            rewards=rewards,
            discounts=discounts,
            values=values,
            ratios=ratios[:-1],
            lam=config.gae_lambda,
            cap=config.behaviour_clip,
        )
    targets = jnp.concatenate([targets, values[-1:]])
    advantages = jnp.concatenate([advantages, jnp.zeros_like(values[-1:])])
    towards = _Targets(
        anchor_log_probs=anchor,
        targets=targets,
        advantages=_standardised(advantages, batch.on_policy),
        imitation_advantages=_standardised(advantages, batch.imitated),
    )
    return towards, log_p, _explained(targets, values, batch.valid)


def _normalised(frozen: Frozen, obs: Array) -> Array:
    weights = Weights({}, frozen.obs_mean, frozen.obs_scale, frozen.value_scale)
    return normalise(JAX, weights, obs)


def _standardised(x: Array, mask: Array) -> Array:
    count = jnp.maximum(mask.sum(), 1.0)
    mean = (x * mask).sum() / count
    spread = jnp.sqrt((jnp.square(x - mean) * mask).sum() / count)
    return (x - mean) / (spread + 1e-6)


def _explained(targets: Array, values: Array, mask: Array) -> Array:
    """1: values foretell every target; 0: no better than their mean."""
    count = jnp.maximum(mask.sum(), 1.0)
    centred = targets - (targets * mask).sum() / count
    errors = targets - values
    errors = errors - (errors * mask).sum() / count
    variance = (jnp.square(centred) * mask).sum() / count
    return 1.0 - (jnp.square(errors) * mask).sum() / count / (variance + 1e-8)
