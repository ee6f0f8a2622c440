"""The passes over a batch: shuffled minibatches, one gradient step each.

The ring (whole episodes) and the arena (segments) say what each decision is trained towards; from
there on all learning is this one loop.

A minibatch is a set of columns of the batch [T, B], since a network with memory must be unrolled
through a whole column. Without memory the batch is first laid out as one row of T * B columns, so
minibatches are sets of single decisions. Each pass deals the columns anew, in one of two ways:

- *shuffled*: the columns are permuted, those with at least one valid decision sorted before the
  padding, and dealt out in turn, so every minibatch gets its share of what was played;
- *blockwise*: each minibatch gets one column, at random, of every block of as many neighbours as
  there are minibatches. Devices that hold whole blocks therefore hold equally much of every
  minibatch and need no column of another device, and the minibatches are the same for any number
  of devices.

The steps of all passes are one `lax.scan` over the list of column indices.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from understudy.core.config import LearnerConfig
from understudy.core.ops import Array, Tree
from understudy.core.spaces import ActionSpace
from understudy.learner.hardware import computing, partition, per_device
from understudy.learner.maths.jax_ops import JAX
from understudy.learner.maths.losses import Losses, LossTerms, losses
from understudy.learner.maths.returns import Moments
from understudy.policy import distributions
from understudy.policy.layers import Params
from understudy.policy.spec import PolicySpec
from understudy.policy.strategist import Strategist
from understudy.policy.weights import Weights, normalise


class LearnerState(NamedTuple):
    """What an update changes."""

    params: Params
    optimiser: Tree
    key: Array
    """uint32 [2]"""


class FixedInputs(NamedTuple):
    """What holds still during an update: the normaliser, the scales of returns and advantages, and
    two settings that follow a schedule."""

    obs_mean: Array
    obs_scale: Array
    value_scale: Array
    learning_rate: Array
    entropy_weight: Array
    advantages: Moments = Moments()
    """of earlier decisions, in units of reward"""
    slope: Array | float = 1.0
    """how much of a value is believed, beside `intercept`, which is in units of the return scale"""
    intercept: Array | float = 0.0
    explained: Array | float = 1.0
    corrected: Array | float = 1.0
    """how far traces are cut where the policy has moved away from what played, from 0 to 1"""
    imitation: Array | None = None
    """the share of imitation that is left beside own experience; None: there is none to weigh it
    against, and rules' decisions are imitated in full"""
    kept_entropy: Array | float = 0.0
    """the share of the largest entropy that the policy keeps where `explored` says"""
    max_behaviour_kl: Array | None = None
    """how far a column may be from what played it and still train the policy; None: any"""
    most_ratio: Array | None = None
    """how many times as likely as when it was played a decision may be, and still be pushed
    further; None: any"""
    champion: ChampionWeights | None = None
    """the version that the policy stays near to; None: none"""


class ChampionWeights(NamedTuple):
    """A version that plays while another one learns: parameters and normaliser."""

    params: Params
    obs_mean: Array
    obs_scale: Array


class TrainingBatch(NamedTuple):
    """Decisions in columns, and what each is trained towards; arrays are [T, B, ...]."""

    obs: Array
    """normalised"""
    legal: Array
    actions: Array
    first: Array
    """bool: memory is emptied before this decision"""
    anchor_log_probs: Array
    behaviour_log_probs: Array
    targets: Array
    """in units of the return scale"""
    advantages: Array
    """in units of their own scale"""
    on_policy: Array
    imitated: Array
    valid: Array
    foretold: Array
    """float32: 1 where the opponent's action is known"""
    opponent_actions: Array
    opponent_kinds: Array
    """int32: which opponent it is; -1: unknown"""
    weights: Array | None = None
    """how much each decision counts; None: all alike"""
    value_weights: Array | None = None
    """how much it counts for the value, beside that; None: all alike"""
    explored: Array | None = None
    """float32: where entropy is rewarded; None: wherever a decision is valid"""
    champion_log_probs: Array | None = None
    """[T, B, options] of the version that the policy stays near to"""


