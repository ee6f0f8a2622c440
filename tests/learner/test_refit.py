"""A new normaliser under parameters that have learned something."""

from __future__ import annotations

import numpy as np
import pytest
from policy.makers import FEATURES, NETWORKS, lively_params

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.learner import refit
from understudy.learner.refit import MOST_KL, Normaliser
from understudy.policy.layers import Params
from understudy.policy.weights import Weights, normalise

BEFORE = Normaliser(np.zeros(FEATURES, np.float32), np.array([1.0, 0.5, 200.0], np.float32))
AFTER = Normaliser(np.array([0.5, -3.0, 0.001], np.float32), np.array([2.0, 0.1, 90.0], np.float32))


def said(name: str, params: Params, under: Normaliser, seen: NDArray) -> NDArray:
    network = NETWORKS[name]
    weights = Weights(params, under.mean, under.scale, np.float32(1.0))
    memory = network.memory(NUMPY, len(seen))
    logits, _, _ = network.step(NUMPY, params, normalise(NUMPY, weights, seen), memory)
    return np.asarray(logits)


def observations(spread: float) -> NDArray:
    rng = np.random.default_rng(0)
    return (rng.normal(0.0, spread, (50, FEATURES)) / BEFORE.scale).astype(np.float32)


@pytest.mark.parametrize("name", NETWORKS)
def test_where_nothing_is_clipped_parameters_say_what_they_said(name: str) -> None:
    params, seen = lively_params(NETWORKS[name]), observations(1.0)
    carried = refit.carry(
        params, NETWORKS[name].input_layers, before=BEFORE, after=AFTER, observations=seen
    )
    np.testing.assert_allclose(
        said(name, carried, AFTER, seen), said(name, params, BEFORE, seen), rtol=1e-3, atol=1e-4
    )


def test_where_features_were_clipped_parameters_say_nearly_what_they_said() -> None:
    """The third feature left its range; exact weights for the rest of it would be 1000 times as
    large, and say something else wherever it was clipped."""
    params = lively_params(NETWORKS["mlp"])
    seen = observations(1.0)
    seen[:, 2] = np.random.default_rng(1).uniform(0.0, 1.0, len(seen))
    wide = Normaliser(AFTER.mean, np.array([2.0, 0.1, 3.5], np.float32))
    carried = refit.carry(
        params, NETWORKS["mlp"].input_layers, before=BEFORE, after=wide, observations=seen
    )
    apart = np.abs(said("mlp", carried, wide, seen) - said("mlp", params, BEFORE, seen))
    assert apart.mean() < 0.3
    for name, weight in params.items():
        assert np.abs(carried[name]).max() <= 10.0 * np.abs(weight).max() + 10.0


@pytest.mark.parametrize(("steepness", "share"), [(0.5, 1.0), (1.5, 0.5), (3.0, 0.25), (1e9, 0.0)])
def test_a_fit_goes_as_far_as_the_policy_stays_what_it_is(steepness: float, share: float) -> None:
    params, seen = lively_params(NETWORKS["mlp"]), observations(1.0)
    asked: list[float] = []

    def moved(normaliser: Normaliser, carried: Params) -> float:
        way = float((normaliser.mean[0] - BEFORE.mean[0]) / (AFTER.mean[0] - BEFORE.mean[0]))
        asked.append(way)
        return steepness * way * MOST_KL

    made = refit.fit(
        params,
        NETWORKS["mlp"].input_layers,
        before=BEFORE,
        wanted=AFTER,
        observations=seen,
        moved=moved,
    )
    assert made.share == share
    assert asked[0] == 1.0 and asked == sorted(asked, reverse=True)
    if share == 0.0:
        assert made.normaliser is BEFORE and made.params is params
        return
    np.testing.assert_allclose(made.normaliser.mean, share * AFTER.mean, rtol=1e-6)
    ratio = (made.normaliser.scale / BEFORE.scale) ** np.float32(1.0 / share)
    np.testing.assert_allclose(ratio, AFTER.scale / BEFORE.scale, rtol=1e-4)
    np.testing.assert_allclose(
        said("mlp", made.params, made.normaliser, seen),
        said("mlp", params, BEFORE, seen),
        rtol=1e-3,
        atol=1e-4,
    )


def test_a_fit_in_parts_arrives() -> None:
    params, seen = lively_params(NETWORKS["mlp"]), observations(1.0)
    now, shares = BEFORE, []
    for _ in range(12):
        far = abs(float(AFTER.mean[0] - now.mean[0]))

        def moved(normaliser: Normaliser, carried: Params, now: Normaliser = now) -> float:
            return abs(float(normaliser.mean[0] - now.mean[0])) * 5.0 * MOST_KL

        made = refit.fit(
            params,
            NETWORKS["mlp"].input_layers,
            before=now,
            wanted=AFTER,
            observations=seen,
            moved=moved,
        )
        now, params = made.normaliser, made.params
        shares.append(made.share)
        assert abs(float(AFTER.mean[0] - now.mean[0])) <= far
        if made.share == 1.0:
            break
    assert shares[0] < 1.0 and shares[-1] == 1.0
    assert now is AFTER
