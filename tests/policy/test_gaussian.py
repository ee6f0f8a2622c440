"""Real numbers as actions, against textbook formulas in float64."""

from __future__ import annotations

import math
from statistics import NormalDist

import jax
import numpy as np
import pytest

from policy.makers import lively_policy, spec_of
from understudy.bot.actions import space_of
from understudy.core.arrays import NDArray
from understudy.core.errors import InputError
from understudy.core.ops import NUMPY, Ops
from understudy.core.spaces import Continuous, Discrete
from understudy.learner.maths.jax_ops import JAX
from understudy.policy import distributions, gaussian

SPACE = Continuous(("turn", "push", "lift"), (-2.0, None, 0.0), (2.0, None, 1.0))
ROWS = 64


def outputs(seed: int = 0, spread: float = 1.0) -> NDArray:
    rng = np.random.default_rng(seed)
    return rng.normal(0.0, spread, (ROWS, SPACE.options)).astype(np.float32)


def known(row: NDArray) -> list[NormalDist]:
    """The distribution of every number, from the outputs of a network [6]."""
    return [
        NormalDist(float(row[i]), math.exp(3.0 * math.tanh(float(row[i + 3]) / 3.0)))
        for i in range(3)
    ]


def test_the_quantile_is_the_normal_distributions() -> None:
    u = np.concatenate([np.logspace(-7.4, -1, 200), np.linspace(0.1, 0.9, 200)]).astype(np.float32)
    u = np.concatenate([u, 1 - u])
    slow = [NormalDist().inv_cdf(float(one)) for one in np.clip(u, 2.0**-25, 1 - 2.0**-24)]
    fast = gaussian.quantile(NUMPY, u)
    assert fast.dtype == np.float32
    np.testing.assert_allclose(fast, slow, atol=2e-4)


@pytest.mark.parametrize("ops", [NUMPY, JAX], ids=["numpy", "jax"])
def test_the_quantile_rises_and_is_finite_at_the_edges(ops: Ops) -> None:
    u = np.linspace(0.0, 1.0, 4097, dtype=np.float32)
    x = np.asarray(gaussian.quantile(ops, u))
    assert np.isfinite(x).all()
    assert (np.diff(x) > 0).all()
    np.testing.assert_array_equal(x[1:-1], -x[1:-1][::-1])


def test_formulas_agree_with_the_textbook() -> None:
    one, two = outputs(1), outputs(2)
    rng = np.random.default_rng(3)
    actions, log_probs = distributions.choose(
        NUMPY, SPACE, one, None, rng.random((ROWS, 3), dtype=np.float32)
    )
    entropy = distributions.entropy(NUMPY, SPACE, one, None)
    divergence = distributions.divergence(
        NUMPY,
        SPACE,
        distributions.log_probs(NUMPY, SPACE, one, None),
        distributions.log_probs(NUMPY, SPACE, two, None),
    )
    again = distributions.log_prob(NUMPY, SPACE, one, actions, None)
    assert {a.dtype for a in (actions, log_probs, entropy, divergence)} == {np.dtype(np.float32)}
    np.testing.assert_allclose(log_probs, again, atol=1e-5)
    for row in range(ROWS):
        ours, theirs = known(one[row]), known(two[row])
        density = sum(math.log(d.pdf(float(a))) for d, a in zip(ours, actions[row], strict=True))
        assert log_probs[row] == pytest.approx(density, abs=1e-4)
        spreads = sum(0.5 * math.log(2 * math.pi * math.e * d.variance) for d in ours)
        assert entropy[row] == pytest.approx(spreads, abs=1e-4)
        apart = sum(
            math.log(b.stdev / a.stdev)
            + (a.variance + (a.mean - b.mean) ** 2) / (2 * b.variance)
            - 0.5
            for a, b in zip(ours, theirs, strict=True)
        )
        assert divergence[row] == pytest.approx(apart, rel=1e-3, abs=1e-4)


