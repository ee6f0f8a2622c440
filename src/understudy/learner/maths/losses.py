"""What the learner minimises: pure functions of one minibatch, each a scalar with its details.

Decisions that a policy sampled are trained by ratio. Decisions without a known probability (of
rules, or imported) never see a ratio: they train the value, and the policy imitates them, until own
experience takes the place of imitation.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from understudy.core.config import LearnerConfig
from understudy.core.ops import Array

_KEPT_WEIGHT = 0.3
"""Of entropy that is missing (`learner.kept_entropy`): enough to hold it where advantages of single
matches would use it up."""


class LossTerms(NamedTuple):
    """Per decision [T, B], beside what the network says now."""

    log_probs: Array
    """of the executed actions, now (this is what the gradient flows through)"""
    entropy: Array
    entropy_floor: Array
    """below which imitation holds the policy open"""
    values: Array
    """in units of the return scale"""
    anchor_log_probs: Array
    """of the executed actions before this batch"""
    behaviour_log_probs: Array
    """of the executed actions when they were executed"""
    targets: Array
    advantages: Array
    """in units of their own scale"""
    on_policy: Array
    imitated: Array
    valid: Array
    opponent_log_probs: Array
    """of what the opponent did next, as the network foretold it"""
    foretold: Array
    """1 where that is known"""
    kind_log_probs: Array
    """of the opponent's true name under the network; 0 where it is unknown"""
    weights: Array | None = None
    """how much each decision counts in what is minimised; None: all alike"""
    value_weights: Array | None = None
    """how much it counts for the value, beside that; None: all alike"""
    explored: Array | None = None
    """where entropy is rewarded; None: on all valid decisions"""
    kept_entropy: Array | None = None
    """what it is to be there at least, on average; None: anything"""
    champion_kl: Array | None = None
    """KL divergence from the version that the policy stays near to; None: there is none"""


class Losses(NamedTuple):
    """The total and its parts, each a scalar."""

    total: Array
    policy: Array
    value: Array
    entropy: Array
    clip_share: Array
    """how many decisions the clip silenced, over `share`"""
    behaviour_kl: Array
    """how far the policy is from the one that played: the mean of (r - 1) - log r over the sampled
    decisions, as far as they count, where r is its ratio to the behaviour; 0 where there is none"""
    behaviour_kl_max: Array
    """the largest of them"""
    kl: Array
    """how far the policy is from where the batch began: the mean of (r - 1) - log r, over `share`,
    which is never below 0 and has less spread than the mean of -log r (Schulman 2020)"""
    opponent: Array
    """cross-entropy of the opponent's next action"""
    recognition: Array
    """cross-entropy of who the opponent is"""