class Details(NamedTuple):
    """Of one gradient step, or of none where passes ended early."""

    losses: Losses
    gradient_norm: Array
    taken: Array
    """float32: 1 where the step was taken"""


class UpdateReport(NamedTuple):
    """About one batch; scalars but for `surprise`."""

    losses: Losses
    kl: Array
    explained_variance: Array
    behaviour_kl: Array
    """of the first minibatch, before the first step, as `behaviour_kl_max` is"""
    behaviour_kl_max: Array
    gradient_norm: Array
    gradient_steps: Array
    finite: Array
    """bool: no parameter is infinite or not a number"""
    surprise: Array | None = None
    """[B]: mean distance of value and target in each column, in units of reward, where asked for"""
    advantages: Moments = Moments()
    """of the decisions of this batch, in units of reward, where asked for"""


def optimiser(config: LearnerConfig) -> optax.GradientTransformation:
    """Adam on clipped gradients; the learning rate comes with each update."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_gradient_norm), optax.scale_by_adam(eps=1e-5)
    )


def descend(
    spec: PolicySpec,
    config: LearnerConfig,
    state: LearnerState,
    fixed: FixedInputs,
    batch: TrainingBatch,
    memory: Tree,
    *,
    blockwise: bool = False,
    mesh: Mesh | None = None,
) -> tuple[LearnerState, Details]:
    """All passes. `memory` [B, ...] is what each column began with, and no gradient leaves by it.

    Minibatches are whole columns, or, for a network that remembers nothing, single decisions,
    which have less in common with each other. `blockwise` needs a multiple of
    `config.minibatches` columns. The devices of a `mesh` share the columns evenly, in whole blocks,
    and every loss must be a sum over columns, as those of segments are.
    """
    if not jax.tree.leaves(memory):
        batch = jax.tree.map(partial(_one_row, columns_first=blockwise), batch)
    filled = batch.valid.any(0)
    deal = _deal_blocks if blockwise else _deal_shuffled
    share = jnp.maximum(batch.valid.sum() / config.minibatches, 1.0)
    key, shuffle = jax.random.split(state.key)
    # As a loop: written out, ten passes take as long to compile as all the rest.
    order = jax.lax.map(
        lambda one: deal(one, filled, config.minibatches),
        jax.random.split(shuffle, config.epochs),
    )
    order = order.reshape(-1, order.shape[-1])
    transform = optimiser(config)
    axes = None if mesh is None else mesh.axis_names
    gradient_of = per_device(
        partial(_gradient, spec, config, axes=axes),
        mesh,
        given=(
            partition(),
            partition(None, axes),
            partition(axes),
            partition(axes),
            partition(),
            partition(),
        ),
        made=partition(),
    )

    def one_step(
        carry: tuple[Params, Tree, Array], index: Array
    ) -> tuple[tuple[Params, Tree, Array], Details]:
        params, moments, moved = carry
        gradient, detail, real = gradient_of(params, batch, memory, index, share, fixed)
        step, moments = transform.update(gradient, moments)
        params = jax.tree.map(lambda p, s: p - fixed.learning_rate * s, params, step)
        # A minibatch of nothing is no step: momentum alone must not move the policy.
        after = jax.tree.map(partial(jnp.where, real), (params, moments), carry[:2])
        details = Details(detail, optax.tree.norm(gradient), real.astype(jnp.float32))
        return (*after, jnp.maximum(moved, detail.kl)), details

    def no_step(
        carry: tuple[Params, Tree, Array], index: Array
    ) -> tuple[tuple[Params, Tree, Array], Details]:
        shapes = jax.eval_shape(one_step, carry, index)[1]
        return carry, jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)

    def step(
        carry: tuple[Params, Tree, Array], index: Array
    ) -> tuple[tuple[Params, Tree, Array], Details]:
        if config.kl_stop == 0.0:
            return one_step(carry, index)
        after: tuple[tuple[Params, Tree, Array], Details] = jax.lax.cond(
            carry[2] > config.kl_stop, no_step, one_step, carry, index
        )
        return after

    (params, moments, _), details = jax.lax.scan(
        step, (state.params, state.optimiser, jnp.float32(0.0)), order
    )
    return LearnerState(params, moments, key), details


class NetworkOutputs(NamedTuple):
    """What a network says about a stretch of decisions [T, B, ...]."""

    logits: Array
    values: Array
    opponent_logits: Array | None = None
    """the opponent's next action, where the network foretells it"""
    kind_logits: Array | None = None
    """who the opponent is, where the network names it"""


