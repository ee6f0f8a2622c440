from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from msgspec import structs
from policy.makers import MLP, TRANSFORMER, aborted, lively_policy, play, spec_of

from understudy.core.arrays import NDArray
from understudy.core.config import LearnerConfig
from understudy.core.ops import NUMPY, Array
from understudy.experience.episode import Episode
from understudy.learner.batch import Batch, assemble
from understudy.learner.maths import descent
from understudy.learner.maths.descent import (
    FixedInputs,
    LearnerState,
    _deal_shuffled,
    optimiser,
)
from understudy.learner.maths.losses import Losses, LossTerms, losses
from understudy.learner.maths.update import _Targets, _targets, _whole, update
from understudy.policy import distributions
from understudy.policy.layers import Params
from understudy.policy.policy import Policy, untrained
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.weights import normalise

CONFIG = LearnerConfig(epochs=2, minibatches=1, batch_matches=4, replay_matches=0)
REINFORCE = structs.replace(CONFIG, algorithm="reinforce")
SPECS = {"mlp": spec_of(MLP), "transformer": spec_of(TRANSFORMER)}


@partial(jax.jit, static_argnums=(0, 1))
def targets(spec: PolicySpec, config: LearnerConfig, params: Params, batch: Batch) -> _Targets:
    return _targets(
        spec, config, *_whole(spec, config, params, batch), batch, lam=config.gae_lambda
    )


def episodes_of(player: Policy, *lengths: int, seed: int = 0) -> list[Episode]:
    rng = np.random.default_rng(seed)
    return [
        play(player, rng, length, masked=True, reward=lambda obs, action: float(obs[0] * action[0]))
        for length in lengths
    ]


def batch_of(player: Policy, episodes: list[Episode], *, columns: int = 4) -> Batch:
    return assemble(episodes, player.spec, columns=columns, version=0, max_lag=10)


def ready(player: Policy, config: LearnerConfig = CONFIG) -> tuple[LearnerState, FixedInputs]:
    params = jax.tree.map(jnp.asarray, player.weights.params)
    w = player.weights
    return (
        LearnerState(params, optimiser(config).init(params), jax.random.PRNGKey(0)),
        FixedInputs(
            w.obs_mean,
            w.obs_scale,
            w.value_scale,
            np.float32(1e-3),
            np.float32(config.entropy_weight),
        ),
    )


def distance(one: dict[str, Array], other: dict[str, Array]) -> float:
    return max(float(np.abs(one[name] - other[name]).max()) for name in one)


