"""Returns and advantages as pure functions over time-major arrays.

Every array is [T, B]; a mask is 1 where a decision counts. `discount_t` is gamma where the match
goes on after step t and 0 where it ends there. `value_t` has one more row than the others use: row
t + 1 is the value after step t. Each function has a slow reference, written with loops, in
tests/learner/maths/test_returns.py.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from understudy.core.ops import Array


def discounted_returns(*, rewards: Array, discounts: Array, bootstrap: Array) -> Array:
    """Returns [T, B]: rewards plus the discounted future; `bootstrap` [B] follows the last row."""
    return _accumulate(rewards, discounts, bootstrap)


def gae(*, rewards: Array, discounts: Array, values: Array, lam: float) -> Array:
    """Generalised advantage estimates [T, B] from values [T + 1, B]."""
    errors = rewards + discounts * values[1:] - values[:-1]
    return _accumulate(errors, lam * discounts, jnp.zeros_like(errors[0]))


def standardised(x: Array, mask: Array) -> Array:
    """x with mean 0 and spread 1 where mask is 1."""
    count = jnp.maximum(mask.sum(), 1.0)
    mean = (x * mask).sum() / count
    spread = jnp.sqrt((jnp.square(x - mean) * mask).sum() / count)
    return (x - mean) / (spread + 1e-6)


class Moments(NamedTuple):
    """Mean and mean square of so many numbers (`size`), scalars."""

    mean: Array | float = 0.0
    square: Array | float = 0.0
    size: Array | float = 0.0


def moments(x: Array, mask: Array) -> Moments:
    """Of x where mask is 1."""
    count = mask.sum()
    least = jnp.maximum(count, 1.0)
    return Moments((x * mask).sum() / least, (jnp.square(x) * mask).sum() / least, count)


def pooled(one: Moments, other: Moments) -> Moments:
    """Of the numbers of both together; 0 where there are none."""
    size = one.size + other.size
    least = size + (size == 0)
    mean = (one.mean * one.size + other.mean * other.size) / least
    square = (one.square * one.size + other.square * other.size) / least
    return Moments(mean, square, size)


def standardised_beside(x: Array, mask: Array, earlier: Moments) -> Array:
    """x with mean 0 and spread 1 over the numbers where mask is 1 and `earlier` ones together.

    By itself a batch of one match would lose its result, which all of its decisions have in common.
    """
    mean, square, _ = pooled(earlier, moments(x, mask))
    return (x - mean) / (jnp.sqrt(jnp.maximum(square - jnp.square(mean), 0.0)) + 1e-6)


def explained(targets: Array, values: Array, mask: Array) -> Array:
    """1: values foretell every target; 0: no better than their mean."""
    count = jnp.maximum(mask.sum(), 1.0)
    centred = targets - (targets * mask).sum() / count
    errors = targets - values
    errors = errors - (errors * mask).sum() / count
    variance = (jnp.square(centred) * mask).sum() / count
    return 1.0 - (jnp.square(errors) * mask).sum() / count / (variance + 1e-8)


class VTrace(NamedTuple):
    """Corrected value targets and policy advantages, both [T, B]."""

    targets: Array
    advantages: Array


def vtrace(
    *,
    rewards: Array,
    discounts: Array,
    values: Array,
    ratios: Array,
    lam: Array | float,
    cap: float,
) -> VTrace:
    """V-trace (Espeholt et al. 2018) with lambda; values [T + 1, B], ratios pi/mu [T, B].

    With all ratios 1 the advantages are GAE's and the targets are values plus advantages.
    """
    errors = jnp.minimum(ratios, cap) * (rewards + discounts * values[1:] - values[:-1])
    traces = lam * discounts * jnp.minimum(ratios, 1.0)
    targets = values[:-1] + _accumulate(errors, traces, jnp.zeros_like(errors[0]))
    # What follows step t is the corrected target, mixed with the plain value as lambda says.
    after = lam * jnp.concatenate([targets[1:], values[-1:]]) + (1.0 - lam) * values[1:]
    return VTrace(targets, rewards + discounts * after - values[:-1])


def _accumulate(terms: Array, decays: Array, last: Array) -> Array:
    """x_t = terms_t + decays_t * x_(t+1), backwards from `last`."""

    def backwards(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        term, decay = now
        total = term + decay * later
        return total, total

    return jax.lax.scan(backwards, last, (terms, decays), reverse=True)[1]
