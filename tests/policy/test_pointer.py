"""A pointer scores what it sees: at any place alike, nowhere else, and under both engines alike."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest

from policy.makers import aborted, play
from understudy.core.arrays import NDArray
from understudy.core.config import LearnerConfig
from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY, Array
from understudy.core.spaces import Discrete
from understudy.experience.episode import Episode
from understudy.learner.maths.jax_ops import JAX
from understudy.learner.trainer import Trainer
from understudy.policy import distributions
from understudy.policy.mlp import Mlp
from understudy.policy.network import raw_features
from understudy.policy.pointer import UNSEEN, Pointer
from understudy.policy.policy import Policy
from understudy.policy.presets import network
from understudy.policy.spec import PolicySpec

SMALL = Pointer(slots=3, slot_width=3, places=8, kinds=2, widths=(16, 16))
REST = 2
INPUTS, OPTIONS = SMALL.slots * SMALL.slot_width + REST, 17
EMPTY = -1
SPEC = PolicySpec(
    tuple(f"f{index}" for index in range(INPUTS)),
    Discrete(tuple(f"o{index}" for index in range(OPTIONS))),
    SMALL,
)


def lively(seed: int = 0) -> dict[str, NDArray]:
    rng = np.random.default_rng(seed)
    return {
        name: (value + 0.3 * rng.standard_normal(value.shape)).astype(np.float32)
        for name, value in SMALL.init(rng, INPUTS, OPTIONS).items()
    }


def observed(places: list[list[int]], seed: int = 0) -> NDArray:
    """Observations [B, F] with these places in their slots, and chance in the rest."""
    rng = np.random.default_rng(seed)
    obs = rng.random((len(places), INPUTS), dtype=np.float32)
    obs[:, : 9 : SMALL.slot_width] = np.array(places, np.float32) / (SMALL.places - 1)
    return obs


def random_places(rng: np.random.Generator, count: int) -> list[list[int]]:
    """Different places in each observation, and some empty slots at the end."""
    rows = [rng.permutation(SMALL.places)[: SMALL.slots].tolist() for _ in range(count)]
    return [row[: 1 + index % 3] + [EMPTY] * (2 - index % 3) for index, row in enumerate(rows)]


def logits_of(params: dict[str, NDArray], obs: NDArray) -> NDArray:
    logits: NDArray = SMALL.step(NUMPY, params, obs, ())[0]
    return logits


def test_an_option_is_the_score_of_the_slot_that_names_its_place() -> None:
    """Against the same network written slowly, one slot and one option at a time."""
    params, places = lively(), random_places(np.random.default_rng(1), 12)
    obs = observed(places)
    logits, values, memory = SMALL.step(NUMPY, params, obs, ())
    assert (logits.shape, values.shape, memory) == ((12, OPTIONS), (12,), ())
    for row, named in enumerate(places):
        rest = obs[row, 9:] @ params["slot.rest.w"] + params["slot.rest.b"]
        expected = np.tile(params["unseen"], SMALL.places)
        described = []
        for slot, place in enumerate(named):
            own = obs[row, 3 * slot + 1 : 3 * slot + 3]
            x = np.maximum(own @ params["slot.own.w"] + rest + params["slot.rank"][slot], 0)
            x = np.maximum(x @ params["slot.1.w"] + params["slot.1.b"], 0)
            if place != EMPTY:
                described.append(x)
                expected[2 * place : 2 * place + 2] = x @ params["policy.w"] + params["policy.b"]
        nothing = np.mean(described, 0) @ params["nothing.w"] + params["nothing.b"]
        np.testing.assert_allclose(logits[row], [*nothing, *expected], rtol=1e-4, atol=1e-5)


def test_every_place_is_found_by_its_id_even_in_half_precision() -> None:
    pointer = Pointer(slots=1, slot_width=2, places=256, kinds=1, widths=(4,))
    params = pointer.init(np.random.default_rng(0), 3, 257)
    obs = np.zeros((256, 3), np.float32)
    obs[:, 0] = np.arange(256, dtype=np.float32) / np.float32(255)
    half = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.bfloat16), (params, obs))
    for logits in (
        pointer.step(NUMPY, params, obs, ())[0],
        np.asarray(pointer.step(JAX, half[0], half[1], ())[0], np.float32),
    ):
        np.testing.assert_array_equal(logits[:, 1:].argmax(-1), np.arange(256))


def test_a_slot_is_worth_as_much_at_any_place() -> None:
    params = lively()
    here, there = observed([[1, 2, 3]]), observed([[6, 0, 5]])
    one, two = logits_of(params, here)[0], logits_of(params, there)[0]
    assert one[0] == two[0]
    for place, other in ((1, 6), (2, 0), (3, 5)):
        np.testing.assert_array_equal(
            one[1 + 2 * place : 3 + 2 * place], two[1 + 2 * other : 3 + 2 * other]
        )


def test_both_engines_and_both_ways_say_the_same() -> None:
    params, rng = lively(), np.random.default_rng(2)
    obs = np.stack([observed(random_places(rng, 6), seed) for seed in range(5)])
    first = np.zeros((5, 6), np.bool_)
    logits, values, _ = SMALL.unroll(NUMPY, params, obs, first, ())
    compiled = jax.jit(lambda p, o, f: SMALL.unroll(JAX, p, o, f, ()))(params, obs, first)
    np.testing.assert_allclose(compiled[0], logits, atol=1e-5)
    np.testing.assert_allclose(compiled[1], values, atol=1e-5)
    for obs_t, logits_t, values_t in zip(obs, logits, values, strict=True):
        stepped = SMALL.step(NUMPY, params, obs_t, ())
        np.testing.assert_allclose(stepped[0], logits_t, atol=1e-5)
        np.testing.assert_allclose(stepped[1], values_t, atol=1e-5)
        assert stepped[0].dtype == stepped[1].dtype == np.float32


def test_a_fresh_policy_tries_what_is_seen_and_now_and_then_the_rest() -> None:
    pointer = network("pointer")
    params = pointer.init(np.random.default_rng(0), 28, 513)
    obs = np.random.default_rng(1).random((20, 28), dtype=np.float32)
    obs[:, :25:5] = np.arange(5, dtype=np.float32) * 40 / 255
    logits, _, _ = pointer.step(NUMPY, params, obs, ())
    odds = np.exp(
        distributions.log_probs(NUMPY, Discrete(tuple(map(str, range(513)))), logits, None)
    )
    seen = np.concatenate([[0], *([1 + 80 * slot, 2 + 80 * slot] for slot in range(5))])
    assert np.ptp(logits[:, seen]) < 0.35
    assert 0.02 < 1.0 - odds[:, seen].sum(-1).max() < 0.2
    assert (logits[:, 1 + 2 * 7] == UNSEEN).all()


def test_gradients_reach_every_parameter() -> None:
    obs = observed(random_places(np.random.default_rng(3), 30))
    weights = np.random.default_rng(2).standard_normal((30, OPTIONS)).astype(np.float32)

    def scalar(params: dict[str, Array]) -> Array:
        logits, values, _ = SMALL.step(JAX, params, obs, ())
        return (logits * weights).sum() + jnp.square(values).sum()

    gradients = jax.jit(jax.grad(scalar))(lively())
    assert [name for name, value in gradients.items() if not np.abs(value).max() > 1e-4] == []


def test_a_spec_survives_its_file_and_the_preset_fits_territory() -> None:
    assert msgspec.json.decode(msgspec.json.encode(SPEC), type=PolicySpec) == SPEC
    params = network("pointer").init(None, 28, 513)
    assert params.keys() == network("pointer").init(np.random.default_rng(0), 28, 513).keys()


@pytest.mark.parametrize(
    ("settings", "inputs", "outputs", "named"),
    [
        ({}, 25, 513, "network.slots"),
        ({}, 28, 512, "network.places"),
        ({"slot_width": 1}, 28, 513, "network.slot_width"),
        ({"widths": ()}, 28, 513, "network.widths"),
    ],
)
def test_what_does_not_fit_is_named(
    settings: dict[str, object], inputs: int, outputs: int, named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        msgspec.convert(settings | {"type": "pointer"}, Pointer).init(None, inputs, outputs)


# --- learning ----------------------------------------------------------------------------------

CONFIG = LearnerConfig(
    epochs=2, minibatches=2, batch_matches=4, replay_matches=0, learning_rate=3e-3,
    learning_rate_max=3e-3, kl_target=0.02, gamma=0.0,
)  # fmt: skip


def matches(trainer: Trainer, version: int) -> list[Episode]:
    """The second slot is the good one, wherever it lies; the first kind is the better one."""
    rng = np.random.default_rng(version)
    policy = Policy(SPEC, trainer.weights(), version)

    def reward(obs: NDArray, action: NDArray) -> float:
        good = 1 + 2 * round(float(obs[SMALL.slot_width]) * (SMALL.places - 1))
        return float(action[0] == good)

    episodes = []
    for _ in range(4):
        rows = [rng.permutation(SMALL.places)[: SMALL.slots].tolist() for _ in range(60)]
        obs = observed(rows, int(rng.integers(2**31)))
        obs[:, 9:] = 300.0 + 40.0 * obs[:, 9:]
        episodes.append(play(policy, rng, 60, reward=reward, observations=obs, meta=aborted()))
    return episodes


def test_what_is_learned_at_some_places_holds_at_all_and_slots_stay_as_they_are() -> None:
    trainer = Trainer(SPEC, CONFIG)
    start = np.mean([episode.rewards for episode in matches(trainer, 999)])
    for version in range(25):
        trainer.train(matches(trainer, version), [], version=version)
    now = np.mean([episode.rewards for episode in matches(trainer, 999)])
    assert start < 0.3
    assert now > 0.7
    weights = trainer.weights()
    raw = list(raw_features(SMALL))
    assert raw == list(range(9))
    assert (weights.obs_mean[raw] == 0).all() and (weights.obs_scale[raw] == 1).all()
    assert (weights.obs_mean[9:] > 200).all() and (weights.obs_scale[9:] < 0.2).all()


def test_a_new_fit_of_the_normaliser_does_not_change_what_is_said() -> None:
    trainer = Trainer(SPEC, CONFIG)
    for version in range(3):
        trainer.train(matches(trainer, version), [], version=version)
    obs = matches(trainer, 3)[0].observations
    before = Policy(SPEC, trainer.weights(), 3).act(obs, ())
    scale = trainer.weights().obs_scale.copy()
    trainer.absorb(np.concatenate([obs + 7.0] * 60), return_square=4.0)
    after = Policy(SPEC, trainer.weights(), 3).act(obs, ())
    assert (trainer.weights().obs_scale[9:] != scale[9:]).all()
    np.testing.assert_allclose(after.log_probs, before.log_probs, atol=2e-4)
    np.testing.assert_allclose(after.values, before.values, atol=2e-3)


def test_other_networks_have_everything_normalised() -> None:
    assert raw_features(Mlp()) == ()