def losses(
    config: LearnerConfig, terms: LossTerms, *, share: Array, entropy_weight: Array | float
) -> Losses:
    """All of it; `share` is how many valid decisions an average minibatch has."""
    policy, clipped = (
        _clipped(config, terms)
        if config.algorithm == "actor_critic"
        else (_reinforce(config, terms), jnp.zeros_like(terms.valid))
    )
    imitation = _imitation(config, terms)

    def mean(parts: Array) -> Array:
        return (parts if terms.weights is None else parts * terms.weights).sum() / share

    policy_loss = mean(policy * terms.on_policy)
    imitation_loss = mean(imitation * terms.imitated)
    errors = jnp.square(terms.values - terms.targets) * terms.valid
    value_loss = 0.5 * mean(errors if terms.value_weights is None else errors * terms.value_weights)
    opponent = -mean(terms.opponent_log_probs * terms.foretold)
    recognition = -mean(terms.kind_log_probs * terms.valid)
    entropy = terms.entropy * terms.valid
    total = (
        policy_loss
        + config.opponent_weight * opponent
        + config.recognition_weight * recognition
        + config.imitation_weight * imitation_loss
        + config.value_weight * value_loss
        - entropy_weight
        * mean(entropy if terms.explored is None else terms.entropy * terms.explored)
    )
    if terms.explored is not None and terms.kept_entropy is not None:
        missing = terms.kept_entropy - terms.entropy
        total = total + _KEPT_WEIGHT * _beyond(missing, terms.explored, bound=0.0)
    if terms.champion_kl is not None:
        total = total + _beyond(terms.champion_kl, terms.valid, bound=config.anchor_kl)
    differs = from_behaviour(terms.log_probs, terms.behaviour_log_probs, terms.on_policy)
    moved = terms.log_probs - terms.anchor_log_probs
    taught = jnp.maximum(terms.on_policy, terms.imitated)
    return Losses(
        total=total,
        policy=policy_loss + config.imitation_weight * imitation_loss,
        value=value_loss,
        entropy=entropy.sum() / share,  # of the policy, whatever its decisions count
        clip_share=(clipped * terms.on_policy).sum() / share,
        behaviour_kl=(differs * terms.on_policy).sum() / jnp.maximum(terms.on_policy.sum(), 1.0),
        behaviour_kl_max=differs.max(),
        kl=((jnp.exp(moved) - 1.0 - moved) * taught).sum() / share,
        opponent=opponent,
        recognition=recognition,
    )


def from_behaviour(log_probs: Array, behaviour: Array, on_policy: Array) -> Array:
    """How far each decision is from the policy that played it: (r - 1) - log r, where r is its
    ratio to the behaviour; 0 where it does not train the policy.

    The mean ratio would say nothing: it is 1 in expectation for any policy.
    """
    apart = log_probs - behaviour
    return jnp.where(on_policy > 0, jnp.expm1(apart) - apart, 0.0)  # expm1: r is nearly 1


def _beyond(divergence: Array, mask: Array, *, bound: float) -> Array:
    """How far the mean of a divergence [T, B] lies beyond the bound; within it there is no pull."""
    mean = (divergence * mask).sum() / jnp.maximum(mask.sum(), 1.0)
    return jnp.maximum(mean - bound, 0.0)


def _clipped(config: LearnerConfig, terms: LossTerms) -> tuple[Array, Array]:
    """Clipped around the policy before this batch, weighted for how that differs from behaviour.

    Clipping around the behaviour itself would silence old experience; two ratios keep it useful
    and still bounded (Hilton et al. 2022 call it decoupled).
    """
    weight = jnp.minimum(
        jnp.exp(terms.anchor_log_probs - terms.behaviour_log_probs), config.behaviour_clip
    )
    ratio = jnp.exp(terms.log_probs - terms.anchor_log_probs)
    bounded = jnp.clip(ratio, 1.0 - config.clip, 1.0 + config.clip)
    gain = jnp.minimum(ratio * terms.advantages, bounded * terms.advantages)
    return -weight * gain, (jnp.abs(ratio - 1.0) > config.clip).astype(jnp.float32)


def _reinforce(config: LearnerConfig, terms: LossTerms) -> Array:
    """The plain policy gradient, weighted by the capped ratio to the behaviour."""
    ratio = jnp.exp(jax.lax.stop_gradient(terms.log_probs) - terms.behaviour_log_probs)
    return -jnp.minimum(ratio, config.behaviour_clip) * terms.log_probs * terms.advantages


def _imitation(config: LearnerConfig, terms: LossTerms) -> Array:
    """All alike (`clone`), or more of what turned out better than expected (`advantage`); never a
    push away from an action. The entropy of the policy is held above a floor: a clone of rules that
    always choose alike would have none left to learn with."""
    kept_open = jnp.minimum(terms.entropy, terms.entropy_floor)
    if config.imitation == "clone":
        return -terms.log_probs - kept_open
    weight = jnp.exp(terms.advantages / config.imitation_temperature)
    return -jnp.minimum(weight, config.imitation_cap) * terms.log_probs - kept_open
