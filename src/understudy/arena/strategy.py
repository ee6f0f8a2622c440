"""What the policy makes of its opponents, looked at once an iteration: latents and attention.

One look at the last frame of a rollout costs as much as one frame of it, which had to be thought
about anyway, for the value of what follows.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp

from understudy.arena import slots as slotting
from understudy.arena.slots import Plan, Slots
from understudy.core.ops import Array, Tree
from understudy.learner.jax_ops import JAX
from understudy.policy.layers import Params
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