def test_draws_are_as_frequent_as_probable() -> None:
    n = 20_000
    grid = ((np.arange(n) + 0.5) / n).astype(np.float32)
    row = outputs(4)[0]
    actions, _ = distributions.choose(
        NUMPY, SPACE, np.tile(row, (n, 1)), None, np.repeat(grid[:, None], 3, axis=1)
    )
    for index, normal in enumerate(known(row)):
        assert actions[:, index].mean() == pytest.approx(normal.mean, abs=1e-2 * normal.stdev)
        assert actions[:, index].std() == pytest.approx(normal.stdev, rel=1e-2)
        below = [
            float((actions[:, index] < normal.mean + z * normal.stdev).mean()) for z in (-1, 2)
        ]
        assert below == pytest.approx([NormalDist().cdf(-1), NormalDist().cdf(2)], abs=1e-3)


def test_the_mode_is_the_mean_and_nothing_is_likelier() -> None:
    given = outputs(5)
    actions, log_probs = distributions.mode(NUMPY, SPACE, given, None)
    np.testing.assert_array_equal(actions, given[:, :3])
    drawn, other = distributions.choose(
        NUMPY, SPACE, given, None, np.full((ROWS, 3), 0.7, np.float32)
    )
    assert (other < log_probs).all()
    assert (drawn > actions).all()


def test_numpy_and_jax_draw_the_same() -> None:
    given = outputs(6)
    uniforms = np.random.default_rng(7).random((ROWS, 3), dtype=np.float32)
    uniforms[0], uniforms[1] = 0.0, 1.0

    @jax.jit
    def compiled(given: NDArray, uniforms: NDArray) -> tuple[NDArray, ...]:
        return (
            *distributions.choose(JAX, SPACE, given, None, uniforms),
            *distributions.mode(JAX, SPACE, given, None),
        )

    expected = (
        *distributions.choose(NUMPY, SPACE, given, None, uniforms),
        *distributions.mode(NUMPY, SPACE, given, None),
    )
    for ours, theirs in zip(expected, compiled(given, uniforms), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


def test_no_output_however_wild_gives_a_spread_that_is_lost() -> None:
    wild = np.array([[0.0, 0.0, 0.0, -1e6, 1e6, 0.0]], np.float32)
    spreads = np.exp(distributions.log_probs(NUMPY, SPACE, wild, None)[0, 3:])
    np.testing.assert_allclose(spreads, [math.exp(-3), math.exp(3), 1.0], rtol=1e-5)
    # Well outside the sane range there is still a way back.
    slope = jax.grad(lambda x: gaussian.entropy(JAX, x)[0])(wild / np.float32(1e5))
    assert (np.asarray(slope)[0, 3:] > 0.0).all()


@pytest.mark.parametrize("ops", [NUMPY, JAX], ids=["numpy", "jax"])
def test_what_is_executed_is_scaled_to_its_bounds_and_clipped(ops: Ops) -> None:
    drawn = np.array([[0.0, 0.0, 0.0], [1.0, 5.0, 1.0], [-3.0, -7.0, -0.5]], np.float32)
    done = np.asarray(distributions.executed(ops, SPACE, drawn))
    assert done.dtype == np.float32
    np.testing.assert_allclose(done, [[0.0, 0.0, 0.5], [2.0, 5.0, 1.0], [-2.0, -7.0, 0.25]])
    options = np.array([[1]], np.int32)
    assert distributions.executed(ops, Discrete(("a", "b")), options) is options


def test_a_policy_records_what_it_drew_not_what_was_executed() -> None:
    player = lively_policy(spec_of(actions=SPACE), 2)
    obs = np.full((8, 3), 55.0, np.float32)
    uniforms = np.full((8, 3), 0.999, np.float32)
    choice = player.act(obs, player.begin(8), uniforms=uniforms)
    assert choice.actions.shape == (8, 3)
    assert choice.actions.dtype == np.float32
    assert (distributions.executed(NUMPY, SPACE, choice.actions) != choice.actions).any()
    likeliest = player.act(obs, player.begin(8))
    assert (likeliest.log_probs > choice.log_probs).all()


def test_a_bot_of_ones_own_is_told_that_it_chooses_among_options() -> None:
    with pytest.raises(InputError, match="actions: a bot chooses among options"):
        space_of(SPACE)
