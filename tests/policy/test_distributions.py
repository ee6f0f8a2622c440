from __future__ import annotations

import math
from itertools import product

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy.makers import random_legal, spec_of
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.core.spaces import ActionSpace, Discrete, MultiBinary, MultiDiscrete
from understudy.learner.maths.jax_ops import JAX
from understudy.policy import distributions

SPACES: dict[str, ActionSpace] = {
    "discrete": Discrete(("a", "b", "c", "d", "e")),
    "multi_discrete": MultiDiscrete((3, 2, 4)),
    "multi_binary": MultiBinary(("w", "a", "s")),
}
ROWS = 4
each_space = pytest.mark.parametrize("space", SPACES.values(), ids=list(SPACES))
EDGES = np.array([0.0, 1e-30, 2.0**-24, 0.5, 1.0 - 2.0**-23, 1.0 - 2.0**-24, 1.0], np.float32)


def case(space: ActionSpace, seed: int) -> tuple[NDArray, NDArray]:
    """Logits and masks [ROWS, options]."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.0, 3.0, (ROWS, space.options)).astype(np.float32)
    return logits, random_legal(rng, spec_of(actions=space), ROWS)


def slow_joint(space: ActionSpace, logits: NDArray, legal: NDArray) -> dict[tuple[int, ...], float]:
    """The probability of every action, by enumeration."""
    options, start = [], 0
    for size in space.parts:
        odds = [
            math.exp(float(logits[start + index])) if legal[start + index] else 0.0
            for index in range(size)
        ]
        options.append([one / sum(odds) for one in odds])
        start += size
    return {
        action: math.prod(part[index] for part, index in zip(options, action, strict=True))
        for action in product(*(range(size) for size in space.parts))
    }


@each_space
@settings(max_examples=40)
@given(seed=st.integers(0, 2**16), unmasked=st.booleans())
def test_formulas_agree_with_enumeration(space: ActionSpace, seed: int, unmasked: bool) -> None:
    logits, legal = case(space, seed)
    other, _ = case(space, seed + 1)
    mask = None if unmasked else legal
    known = np.ones_like(legal) if unmasked else legal
    entropy = distributions.entropy(NUMPY, space, logits, mask)
    mode, mode_log_prob = distributions.mode(NUMPY, space, logits, mask)
    divergence = distributions.divergence(
        NUMPY,
        space,
        distributions.log_probs(NUMPY, space, logits, mask),
        distributions.log_probs(NUMPY, space, other, mask),
    )
    assert {entropy.dtype, mode_log_prob.dtype, divergence.dtype} == {np.dtype(np.float32)}
    for row in range(ROWS):
        joint = slow_joint(space, logits[row], known[row])
        changed = slow_joint(space, other[row], known[row])
        possible = {action: p for action, p in joint.items() if p > 0.0}
        slow_entropy = -sum(p * math.log(p) for p in possible.values())
        slow_divergence = sum(p * math.log(p / changed[a]) for a, p in possible.items())
        assert entropy[row] == pytest.approx(slow_entropy, abs=2e-5)
        assert divergence[row] == pytest.approx(slow_divergence, rel=1e-4, abs=2e-5)
        best = max(possible.values())
        assert joint[tuple(mode[row].tolist())] == pytest.approx(best, rel=1e-5)
        assert mode_log_prob[row] == pytest.approx(math.log(best), abs=2e-5)
        for action, p in possible.items():
            log_prob = distributions.log_prob(
                NUMPY,
                space,
                logits[row],
                np.array(action, np.int32),
                None if mask is None else mask[row],
            )
            assert log_prob == pytest.approx(math.log(p), abs=3e-5)


@each_space
def test_what_is_illegal_has_probability_zero(space: ActionSpace) -> None:
    logits, legal = case(space, 3)
    logits[~legal] = 30.0  # however much the network wants it
    p = np.exp(distributions.log_probs(NUMPY, space, logits, legal))
    assert (p[~legal] == 0.0).all()
    np.testing.assert_allclose(p.sum(-1), len(space.parts), rtol=1e-6)


@each_space
@settings(max_examples=60)
@given(seed=st.integers(0, 2**16), scale=st.sampled_from([0.0, 1.0, 40.0]))
def test_what_is_illegal_is_never_drawn(space: ActionSpace, seed: int, scale: float) -> None:
    logits, legal = case(space, seed)
    logits *= np.float32(scale)
    for u in EDGES:
        uniforms = np.full((ROWS, len(space.parts)), u, np.float32)
        actions, log_probs = distributions.choose(NUMPY, space, logits, legal, uniforms)
        assert actions.dtype == np.int32
        starts = np.cumsum([0, *space.parts[:-1]])
        assert np.take_along_axis(legal, actions + starts, axis=1).all()
        recomputed = distributions.log_prob(NUMPY, space, logits, actions, legal)
        np.testing.assert_allclose(log_probs, recomputed, rtol=1e-5, atol=1e-5)


@each_space
def test_draws_are_as_frequent_as_probable(space: ActionSpace) -> None:
    logits, legal = case(space, 5)
    n = 20_000
    # A grid instead of chance: each option gets its share of it to the rounding of one cell.
    grid = ((np.arange(n) + 0.5) / n).astype(np.float32)
    uniforms = np.repeat(grid[:, None], len(space.parts), axis=1)
    for row in range(ROWS):
        p = np.exp(distributions.log_probs(NUMPY, space, logits[row], legal[row]))
        actions, _ = distributions.choose(
            NUMPY, space, np.tile(logits[row], (n, 1)), np.tile(legal[row], (n, 1)), uniforms
        )
        start = 0
        for part, size in enumerate(space.parts):
            share = np.bincount(actions[:, part], minlength=size) / n
            np.testing.assert_allclose(share, p[start : start + size], atol=3.0 / n)
            start += size


@each_space
def test_numpy_and_jax_draw_the_same(space: ActionSpace) -> None:
    rng = np.random.default_rng(7)
    n = 512
    logits = rng.normal(0.0, 2.0, (n, space.options)).astype(np.float32)
    legal = random_legal(rng, spec_of(actions=space), n)
    uniforms = rng.random((n, len(space.parts)), dtype=np.float32)
    uniforms[: len(EDGES)] = EDGES[:, None]

    @jax.jit
    def both(logits: NDArray, legal: NDArray, uniforms: NDArray) -> tuple[NDArray, ...]:
        chosen = distributions.choose(JAX, space, logits, legal, uniforms)
        return (*chosen, *distributions.mode(JAX, space, logits, legal))

    compiled = both(logits, legal, uniforms)
    expected = (
        *distributions.choose(NUMPY, space, logits, legal, uniforms),
        *distributions.mode(NUMPY, space, logits, legal),
    )
    for ours, theirs in zip(expected, compiled, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
