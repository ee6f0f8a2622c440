"""The JAX twin of `core.ops.NUMPY`.

A recurrence with a gradient of its own: the matrix is reached by one product, not by T of them.

Left to `lax.scan`, the backward pass adds [H, B] x [B, G] to the gradient of the matrix in every
frame: small products, a matrix that is read and written T times, and, in bfloat16, T roundings.
Here the loop only carries gates back, and one product over all frames does the rest: 9 to 40% off
the recurrence on two cores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp

from understudy.core.ops import Array, Ops, Tree
from understudy.learner.hardware import frames_at_once

Cell: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]


def recur(
    cell: Cell, weight: Array, inputs: Array, first: Array, hidden: Array, state: Array
) -> tuple[Array, Array, Array]:
    """See `core.ops.Recur`."""
    run = jax.custom_vjp(lambda *given: _forward(cell, *given)[0])
    run.defvjp(lambda *given: _forward(cell, *given), lambda *given: _backward(cell, *given))
    after: tuple[Array, Array, Array] = run(weight, inputs, first, hidden, state)
    return after


def _forward(
    cell: Cell, weight: Array, inputs: Array, first: Array, hidden: Array, state: Array
) -> tuple[tuple[Array, Array, Array], tuple[Array, ...]]:
    """The result, and what the way back needs of every frame."""

    def one(
        carry: tuple[Array, Array], now: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
        inputs_t, first_t = now
        before, state = (_kept(old, first_t) for old in carry)
        gates = inputs_t + jnp.dot(before, weight)
        after = cell(gates, state)
        return after, (after[0], before, state, gates)

    (hidden, state), (every, *rest) = jax.lax.scan(
        one, (hidden, state), (inputs, first), unroll=frames_at_once()
    )
    return (every, hidden, state), (weight, first, *rest)


def _backward(
    cell: Cell, rest: tuple[Array, ...], given: tuple[Array, Array, Array]
) -> tuple[Array | None, ...]:
    weight, first, before, states, gates = rest
    every, hidden, state = given

    def one(
        carry: tuple[Array, Array], now: tuple[Array, ...]
    ) -> tuple[tuple[Array, Array], Array]:
        later, state = carry
        here, first_t, gates_t, state_t = now
        _, back = jax.vjp(cell, gates_t, state_t)
        gates_bar, state = back((later + here, state))
        earlier = jnp.dot(gates_bar, weight.T)
        return (_kept(earlier, first_t), _kept(state, first_t)), gates_bar

    (hidden, state), gates_bar = jax.lax.scan(
        one,
        (hidden, state),
        (every, first, gates, states),
        reverse=True,
        unroll=frames_at_once(),
    )
    weight_bar = jnp.einsum("tbh,tbg->hg", before, gates_bar)
    return weight_bar, gates_bar, None, hidden, state


def _kept(old: Array, first: Array) -> Array:
    return jnp.where(first[:, None], jnp.zeros_like(old), old)


def _each(f: Callable[..., Tree], *trees: Tree) -> Tree:
    return jax.vmap(f)(*trees)


JAX = Ops(
    name="jax",
    xp=jnp,
    scan=jax.lax.scan,
    barrier=jax.lax.optimization_barrier,
    recur=recur,
    each=_each,
)
