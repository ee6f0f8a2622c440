from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from policy.makers import MLP, NETWORKS, TRANSFORMER, lively_policy, spec_of
from understudy.core.arrays import NDArray, from_npz, to_npz
from understudy.core.errors import FileFormatError
from understudy.policy import weights
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork

SPEC = spec_of(MLP)
GOOD = weights.encode(lively_policy(SPEC).weights)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=list(NETWORKS))
def test_weights_survive_their_file_bit_for_bit(network: AnyNetwork) -> None:
    spec = spec_of(network)
    before = lively_policy(spec).weights
    after = weights.decode(spec, weights.encode(before), what="weights.npz")
    assert list(after.params) == list(before.params)
    for name, value in before.params.items():
        np.testing.assert_array_equal(after.params[name], value)
    np.testing.assert_array_equal(after.obs_mean, before.obs_mean)
    np.testing.assert_array_equal(after.obs_scale, before.obs_scale)
    assert after.value_scale == before.value_scale
    assert after.value_scale.dtype == np.float32
    assert weights.encode(after) == weights.encode(before)


def without(arrays: dict[str, NDArray]) -> None:
    del arrays["params.policy.w"]


def with_more(arrays: dict[str, NDArray]) -> None:
    arrays["params.extra.w"] = np.zeros(3, np.float32)


def reshaped(arrays: dict[str, NDArray]) -> None:
    arrays["params.policy.w"] = arrays["params.policy.w"].T.copy()


def widened(arrays: dict[str, NDArray]) -> None:
    arrays["params.value.b"] = arrays["params.value.b"].astype(np.float64)


def not_a_number(arrays: dict[str, NDArray]) -> None:
    arrays["params.trunk.0.w"] = np.full_like(arrays["params.trunk.0.w"], np.nan)


def infinite(arrays: dict[str, NDArray]) -> None:
    arrays["normaliser.scale"] = np.full_like(arrays["normaliser.scale"], np.inf)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (without, r"missing or extra: \['params.policy.w'\]"),
        (with_more, r"missing or extra: \['params.extra.w'\]"),
        (reshaped, r"params.policy.w is float32 \(3, 8\), expected float32 \(8, 3\)"),
        (widened, r"params.value.b is float64"),
        (not_a_number, r"params.trunk.0.w holds numbers that are not finite"),
        (infinite, r"normaliser.scale holds numbers that are not finite"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    damage: Callable[[dict[str, NDArray]], None], says: str
) -> None:
    arrays = from_npz(GOOD, what="good")
    damage(arrays)
    with pytest.raises(FileFormatError, match=f"v7/weights.npz: .*{says}"):
        weights.decode(SPEC, to_npz(arrays), what="v7/weights.npz")


def test_weights_of_another_network_are_refused() -> None:
    with pytest.raises(FileFormatError, match="does not fit the network"):
        weights.decode(spec_of(TRANSFORMER), GOOD, what="weights.npz")


def test_a_pickle_is_refused_without_being_run() -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
            return pytest.fail, ("the pickle was run",)

    buffer = io.BytesIO()
    np.savez(buffer, **{"params.policy.w": np.array([Bomb()], dtype=object)})  # type: ignore[arg-type]
    with pytest.raises(FileFormatError, match="plain numbers"):
        weights.decode(SPEC, buffer.getvalue(), what="weights.npz")


@pytest.mark.parametrize("cut", [0, 10, 200, len(GOOD) - 1])
def test_a_file_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(FileFormatError, match=r"weights\.npz"):
        weights.decode(SPEC, GOOD[:cut], what="weights.npz")


@pytest.mark.parametrize("network", NETWORKS.values(), ids=list(NETWORKS))
def test_another_normaliser_does_not_change_what_was_learned(network: AnyNetwork) -> None:
    spec = spec_of(network)
    player = lively_policy(spec)
    old, rng = player.weights, np.random.default_rng(1)
    mean = rng.normal(50.0, 10.0, len(spec.features)).astype(np.float32)
    scale = rng.uniform(0.01, 0.1, len(spec.features)).astype(np.float32)
    params = weights.renormalised(
        old.params,
        network.input_layers,
        before=(np.asarray(old.obs_mean), np.asarray(old.obs_scale)),
        after=(mean, scale),
    )
    assert {str(value.dtype) for value in params.values()} == {"float32"}
    new = Policy(spec, weights.Weights(params, mean, scale, old.value_scale), version=1)
    before, after = player.begin(4), new.begin(4)
    for _ in range(10):
        obs = rng.normal(50.0, 5.0, (4, len(spec.features))).astype(np.float32)
        one, other = player.act(obs, before), new.act(obs, after)
        before, after = one.memory, other.memory
        np.testing.assert_allclose(other.log_probs, one.log_probs, atol=1e-4)
        np.testing.assert_allclose(other.values, one.values, atol=1e-3, rtol=1e-4)
        np.testing.assert_array_equal(other.actions, one.actions)


def test_names_and_shapes_need_no_chance() -> None:
    for network in NETWORKS.values():
        drawn = network.init(np.random.default_rng(0), 3, 3)
        blank = network.init(None, 3, 3)
        assert {n: (v.shape, v.dtype) for n, v in blank.items()} == {
            n: (v.shape, v.dtype) for n, v in drawn.items()
        }


def test_fresh_weights_depend_on_the_seed_alone() -> None:
    one, same, other = (weights.fresh(SPEC, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert weights.encode(one) == weights.encode(same) != weights.encode(other)
    assert weights.encode(replace(one, value_scale=np.float32(2.0))) != weights.encode(one)