def forward(
    spec: PolicySpec, config: LearnerConfig, params: Params, obs: Array, first: Array, memory: Tree
) -> NetworkOutputs:
    """Everything that a loss is made of."""
    params, obs = computing(config, (params, obs))
    network = spec.network
    if not isinstance(network, Strategist):
        return NetworkOutputs(*network.unroll(JAX, params, obs, first, memory)[:2])
    insight = network.unroll_insight(JAX, params, obs, first, memory)
    return NetworkOutputs(
        insight.logits, insight.values, insight.opponent_logits, insight.kind_logits
    )


def summary(details: Details, batch: TrainingBatch) -> tuple[Losses, Array, Array]:
    """Means over the steps that were taken, some of which may be nearly empty: the losses, the
    norm of the gradient and how many steps there were."""
    steps = jnp.maximum(details.taken.sum(), 1.0)
    means = Losses(*((part * details.taken).sum() / steps for part in details.losses))
    # The clipped share is of those decisions that can be clipped.
    fraction = batch.on_policy.sum() / jnp.maximum(batch.valid.sum(), 1.0)
    means = means._replace(clip_share=means.clip_share / jnp.maximum(fraction, 1e-6))
    norm = (details.gradient_norm * details.taken).sum() / steps
    return means, norm, details.taken.sum()


def finite(params: Params) -> Array:
    """bool: whether every number is finite. A sum is finite only if everything in it is."""
    return jnp.isfinite(sum(array.sum() for array in params.values()))


def normalised(fixed: FixedInputs, obs: Array) -> Array:
    """Raw features as networks see them."""
    weights = Weights({}, fixed.obs_mean, fixed.obs_scale, fixed.value_scale)
    return normalise(JAX, weights, obs)


def _gradient(
    spec: PolicySpec,
    config: LearnerConfig,
    params: Params,
    batch: TrainingBatch,
    memory: Tree,
    index: Array,
    share: Array,
    fixed: FixedInputs,
    *,
    axes: tuple[str, ...] | None,
) -> tuple[Params, Losses, Array]:
    """Of one minibatch, the columns `index`: the gradient, the losses, and whether it is a real one
    that has decisions.

    With `axes` of a mesh, batch, memory and index are the parts of one device, which gets the
    results of all of them; columns are still counted over all devices.
    """
    here = index % batch.valid.shape[1]
    part = jax.tree.map(lambda array: array[:, here], batch)
    began = jax.tree.map(lambda array: jax.lax.stop_gradient(array[here]), memory)
    gradient, detail = jax.grad(_loss, argnums=2, has_aux=True)(
        spec, config, params, part, began, share, fixed
    )
    real = part.valid.any()
    if axes is None:
        return gradient, detail, real
    decisions = jnp.maximum(part.on_policy.sum(), 1.0)
    summed, weighted, decisions = jax.lax.psum(  # type: ignore[no-untyped-call]
        ((gradient, detail), detail.behaviour_kl * decisions, decisions), axes
    )
    gradient, sums = summed
    detail = sums._replace(
        behaviour_kl=weighted / decisions,
        behaviour_kl_max=jax.lax.pmax(detail.behaviour_kl_max, axes),  # type: ignore[no-untyped-call]
    )
    return gradient, detail, jax.lax.pmax(real.astype(jnp.float32), axes) > 0  # type: ignore[no-untyped-call]


