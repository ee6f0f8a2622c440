"""Latents of a record are those of play; the zero line has learned nothing."""

from __future__ import annotations

import numpy as np
import pytest
from policy.makers import MLP, lively_policy

from understudy.analysis.encoding import (
    COLUMNS,
    SPAN,
    Encoder,
    attention,
    latents,
    plain,
    strategist_of,
    untrained_twin,
)
from understudy.analysis.study import UNTRAINED, with_untrained
from understudy.arena.compiling import compiled_encoder
from understudy.core.errors import InputError
from understudy.core.ops import NUMPY
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import fresh, normalise

from .makers import NETWORK, SPEC, lively


def seen(frames: int, matches: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((frames, matches, len(SPEC.features))).astype(np.float32)


@pytest.mark.parametrize("encoder", [plain, compiled_encoder])
def test_latents_are_those_of_play_across_spans_and_chunks(encoder: Encoder) -> None:
    policy = lively_policy(SPEC, 3)
    obs = seen(SPAN + 40, COLUMNS + 3)
    obs = (obs / policy.weights.obs_scale + policy.weights.obs_mean).astype(np.float32)
    found = latents(policy, obs, encoder=encoder)
    memory, expected = policy.begin(COLUMNS + 3), []
    for row in obs:
        insight = NETWORK.step_insight(
            NUMPY, policy.weights.params, normalise(NUMPY, policy.weights, row), memory
        )
        memory = insight.memory
        expected.append(insight.latent)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.stack(expected), atol=2e-4)


def test_attention_is_a_share_of_each_frame_that_was_there() -> None:
    weights = attention(lively(), seen(9, 4))
    assert weights.shape == (9, 4, NETWORK.window)
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)
    assert (weights[0, :, :-1] == 0).all() and (weights[5] > 0).all()


def test_the_untrained_reference_is_really_untrained() -> None:
    """Its parameters are fresh ones of a fixed seed: nothing that was learned reaches it."""
    one, other = lively_policy(SPEC, 1), lively_policy(SPEC, 2)
    assert len(with_untrained(one)) == 1 + UNTRAINED
    assert with_untrained(one)[0] is one
    for seed, twin in enumerate(with_untrained(one)[1:]):
        params = fresh(SPEC, np.random.default_rng(seed)).params
        assert twin.weights.params.keys() == params.keys()
        for name, value in params.items():
            np.testing.assert_array_equal(twin.weights.params[name], value)
    weights = one.weights
    same_eyes = Policy(SPEC, type(weights)(other.weights.params, *_rest(weights)), 7)
    obs = seen(12, 3)
    np.testing.assert_array_equal(
        latents(untrained_twin(one, 0), obs), latents(untrained_twin(same_eyes, 0), obs)
    )
    assert not np.allclose(latents(untrained_twin(one, 0), obs), latents(one, obs))
    assert not np.allclose(
        latents(untrained_twin(one, 0), obs), latents(untrained_twin(one, 1), obs)
    )
    np.testing.assert_array_equal(untrained_twin(one, 0).weights.obs_mean, weights.obs_mean)


def _rest(weights: object) -> list[object]:
    return [getattr(weights, name) for name in ("obs_mean", "obs_scale", "value_scale")]


def test_a_network_without_a_latent_is_told_of() -> None:
    policy = lively_policy(PolicySpec(SPEC.features, SPEC.actions, MLP))
    with pytest.raises(InputError, match=r"--agent runs/x.*mlp.*--network small, medium or seed"):
        strategist_of(policy, who="--agent runs/x")
