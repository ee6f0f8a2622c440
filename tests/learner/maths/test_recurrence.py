"""The recurrence with a gradient of its own, beside the one that JAX finds by itself."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Array
from understudy.learner.maths.jax_ops import JAX
from understudy.policy.lstm import _gated

T, B, H = 9, 5, 4
RNG = np.random.default_rng(0)


def drawn(*shape: int) -> NDArray:
    return RNG.standard_normal(shape).astype(np.float32)


WEIGHT, INPUTS, HIDDEN, CELL = drawn(H, 4 * H), drawn(T, B, 4 * H), drawn(B, H), drawn(B, H)
FIRST = RNG.random((T, B)) < 0.2
FIRST[0, 1] = FIRST[3, 2] = True


def scanned(weight: Array, inputs: Array, hidden: Array, cell: Array) -> tuple[Array, Array, Array]:
    """The plain way."""

    def one(
        carry: tuple[Array, Array], now: tuple[Array, Array]
    ) -> tuple[tuple[Array, Array], Array]:
        inputs_t, first_t = now
        hidden, cell = (jnp.where(first_t[:, None], 0.0, old) for old in carry)
        hidden, cell = _gated(JAX, inputs_t + hidden @ weight, cell)
        return (hidden, cell), hidden

    (hidden, cell), every = jax.lax.scan(one, (hidden, cell), (inputs, FIRST))
    return every, hidden, cell


def ours(weight: Array, inputs: Array, hidden: Array, cell: Array) -> tuple[Array, Array, Array]:
    return JAX.recur(partial(_gated, JAX), weight, inputs, FIRST, hidden, cell)


GIVEN = (WEIGHT, INPUTS, HIDDEN, CELL)


def test_it_computes_what_a_plain_loop_computes() -> None:
    found = ours(*GIVEN)
    slow = NUMPY.recur(partial(_gated, NUMPY), WEIGHT, INPUTS, FIRST, HIDDEN, CELL)
    for got, plain, loop in zip(found, scanned(*GIVEN), slow, strict=True):
        np.testing.assert_allclose(got, plain, atol=1e-6)
        np.testing.assert_allclose(got, loop, atol=1e-6)


@pytest.mark.parametrize("which", range(4), ids=["weight", "inputs", "hidden", "cell"])
def test_its_gradient_is_the_one_that_jax_finds(which: int) -> None:
    weights = [drawn(T, B, H), drawn(B, H), drawn(B, H)]  # all three results count

    def total(way: object, *given: Array) -> Array:
        results = way(*given)  # type: ignore[operator]
        return sum((one * weight).sum() for one, weight in zip(results, weights, strict=True))

    found = jax.grad(partial(total, ours), argnums=which)(*GIVEN)
    expected = jax.grad(partial(total, scanned), argnums=which)(*GIVEN)
    assert float(jnp.abs(expected).max()) > 0.1
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)


def test_nothing_crosses_the_start_of_a_match() -> None:
    def later(inputs: Array) -> Array:
        return ours(WEIGHT, inputs, HIDDEN, CELL)[0][3:, 2].sum()

    gradient = np.asarray(jax.grad(later)(INPUTS))
    assert not gradient[:3, 2].any() and gradient[3:, 2].any(-1).all()