def _loss(
    spec: PolicySpec,
    config: LearnerConfig,
    params: Params,
    part: TrainingBatch,
    memory: Tree,
    share: Array,
    fixed: FixedInputs,
) -> tuple[Array, Losses]:
    outputs = forward(spec, config, params, part.obs, part.first, memory)
    logits, values, foretold = outputs.logits, outputs.values, outputs.opponent_logits
    space = spec.actions
    largest = distributions.largest_entropy(JAX, space, part.legal)
    result = losses(
        config,
        LossTerms(
            log_probs=distributions.log_prob(JAX, space, logits, part.actions, part.legal),
            entropy=distributions.entropy(JAX, space, logits, part.legal),
            entropy_floor=config.imitation_entropy * largest,
            values=values,
            anchor_log_probs=part.anchor_log_probs,
            behaviour_log_probs=part.behaviour_log_probs,
            targets=part.targets,
            advantages=part.advantages,
            on_policy=part.on_policy,
            imitated=part.imitated,
            valid=part.valid,
            opponent_log_probs=(
                jnp.zeros_like(values)
                if foretold is None
                else distributions.log_prob(JAX, space, foretold, part.opponent_actions, None)
            ),
            foretold=part.foretold,
            kind_log_probs=(
                jnp.zeros_like(values)
                if outputs.kind_logits is None
                else _named(outputs.kind_logits, part.opponent_kinds)
            ),
            weights=part.weights,
            value_weights=part.value_weights,
            explored=part.explored,
            kept_entropy=None if part.explored is None else fixed.kept_entropy * largest,
            champion_kl=_from_champion(space, logits, part),
        ),
        share=share,
        entropy_weight=fixed.entropy_weight,
    )
    return result.total, result


def _from_champion(space: ActionSpace, logits: Array, part: TrainingBatch) -> Array | None:
    """KL divergence [T, B] from the champion to the policy, where there is one."""
    if part.champion_log_probs is None:
        return None
    now = distributions.log_probs(JAX, space, logits, part.legal)
    return distributions.divergence(JAX, space, part.champion_log_probs, now)


def _named(logits: Array, kinds: Array) -> Array:
    """Log-probabilities [T, B] of `kinds` int32 [T, B] by logits [T, B, K]; 0 where that is none
    of them."""
    among = jax.nn.log_softmax(logits.astype(jnp.float32))
    known = (kinds >= 0) & (kinds < logits.shape[-1])
    of_kind = jnp.take_along_axis(among, jnp.where(known, kinds, 0)[..., None], -1)[..., 0]
    return jnp.where(known, of_kind, 0.0)


def _one_row(array: Array, *, columns_first: bool) -> Array:
    """[T, B, ...] to [1, T * B, ...]: every decision a column of its own. With `columns_first`
    those of one column stay neighbours, and so on one device."""
    array = array.swapaxes(0, 1) if columns_first else array
    return array.reshape(1, -1, *array.shape[2:])


def _deal_shuffled(key: Array, filled: Array, count: int) -> Array:
    """Columns of each minibatch, [count, size], shuffled; filled ones [B] are spread evenly.

    Left to chance, the few matches of a small batch would often share one minibatch.
    """
    columns = filled.shape[0]
    shuffled = jax.random.permutation(key, columns)[: columns // count * count]
    return shuffled[jnp.argsort(~filled[shuffled])].reshape(-1, count).T


def _deal_blocks(key: Array, filled: Array, count: int) -> Array:
    """Columns of each minibatch, [count, blocks]: one of every `count` neighbours of the columns
    [B]."""
    blocks = jnp.arange(filled.shape[0]).reshape(-1, count)
    return jax.random.permutation(key, blocks, axis=1, independent=True).T