@pytest.mark.parametrize("network", [MLP, TRANSFORMER], ids=["mlp", "transformer"])
def test_padding_has_no_influence(network: AnyNetwork) -> None:
    player = lively_policy(spec_of(network))
    batch = batch_of(player, episodes_of(player, 20, 33, 7))
    state, frozen = ready(player)
    expected, report = update(player.spec, CONFIG, state, frozen, batch)
    rng = np.random.default_rng(9)
    empty = batch.valid == 0

    def littered(array: NDArray, rubbish: NDArray) -> NDArray:
        mask = empty.reshape(*empty.shape, *(1 for _ in array.shape[2:]))
        return np.where(mask, rubbish.astype(array.dtype), array)

    filthy = batch._replace(
        obs=littered(batch.obs, rng.normal(0, 50, batch.obs.shape)),
        actions=littered(batch.actions, rng.integers(0, 3, batch.actions.shape)),
        rewards=littered(batch.rewards, rng.normal(0, 50, batch.rewards.shape)),
        log_probs=littered(batch.log_probs, rng.normal(-3, 1, batch.log_probs.shape)),
    )
    got, other = update(player.spec, CONFIG, state, frozen, filthy)
    assert distance(expected.params, state.params) > 1e-3
    assert distance(expected.params, got.params) < 1e-5
    for told, again in zip(jax.tree.leaves(report), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(told, again, atol=1e-4)


def test_more_padding_changes_nothing() -> None:
    player = lively_policy(SPECS["mlp"])
    episodes = episodes_of(player, 20, 33, 7, 12)
    state, frozen = ready(player)
    tight = batch_of(player, episodes)
    loose = Batch(
        *(
            None if a is None else np.pad(a, [(0, 64), (0, 2), *[(0, 0)] * (a.ndim - 2)])
            for a in tight
        )
    )
    loose = loose._replace(legal=loose.legal | (loose.valid == 0)[..., None])
    expected, _ = update(player.spec, CONFIG, state, frozen, tight)
    got, _ = update(player.spec, CONFIG, state, frozen, loose)
    assert distance(expected.params, got.params) < 1e-5


@pytest.mark.parametrize("name", SPECS)
def test_the_ring_is_to_the_last_bit_what_it_is_without_weights(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss as it was before weights were known, against the batch as the ring makes it."""
    player = lively_policy(SPECS[name])
    batch = batch_of(player, episodes_of(player, 20, 33, 7))
    config = structs.replace(CONFIG, minibatches=2)
    state, frozen = ready(player, config)
    got, _ = update(player.spec, config, state, frozen, batch)

    def unweighted(config: LearnerConfig, terms: LossTerms, **others: Any) -> Losses:
        return losses(config, terms._replace(weights=None), **others)

    monkeypatch.setattr(descent, "losses", unweighted)
    plain = jax.jit(update.__wrapped__, static_argnames=("spec", "config"))  # type: ignore[attr-defined]
    wanted, _ = plain(player.spec, config, state, frozen, batch)
    assert distance(wanted.params, state.params) > 1e-3
    for key, array in wanted.params.items():
        np.testing.assert_array_equal(got.params[key], array, err_msg=key)
    assert batch.weights is None


@pytest.mark.parametrize("network", [MLP, TRANSFORMER], ids=["mlp", "transformer"])
def test_every_first_ratio_on_fresh_data_is_one(network: AnyNetwork) -> None:
    player = lively_policy(spec_of(network))
    batch = batch_of(player, episodes_of(player, 20, 33, 7))
    state, frozen = ready(player)
    # One minibatch a pass and a learning rate of nothing: every ratio must stay 1.
    _, still = update(
        player.spec, CONFIG, state, frozen._replace(learning_rate=np.float32(0.0)), batch
    )
    assert float(still.losses.behaviour_kl_max) < 5e-9
    assert float(still.kl) == pytest.approx(0.0, abs=1e-6)
    assert float(still.losses.clip_share) == 0.0
    _, moving = update(player.spec, CONFIG, state, frozen, batch)
    assert float(moving.behaviour_kl_max) < 5e-9, "every ratio is 1 within 1e-4"


def test_what_was_recorded_is_what_is_recomputed_decision_by_decision() -> None:
    player = lively_policy(SPECS["transformer"])
    batch = _seen(player, batch_of(player, episodes_of(player, 20, 33, 7)))
    towards = targets(player.spec, CONFIG, player.weights.params, batch)
    ratios = np.exp(np.asarray(towards.anchor_log_probs) - batch.log_probs)
    assert np.abs((ratios - 1.0) * batch.on_policy).max() < 1e-4


def test_memory_that_was_cut_in_mid_match_is_cut_in_training() -> None:
    player = lively_policy(SPECS["transformer"])
    two = episodes_of(player, 20, 13)
    cuts = np.zeros(33, np.bool_)
    cuts[20] = True
    arrays = ("observations", "actions", "log_probs", "values", "rewards", "sampled", "versions",
              "legal")  # fmt: skip
    both: Any = {name: np.concatenate([getattr(one, name) for one in two]) for name in arrays}
    joined = replace(two[0], **both, cuts=cuts)
    for episode, equal in ((joined, True), (replace(joined, cuts=None), False)):
        batch = _seen(player, batch_of(player, [episode]))
        towards = targets(player.spec, CONFIG, player.weights.params, batch)
        ratios = np.exp(np.asarray(towards.anchor_log_probs) - batch.log_probs)
        assert (np.abs((ratios - 1.0) * batch.on_policy).max() < 1e-4) == equal


def _seen(player: Policy, batch: Batch) -> Batch:
    """As `update` hands it on: normalised, in units of the return scale."""
    scale = player.weights.value_scale
    obs = normalise(NUMPY, player.weights, batch.obs)
    return batch._replace(obs=obs, rewards=batch.rewards / scale)


def slow_targets(config: LearnerConfig, rewards: NDArray, values: NDArray, after: float) -> NDArray:
    """On-policy value targets of one episode; `after` is what follows the last decision."""
    lam = 1.0 if config.algorithm == "reinforce" else config.gae_lambda
    following = [*values[1 : len(rewards)], after]
    out, advantage = np.zeros(len(rewards)), 0.0
    for t in reversed(range(len(rewards))):
        going_on = config.gamma * (t < len(rewards) - 1)
        error = rewards[t] + config.gamma * following[t] - values[t]
        advantage = error + going_on * lam * advantage
        out[t] = values[t] + advantage
    return out


@pytest.mark.parametrize("config", [CONFIG, REINFORCE], ids=["actor_critic", "reinforce"])
def test_what_was_cut_off_bootstraps_and_what_ended_does_not(config: LearnerConfig) -> None:
    player = lively_policy(SPECS["mlp"])
    ended, cut, broken = episodes_of(player, 20, 33, 7)
    cut = replace(cut, bootstrap=np.array([20.0, 70.0, 40.0], np.float32))
    broken = replace(broken, meta=aborted())
    batch = _seen(player, batch_of(player, [ended, cut, broken]))
    network = player.spec.network
    _, values, _ = network.step(NUMPY, player.weights.params, batch.obs, ())
    towards = targets(player.spec, config, player.weights.params, batch)
    found = np.asarray(towards.targets)
    for column, (length, after) in enumerate(
        [(20, 0.0), (33, float(values[33, 1])), (6, float(values[6, 2]))]
    ):
        expected = slow_targets(config, batch.rewards[:length, column], values[:, column], after)
        np.testing.assert_allclose(found[:length, column], expected, rtol=1e-3, atol=1e-4)


def test_decisions_too_old_or_not_sampled_move_the_policy_by_no_ratio() -> None:
    config = structs.replace(CONFIG, imitation_weight=0.0, entropy_weight=0.0)
    player = lively_policy(SPECS["mlp"])
    old, rules = episodes_of(player, 20, 20)
    strange = np.full(20, -9.0, np.float32)
    old = replace(old, log_probs=strange)
    rules = replace(rules, sampled=np.zeros(20, bool), log_probs=strange)
    batch = assemble([old, rules], player.spec, columns=4, version=99, max_lag=10)
    state, frozen = ready(player, config)
    after, report = update(player.spec, config, state, frozen, batch)
    assert distance(_only(after, "policy"), _only(state, "policy")) == 0.0
    assert distance(_only(after, "value"), _only(state, "value")) > 0.0
    assert float(report.behaviour_kl) == float(report.behaviour_kl_max) == 0.0


def _only(state: LearnerState, head: str) -> dict[str, Array]:
    return {name: value for name, value in state.params.items() if name.startswith(head)}


def test_gradients_are_clipped_to_the_norm() -> None:
    gradient = {"w": jnp.array([300.0, 400.0]), "b": jnp.array([0.0])}
    transform = optimiser(CONFIG)
    _, moments = transform.update(gradient, transform.init(gradient))
    adam = next(part for part in jax.tree.leaves(moments, is_leaf=_is_adam) if _is_adam(part))
    # Adam's first moment after one step is a tenth of the gradient that it was handed.
    assert float(optax.tree.norm(adam.mu)) == pytest.approx(0.1 * CONFIG.max_gradient_norm)


def _is_adam(part: Any) -> bool:
    return isinstance(part, optax.ScaleByAdamState)


def test_minibatches_share_the_matches_of_a_batch_evenly() -> None:
    filled = np.arange(16) < 7
    for seed in range(5):
        order = np.asarray(_deal_shuffled(jax.random.PRNGKey(seed), filled, 4))
        assert sorted(order.reshape(-1)) == list(range(16))
        assert sorted(filled[order].sum(1)) == [1, 2, 2, 2]
    shuffled = {
        tuple(np.asarray(_deal_shuffled(jax.random.PRNGKey(s), filled, 4))[0]) for s in range(9)
    }
    assert len(shuffled) > 5


@pytest.mark.parametrize("config", [CONFIG, REINFORCE], ids=["actor_critic", "reinforce"])
def test_updates_make_rewarded_actions_likelier(config: LearnerConfig) -> None:
    player = untrained(SPECS["mlp"], seed=0)
    rng = np.random.default_rng(1)
    batch = batch_of(
        player,
        [
            play(player, rng, 40, reward=lambda obs, action: 1.0 - float(action[0]))
            for _ in range(4)
        ],
    )
    state, frozen = ready(player, config)
    after = state
    for _ in range(5):
        after, _ = update(player.spec, config, after, frozen, batch)

    def chances(params: dict[str, Array]) -> NDArray:
        plain = {name: np.asarray(value) for name, value in params.items()}
        logits, _, _ = MLP.step(NUMPY, plain, batch.obs[:40], ())
        log_p = distributions.log_probs(NUMPY, player.spec.actions, logits, None)
        return np.asarray(np.exp(log_p).mean((0, 1)))

    gained = chances(after.params) - chances(state.params)
    assert gained[0] > 0.005
    assert gained[2] < -0.005
