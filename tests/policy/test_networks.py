from __future__ import annotations

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy.makers import FEATURES, NETWORKS, STRATEGIST, TRANSFORMER, lively_params, spec_of
from policy.slow import slow_transformer
from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY, Array, Ops, Tree
from understudy.learner.maths.jax_ops import JAX
from understudy.policy.mlp import Mlp
from understudy.policy.network import emptied
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.strategist import Strategist
from understudy.policy.transformer import Transformer

COLUMNS = 2

each_network = pytest.mark.parametrize("network", NETWORKS.values(), ids=list(NETWORKS))


def observations(length: int, seed: int = 0) -> NDArray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((length, COLUMNS, FEATURES)).astype(np.float32)


def emptied_where(network: AnyNetwork, first: NDArray, memory: Tree) -> Tree:
    empty = network.memory(NUMPY, len(first))
    return tuple(
        np.where(first.reshape(-1, *(1 for _ in new.shape[1:])), new, old)
        for new, old in zip(empty, memory, strict=True)
    )


def stepped(
    network: AnyNetwork, params: dict[str, NDArray], obs: NDArray, first: NDArray, memory: Tree
) -> tuple[NDArray, NDArray, Tree]:
    """`unroll`, one decision at a time."""
    rows = []
    for obs_t, first_t in zip(obs, first, strict=True):
        memory = emptied_where(network, first_t, memory)
        logits, values, memory = network.step(NUMPY, params, obs_t, memory)
        rows.append((logits, values))
    return np.stack([row[0] for row in rows]), np.stack([row[1] for row in rows]), memory


def assert_same_tree(one: Tree, other: Tree) -> None:
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_allclose(left, right, atol=1e-5, rtol=1e-5)


@each_network
@settings(max_examples=25)
@given(
    lengths=st.lists(st.sampled_from([1, 2, 7, 33, 70]), min_size=1, max_size=3),
    rate=st.sampled_from([0.0, 0.03, 0.4]),
    seed=st.integers(0, 2**16),
)
def test_step_equals_unroll_across_matches_and_chunks(
    network: AnyNetwork, lengths: list[int], rate: float, seed: int
) -> None:
    params = lively_params(network, seed)
    rng = np.random.default_rng(seed)
    together = alone = network.memory(NUMPY, COLUMNS)
    for length in lengths:
        obs = rng.standard_normal((length, COLUMNS, FEATURES)).astype(np.float32)
        first = rng.random((length, COLUMNS)) < rate
        logits, values, together = network.unroll(NUMPY, params, obs, first, together)
        step_logits, step_values, alone = stepped(network, params, obs, first, alone)
        np.testing.assert_allclose(logits, step_logits, atol=2e-5, rtol=1e-5)
        np.testing.assert_allclose(values, step_values, atol=2e-5, rtol=1e-5)
        assert_same_tree(together, alone)


@each_network
def test_numpy_and_jax_agree_over_a_long_unroll(network: AnyNetwork) -> None:
    params, obs = lively_params(network), observations(200)
    first = np.random.default_rng(1).random((200, COLUMNS)) < 0.02
    memory = network.memory(NUMPY, COLUMNS)
    expected = network.unroll(NUMPY, params, obs, first, memory)
    compiled = jax.jit(lambda *inputs: network.unroll(JAX, *inputs))
    logits, values, after = compiled(params, obs, first, network.memory(JAX, COLUMNS))
    np.testing.assert_allclose(logits, expected[0], atol=1e-5)
    np.testing.assert_allclose(values, expected[1], atol=1e-5)
    assert_same_tree(after, expected[2])


