from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from policy.makers import NETWORKS, lively_policy, play, random_legal, spec_of
from understudy.core.ops import NUMPY
from understudy.core.spaces import ActionSpace, Discrete, MultiBinary
from understudy.learner.maths.jax_ops import JAX
from understudy.policy import distributions, weights
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import AnyNetwork, PolicySpec

each_network = pytest.mark.parametrize("network", NETWORKS.values(), ids=list(NETWORKS))


def in_play_units(policy: Policy, rng: np.random.Generator, length: int) -> Any:
    """Raw features, as a game gives them: nowhere near 0 and 1."""
    return rng.normal(60.0, 20.0, (length, len(policy.spec.features))).astype(np.float32)


@each_network
@pytest.mark.parametrize("space", [Discrete(("a", "b", "c")), MultiBinary(("x", "y"))])
def test_what_was_recorded_can_be_recomputed(network: AnyNetwork, space: ActionSpace) -> None:
    spec = spec_of(network, space)
    player = lively_policy(spec, 1, version=3)
    rng = np.random.default_rng(0)
    episode = play(player, rng, 120, masked=True, observations=in_play_units(player, rng, 120))
    kept = weights.decode(spec, weights.encode(player.weights), what="version 3")
    first = np.zeros((120, 1), bool)
    first[0] = True
    for ops in (NUMPY, JAX):
        logits, values, _ = network.unroll(
            ops,
            kept.params,
            weights.normalise(ops, kept, episode.observations[:, None]),
            first,
            network.memory(ops, 1),
        )
        log_probs = distributions.log_prob(ops, space, logits[:, 0], episode.actions, episode.legal)
        np.testing.assert_allclose(log_probs, episode.log_probs, atol=1e-5, rtol=1e-5)
        np.testing.assert_allclose(
            values[:, 0] * kept.value_scale, episode.values, atol=1e-4, rtol=1e-5
        )


@each_network
def test_without_uniforms_the_likeliest_legal_action_is_taken(network: AnyNetwork) -> None:
    player = lively_policy(spec_of(network), 2)
    rng = np.random.default_rng(0)
    obs, legal = in_play_units(player, rng, 16), random_legal(rng, player.spec, 16)
    choice = player.act(obs, player.begin(16), legal=legal)
    assert np.take_along_axis(legal, choice.actions, axis=1).all()
    for option in range(3):
        draw = np.full((16, 1), (option + 0.5) / 3, np.float32)
        other = player.act(obs, player.begin(16), legal=legal, uniforms=draw)
        assert (other.log_probs <= choice.log_probs + 1e-6).all()


@each_network
def test_a_choice_is_float32_and_leaves_the_policy_alone(network: AnyNetwork) -> None:
    player = lively_policy(spec_of(network), 3)
    before = weights.encode(player.weights)
    memory = player.begin()
    obs = np.full((1, 3), 55.0, np.float32)
    choice = player.act(obs, memory, uniforms=np.full((1, 1), 0.3, np.float32))
    assert {str(a.dtype) for a in (choice.log_probs, choice.values)} == {"float32"}
    again = player.act(obs, memory, uniforms=np.full((1, 1), 0.3, np.float32))
    assert again.log_probs == choice.log_probs
    assert [a.dtype for a in choice.memory] == [a.dtype for a in memory]
    assert weights.encode(player.weights) == before


def test_an_untrained_policy_tries_everything_about_equally() -> None:
    spec = PolicySpec(tuple("abcdefgh"), Discrete(tuple("vwxyz")), NETWORKS["transformer"])
    player = untrained(spec, seed=4)
    obs = np.random.default_rng(0).normal(0.0, 2.0, (64, 8)).astype(np.float32)
    logits, _, _ = spec.network.step(NUMPY, player.weights.params, obs, player.begin(64))
    p = np.exp(distributions.log_probs(NUMPY, spec.actions, logits, None))
    assert p.min() > 0.18
    assert p.max() < 0.22
    assert player.version == 0


def test_the_normaliser_bounds_what_a_network_sees() -> None:
    player = lively_policy(spec_of(), 5)
    wild = np.array([[1e30, -1e30, 0.0]], np.float32)
    seen = weights.normalise(NUMPY, player.weights, wild)
    assert seen.dtype == np.float32
    assert (np.abs(seen) <= 10.0).all()
