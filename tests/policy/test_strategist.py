"""The strategist beside a reference of loops, its memory, its gradients and its types.

What every network must do (step equals unroll, NumPy equals JAX) is in `test_networks`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from policy.makers import FEATURES, STRATEGIST, lively_params
from policy.slow import slow_strategist
from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY, Array, Tree
from understudy.learner.maths.jax_ops import JAX
from understudy.policy.strategist import Insight, Strategist

COLUMNS = 3


def segment(length: int, rate: float, seed: int = 0) -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(seed)
    obs = rng.standard_normal((length, COLUMNS, FEATURES)).astype(np.float32)
    return obs, rng.random((length, COLUMNS)) < rate


def played(params: dict[str, NDArray], obs: NDArray, first: NDArray, memory: Tree) -> list[Insight]:
    """One frame at a time, as in play: a match begins with the memory that `memory()` gives."""
    rows = []
    empty = STRATEGIST.memory(NUMPY, COLUMNS)
    for obs_t, first_t in zip(obs, first, strict=True):
        memory = tuple(
            np.where(first_t.reshape(-1, *(1 for _ in old.shape[1:])), new, old)
            for new, old in zip(empty, memory, strict=True)
        )
        rows.append(STRATEGIST.step_insight(NUMPY, params, obs_t, memory))
        memory = rows[-1].memory
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_play_and_training_are_the_reference_across_matches_and_segments(seed: int) -> None:
    params = lively_params(STRATEGIST, seed)
    obs, first = segment(60, 0.06, seed)
    expected = [
        slow_strategist(STRATEGIST, params, obs[:, column], first[:, column])
        for column in range(COLUMNS)
    ]
    memory = STRATEGIST.memory(NUMPY, COLUMNS)
    steps = played(params, obs, first, memory)
    trained = []
    for part in (slice(0, 7), slice(7, 45), slice(45, 60)):
        trained.append(STRATEGIST.unroll_insight(NUMPY, params, obs[part], first[part], memory))
        memory = trained[-1].memory
    for name in ("logits", "values", "latent", "opponent_logits"):
        slow = np.stack([getattr(column, name) for column in expected], 1)
        step = np.stack([getattr(row, name) for row in steps])
        unrolled = np.concatenate([getattr(part, name) for part in trained])
        np.testing.assert_allclose(step, slow, atol=1e-4, err_msg=name)
        np.testing.assert_allclose(unrolled, slow, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("cut", [1, 4, 5, 31, 32, 33, 69])
def test_where_a_segment_is_cut_does_not_matter(cut: int) -> None:
    params = lively_params(STRATEGIST)
    obs, first = segment(70, 0.03)
    memory = STRATEGIST.memory(NUMPY, COLUMNS)
    whole = STRATEGIST.unroll_insight(NUMPY, params, obs, first, memory)
    one = STRATEGIST.unroll_insight(NUMPY, params, obs[:cut], first[:cut], memory)
    two = STRATEGIST.unroll_insight(NUMPY, params, obs[cut:], first[cut:], one.memory)
    for name in ("logits", "values", "latent", "opponent_logits"):
        joined = np.concatenate([getattr(one, name), getattr(two, name)])
        np.testing.assert_allclose(joined, getattr(whole, name), atol=2e-5, err_msg=name)
    for left, right in zip(two.memory, whole.memory, strict=True):
        np.testing.assert_allclose(left, right, atol=2e-5)


def test_a_match_begins_the_same_in_play_and_in_training() -> None:
    params = lively_params(STRATEGIST)
    obs, first = segment(12, 0.0)
    first[0] = True
    _, _, used = STRATEGIST.unroll(NUMPY, params, *segment(9, 0.0, 1), STRATEGIST.memory(NUMPY, 3))
    after_another, _, _ = STRATEGIST.unroll(NUMPY, params, obs, first, used)
    fresh, _, _ = STRATEGIST.unroll(NUMPY, params, obs, first, STRATEGIST.memory(NUMPY, COLUMNS))
    rows = played(params, obs, np.zeros_like(first), STRATEGIST.memory(NUMPY, COLUMNS))
    np.testing.assert_array_equal(after_another, fresh)
    np.testing.assert_allclose(np.stack([row.logits for row in rows]), fresh, atol=1e-5)


def test_the_weights_of_the_pool_can_be_read() -> None:
    params = lively_params(STRATEGIST)
    obs, first = segment(40, 0.1)
    ages = np.zeros(COLUMNS, int)
    for row, first_t in zip(
        played(params, obs, first, STRATEGIST.memory(NUMPY, COLUMNS)), first, strict=True
    ):
        ages = np.where(first_t, 1, ages + 1)
        assert row.attention is not None
        assert row.attention.shape == (COLUMNS, STRATEGIST.window)
        np.testing.assert_allclose(row.attention.sum(1), 1.0, atol=1e-6)
        for weights, age in zip(row.attention, ages, strict=True):
            empty = max(0, STRATEGIST.window - age)
            assert (weights[:empty] == 0.0).all()
            assert (weights[empty:] > 0.0).all()


def test_the_pool_follows_its_weights() -> None:
    """With all weight on the frame two before the present one, only that frame tells."""
    params = lively_params(STRATEGIST)
    params["pool.score"] *= 0.0
    params["pool.bias"] = np.array([0.0, 0.0, 60.0, 0.0, 0.0], np.float32)
    obs, first = segment(20, 0.0)
    row = played(params, obs, first, STRATEGIST.memory(NUMPY, COLUMNS))[-1]
    assert row.attention is not None
    np.testing.assert_allclose(row.attention, np.tile([0, 0, 1, 0, 0], (COLUMNS, 1)), atol=1e-6)
    earlier = played(params, obs[:-2], first[:-2], STRATEGIST.memory(NUMPY, COLUMNS))[-1]
    outputs = earlier.memory[STRATEGIST.layers][:, -1]
    hidden = np.maximum(outputs @ params["refine.0.w"] + params["refine.0.b"], 0.0)
    expected = hidden @ params["refine.1.w"] + params["refine.1.b"]
    np.testing.assert_allclose(row.latent, expected, atol=1e-4)


def test_gradients_reach_own_observation_and_the_history_of_the_opponent() -> None:
    params = lively_params(STRATEGIST)
    obs, _ = segment(12, 0.0)
    first = np.zeros((12, COLUMNS), bool)
    memory = STRATEGIST.memory(JAX, COLUMNS)

    def last(obs: Array) -> tuple[Array, Array]:
        seen = STRATEGIST.unroll_insight(JAX, params, obs, first, memory)
        return seen.logits[-1].sum() + seen.values[-1].sum(), seen.latent[-1].sum()

    decision, latent = (np.abs(gradient) for gradient in jax.jit(jax.jacrev(last))(obs))
    own = FEATURES - STRATEGIST.opponent
    assert (decision > 0.0).all(), "the LSTM carries every feature of every frame of the match"
    assert (latent[..., :own] == 0.0).all(), "how the opponent plays is read from the opponent"
    assert (latent[..., own:] > 0.0).all()


def test_what_came_before_the_match_has_no_gradient() -> None:
    params = lively_params(STRATEGIST)
    obs, _ = segment(12, 0.0)
    first = np.zeros((12, COLUMNS), bool)
    first[5] = True

    def after(obs: Array) -> Array:
        seen = STRATEGIST.unroll_insight(JAX, params, obs, first, STRATEGIST.memory(JAX, COLUMNS))
        return seen.logits[5:].sum() + seen.opponent_logits[5:].sum()

    gradient = np.abs(jax.jit(jax.grad(after))(obs))
    assert (gradient[:5] == 0.0).all()
    assert (gradient[5:] > 0.0).all()


def test_bfloat16_runs_close_and_answers_in_float32() -> None:
    params = lively_params(STRATEGIST)
    obs, first = segment(40, 0.05)
    exact = STRATEGIST.unroll_insight(NUMPY, params, obs, first, STRATEGIST.memory(NUMPY, COLUMNS))
    half = {name: jnp.asarray(value, jnp.bfloat16) for name, value in params.items()}
    memory = STRATEGIST.memory(JAX, COLUMNS, jnp.bfloat16)
    assert {str(kept.dtype) for kept in memory} == {"bfloat16", "float32", "bool"}
    run = jax.jit(lambda *inputs: STRATEGIST.unroll_insight(JAX, *inputs))
    rough = run(half, jnp.asarray(obs, jnp.bfloat16), first, memory)
    step = jax.jit(lambda *inputs: STRATEGIST.step_insight(JAX, *inputs))
    one = step(half, jnp.asarray(obs[0], jnp.bfloat16), memory)
    for seen in (rough, one):
        assert {str(x.dtype) for x in (seen.logits, seen.values, seen.opponent_logits)} == {
            "float32"
        }
        assert [(x.dtype, x.shape) for x in seen.memory] == [(x.dtype, x.shape) for x in memory]
    for name in ("logits", "values", "opponent_logits"):
        left, right = np.asarray(getattr(rough, name)), getattr(exact, name)
        assert np.abs(left - right).mean() < 0.05 * np.abs(right).mean()


def test_a_cache_may_be_rounder_than_the_parameters() -> None:
    params = lively_params(STRATEGIST)
    obs, first = segment(30, 0.0)
    memory = STRATEGIST.memory(JAX, COLUMNS, jnp.bfloat16)
    step = jax.jit(lambda *inputs: STRATEGIST.step(JAX, params, *inputs))
    for obs_t in obs[:-1]:
        memory = step(obs_t, memory)[2]
    logits, _, after = step(obs[-1], memory)
    exact, _, _ = STRATEGIST.unroll(NUMPY, params, obs, first, STRATEGIST.memory(NUMPY, COLUMNS))
    assert [x.dtype for x in after] == [x.dtype for x in memory]
    assert np.abs(np.asarray(logits) - exact[-1]).max() < 0.1


@pytest.mark.parametrize(
    ("sizes", "named"),
    [
        ({"width": 10, "heads": 4}, "network.width"),
        ({"window": 0}, "network.window"),
        ({"lstm": -1}, "network.lstm"),
        ({"opponent": 0}, "network.opponent"),
        ({"head_widths": (8, 0)}, "network.head_widths"),
    ],
)
def test_impossible_sizes_are_refused(sizes: dict[str, int], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Strategist(**sizes)  # type: ignore[arg-type]


def test_an_opponent_larger_than_the_observation_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"network\.opponent: expected at most the 3 features"):
        Strategist(opponent=4).init(np.random.default_rng(0), 3, 5)