@each_network
def test_step_runs_under_a_compiled_scan(network: AnyNetwork) -> None:
    obs = observations(200)
    params = lively_params(network)
    expected, _, _ = network.unroll(
        NUMPY, params, obs, np.zeros((200, COLUMNS), bool), network.memory(NUMPY, COLUMNS)
    )

    def one(memory: Tree, obs_t: Array) -> tuple[Tree, Array]:
        logits, _, memory = network.step(JAX, params, obs_t, memory)
        return memory, logits

    _, logits = jax.jit(lambda obs: JAX.scan(one, network.memory(JAX, COLUMNS), obs))(obs)
    np.testing.assert_allclose(logits, expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_transformer_is_banded_causal_attention(seed: int) -> None:
    params, obs = lively_params(TRANSFORMER, seed), observations(45, seed)
    first = np.random.default_rng(seed).random((45, COLUMNS)) < 0.08
    memory = TRANSFORMER.memory(NUMPY, COLUMNS)
    logits, values, _ = TRANSFORMER.unroll(NUMPY, params, obs, first, memory)
    for column in range(COLUMNS):
        expected = slow_transformer(TRANSFORMER, params, obs[:, column], first[:, column])
        np.testing.assert_allclose(logits[:, column], expected[0], atol=2e-5)
        np.testing.assert_allclose(values[:, column], expected[1], atol=2e-5)


def test_a_decision_is_seen_by_later_ones_within_the_windows_and_by_no_other() -> None:
    network, obs = TRANSFORMER, observations(60)
    params, first = lively_params(network), np.zeros((60, COLUMNS), bool)
    changed = obs.copy()
    changed[20] += 1.0
    memory = network.memory(NUMPY, COLUMNS)
    before, _, _ = network.unroll(NUMPY, params, obs, first, memory)
    after, _, _ = network.unroll(NUMPY, params, changed, first, memory)
    reach = network.layers * (network.window - 1)
    moved = np.abs(before - after).max((1, 2)) > 1e-7
    assert moved[20 : 21 + reach].all()
    assert not moved[:20].any()
    assert not moved[21 + reach :].any()


def _leaves(ops: Ops, network: AnyNetwork) -> list[Array]:
    params, obs = lively_params(network), observations(40)
    memory = network.memory(ops, COLUMNS)
    logits, values, kept = network.step(ops, params, obs[0], memory)
    unrolled = network.unroll(ops, params, obs, np.zeros((40, COLUMNS), bool), memory)
    return [logits, values, *kept, *unrolled[:2], *unrolled[2]]


@each_network
def test_nothing_becomes_float64(network: AnyNetwork) -> None:
    assert {str(leaf.dtype) for leaf in _leaves(NUMPY, network)} <= {"float32", "bool"}
    assert {str(value.dtype) for value in lively_params(network).values()} == {"float32"}


@each_network
def test_gradients_reach_every_parameter(network: AnyNetwork) -> None:
    params, obs = lively_params(network), observations(200)
    weights = np.random.default_rng(2).standard_normal((200, COLUMNS, 3)).astype(np.float32)
    first = np.zeros((200, COLUMNS), bool)

    def scalar(params: dict[str, Array]) -> Array:
        memory = network.memory(JAX, COLUMNS)
        if isinstance(network, Strategist):
            insight = network.unroll_insight(JAX, params, obs, first, memory)
            logits, values = insight.logits + insight.opponent_logits, insight.values
            assert insight.kind_logits is not None
            values = values + insight.kind_logits.sum(-1)
        else:
            logits, values, _ = network.unroll(JAX, params, obs, first, memory)
        return (logits * weights).sum() + jnp.square(values).sum()

    gradients = jax.jit(jax.grad(scalar))(params)
    assert [name for name, value in gradients.items() if not np.abs(value).max() > 1e-4] == []
    for name in gradients:
        if name.endswith("attention.bias"):
            assert np.abs(gradients[name]).min() > 0.0, "every head and distance has a bias"


@each_network
def test_a_fresh_policy_is_nearly_uniform(network: AnyNetwork) -> None:
    big = Strategist(opponent=2) if isinstance(network, Strategist) else type(network)()
    params = big.init(np.random.default_rng(0), FEATURES, 5)
    obs = 3.0 * observations(50)
    memory = big.memory(NUMPY, COLUMNS)
    logits, values, _ = big.unroll(NUMPY, params, obs, np.zeros((50, COLUMNS), bool), memory)
    assert np.ptp(logits, axis=-1).max() < 0.35
    assert np.std(values) > 0.05, "values need no uniform start"


@each_network
def test_a_spec_survives_its_file(network: AnyNetwork) -> None:
    spec = spec_of(network)
    assert msgspec.json.decode(msgspec.json.encode(spec), type=PolicySpec) == spec


@pytest.mark.parametrize(
    ("settings_", "named"),
    [
        ({"width": 10, "heads": 4}, "network.width"),
        ({"window": 0}, "network.window"),
        ({"layers": -1}, "network.layers"),
    ],
)
def test_impossible_sizes_are_refused(settings_: dict[str, int], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Transformer(**settings_)
    with pytest.raises(ConfigError, match=r"network\.widths"):
        Mlp(widths=(8, 0))


def test_a_window_of_one_sees_the_present_alone() -> None:
    network = Transformer(width=8, heads=2, layers=1, feed=8, window=1)
    params, obs = lively_params(network), observations(40)
    memory = network.memory(NUMPY, COLUMNS)
    logits, _, _ = network.unroll(NUMPY, params, obs, np.zeros((40, COLUMNS), bool), memory)
    alone, _, _ = network.step(NUMPY, params, obs[39], memory)
    np.testing.assert_allclose(logits[39], alone, atol=1e-5)


@pytest.mark.parametrize("network", [TRANSFORMER, STRATEGIST], ids=["transformer", "strategist"])
def test_an_emptied_memory_is_a_new_one(network: AnyNetwork) -> None:
    rng = np.random.default_rng(0)
    params = lively_params(network, 1, inputs=3)
    memory = network.memory(NUMPY, 3)
    for _ in range(9):
        obs = rng.normal(size=(3, 3)).astype(np.float32)
        _, _, memory = network.step(NUMPY, params, obs, memory)
    again = emptied(NUMPY, memory, np.array([True, False, True]))
    fresh = network.memory(NUMPY, 3)
    for frame in range(9):
        obs = rng.normal(size=(3, 3)).astype(np.float32)
        expected, _, fresh = network.step(NUMPY, params, obs, fresh)
        kept, _, memory = network.step(NUMPY, params, obs, memory)
        got, _, again = network.step(NUMPY, params, obs, again)
        np.testing.assert_allclose(got[::2], expected[::2], atol=1e-6)
        np.testing.assert_allclose(got[1], kept[1], atol=1e-6)
        assert frame or np.abs(got[1] - expected[1]).max() > 1e-3, "memory matters here"
