"""Learning from segments, against slow references and in both directions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from msgspec import structs
from policy.makers import MLP, lively_policy, spec_of

from understudy.core.arrays import NDArray
from understudy.core.config import LearnerConfig
from understudy.core.errors import NotFinite
from understudy.core.ops import NUMPY, Array
from understudy.learner.hardware import narrow
from understudy.learner.maths.descent import (
    Details,
    FixedInputs,
    LearnerState,
    TrainingBatch,
    UpdateReport,
    descend,
    optimiser,
)
from understudy.learner.maths.segments import Segments, _as_played, _corrected, improve
from understudy.learner.trainer import Trainer
from understudy.policy import distributions
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.strategist import Strategist
from understudy.policy.transformer import Transformer
from understudy.policy.weights import normalise

LENGTH, COLUMNS, KINDS = 12, 8, 3
STRATEGIST = Strategist(
    width=8, heads=2, layers=1, feed=8, window=4, latent=4, lstm=6, head_widths=(8,), opponent=2,
    kinds=KINDS,
)  # fmt: skip
CONFIG = LearnerConfig(  # pinned: these tests are about formulas, not about what is tuned
    epochs=2,
    minibatches=2,
    gamma=0.9,
    gae_lambda=0.8,
    clip=0.2,
    entropy_weight=0.02,
    value_weight=0.5,
    opponent_weight=0.1,
    recognition_weight=0.2,
    precision="float32",
)
ATTENTIVE = Transformer(width=8, heads=2, layers=1, feed=8, window=4)
PLAYERS = {
    "mlp": lively_policy(spec_of(MLP)),
    "attentive": lively_policy(spec_of(ATTENTIVE)),
    "strategist": lively_policy(spec_of(STRATEGIST)),
}
each_network = pytest.mark.parametrize("name", ["mlp", "strategist"])


def segments_of(
    player: Policy, seed: int = 0, *, reward: Any = None, older: bool = False
) -> Segments:
    """Sampled under NumPy, frame by frame; every column has played a while before it begins.

    Matches end (12 %) or are cut off (6 %) at random; opponents do what a feature says. `older`:
    what follows the last row is in it, as other weights than these learn from it.
    """
    rng = np.random.default_rng(seed)
    network, space, w = player.spec.network, player.spec.actions, player.weights
    memory = network.memory(NUMPY, COLUMNS)
    first, rows, kept = np.ones(COLUMNS, np.bool_), [], memory
    for frame in range(-5, LENGTH + 1):
        if frame == 0:
            kept = memory
        raw = rng.normal(50.0, 10.0, (COLUMNS, len(player.spec.features))).astype(np.float32)
        memory = jax.tree.map(
            lambda x: np.where(first.reshape(-1, *(1 for _ in x.shape[1:])), np.zeros_like(x), x),  # noqa: B023
            memory,
        )
        logits, values, memory = network.step(NUMPY, w.params, normalise(NUMPY, w, raw), memory)
        draws = rng.random((COLUMNS, len(space.parts)), dtype=np.float32)
        actions, log_probs = distributions.choose(NUMPY, space, logits, None, draws)
        over, cut = rng.random(COLUMNS) < 0.12, rng.random(COLUMNS) < 0.06
        rewards = rng.normal(0.0, 3.0, COLUMNS) if reward is None else reward(actions[:, 0])
        rows.append(
            {
                "obs": raw,
                "legal": np.ones((COLUMNS, space.options), np.bool_),
                "actions": actions,
                "log_probs": log_probs,
                "values": values,
                "rewards": rewards.astype(np.float32),
                "ongoing": (~(over | cut)).astype(np.float32),
                "first": first,
                "valid": (~cut).astype(np.float32),
                "opponent_actions": (raw[:, -1:] > 50.0).astype(np.int32),
                "opponent_kinds": rng.integers(-1, KINDS + 1, COLUMNS).astype(np.int32),
            }
        )
        first = over | cut
    segment = rows[5:-1]
    return Segments(
        **{field: np.stack([row[field] for row in segment]) for field in segment[0]},
        foretold=np.ones((LENGTH, COLUMNS), np.float32),
        memory=kept,
        bootstrap=rows[-1]["values"],
        **({"next_obs": rows[-1]["obs"], "next_first": rows[-1]["first"]} if older else {}),
    )


def ready(player: Policy, *, rate: float = 1e-3) -> tuple[LearnerState, FixedInputs]:
    params = jax.tree.map(jnp.asarray, player.weights.params)
    w = player.weights
    return (
        LearnerState(params, optimiser(CONFIG).init(params), jax.random.PRNGKey(0)),
        FixedInputs(
            w.obs_mean,
            w.obs_scale,
            w.value_scale,
            np.float32(rate),
            np.float32(CONFIG.entropy_weight),
        ),
    )


def distance(one: dict[str, Array], other: dict[str, Array], prefix: str = "") -> float:
    names = [name for name in one if name.startswith(prefix)]
    assert names
    return max(float(np.abs(np.asarray(one[n]) - np.asarray(other[n])).max()) for n in names)


def slow_advantages(config: LearnerConfig, s: Segments, scale: float) -> NDArray:
    """Generalised advantages, column by column, backwards."""
    found = np.zeros((LENGTH, COLUMNS))
    for column in range(COLUMNS):
        later = 0.0
        for t in reversed(range(LENGTH)):
            value = float(s.values[t, column])
            after = float(s.values[t + 1, column] if t + 1 < LENGTH else s.bootstrap[column])
            if not s.valid[t, column]:
                later = 0.0  # cut off: the value of this decision stands for all that follows
            else:
                goes_on = float(s.ongoing[t, column])
                error = float(s.rewards[t, column]) / scale + config.gamma * goes_on * after - value
                later = error + config.gamma * config.gae_lambda * goes_on * later
            found[t, column] = later
    return found


def test_advantages_are_those_of_a_slow_loop() -> None:
    player = PLAYERS["mlp"]
    s = segments_of(player)
    assert (s.valid == 0).any() and ((s.ongoing == 0) & (s.valid == 1)).any()
    scale = player.weights.value_scale
    got = _as_played(CONFIG, jax.tree.map(jnp.asarray, s), scale).advantages
    np.testing.assert_allclose(got, slow_advantages(CONFIG, s, float(scale)), atol=1e-4)


@each_network
def test_what_older_weights_played_is_corrected_as_a_slow_loop_does(name: str) -> None:
    played = PLAYERS[name]
    s = segments_of(played, older=True)
    assert s.next_obs is not None and s.next_first is not None
    learns = lively_policy(played.spec, 5)
    w, space = learns.weights, played.spec.actions
    obs = normalise(NUMPY, w, np.concatenate([s.obs, s.next_obs[None]]))
    first = np.concatenate([s.first, s.next_first[None]])
    logits, values = played.spec.network.unroll(NUMPY, w.params, obs, first, s.memory)[:2]
    now = distributions.log_prob(NUMPY, space, logits[:-1], s.actions, s.legal)
    targets, advantages = np.zeros((2, LENGTH, COLUMNS))
    for column in range(COLUMNS):
        later, after = 0.0, float(values[-1, column])
        for t in reversed(range(LENGTH)):
            value, following = float(values[t, column]), float(values[t + 1, column])
            goes_on = CONFIG.gamma * float(s.ongoing[t, column])
            ratio = float(np.exp(now[t, column] - s.log_probs[t, column]))
            reward = float(s.rewards[t, column]) / float(w.value_scale)
            if not s.valid[t, column]:
                ratio, reward = 1.0, value
            error = min(ratio, CONFIG.behaviour_clip) * (reward + goes_on * following - value)
            later = error + goes_on * CONFIG.gae_lambda * min(ratio, 1.0) * later
            mixed = CONFIG.gae_lambda * after + (1.0 - CONFIG.gae_lambda) * following
            advantages[t, column] = reward + goes_on * mixed - value
            targets[t, column] = after = value + later
    state, fixed = ready(learns)
    got = _corrected(played.spec, CONFIG, state, fixed, jax.tree.map(jnp.asarray, s))
    np.testing.assert_allclose(got.targets, targets, atol=1e-3)
    np.testing.assert_allclose(got.advantages, advantages, atol=1e-3)
    np.testing.assert_array_equal(got.anchor_log_probs, s.log_probs)


@each_network
def test_how_far_an_update_goes_counts_from_the_policy_that_played(name: str) -> None:
    """Else each update might go as far again as the one before, which its data knows nothing of."""
    played = PLAYERS[name]
    s = segments_of(played, older=True)
    state, fixed = ready(lively_policy(played.spec, 5))
    still = fixed._replace(learning_rate=np.float32(0.0))
    _, report, _ = improve(played.spec, CONFIG, state, still, s)
    moved = float(report.kl)
    assert moved > 0.01 and float(report.losses.clip_share) > 0.0
    assert moved == pytest.approx(float(report.behaviour_kl), rel=1.0)


@each_network
def test_the_correction_changes_nothing_where_the_policy_itself_played(name: str) -> None:
    player = PLAYERS[name]
    s = segments_of(player, older=True)
    state, fixed = ready(player)
    rows = jax.tree.map(jnp.asarray, s)
    got = _corrected(player.spec, CONFIG, state, fixed, rows)
    plain = _as_played(CONFIG, rows, fixed.value_scale)
    for one, two in zip(got, plain, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-3)
    _, report, _ = improve(player.spec, CONFIG, state, fixed, s)
    assert float(report.behaviour_kl) == pytest.approx(0.0, abs=1e-6)
    learns = ready(lively_policy(player.spec, 5))
    _, report, _ = improve(player.spec, CONFIG, *learns, s)
    assert float(report.behaviour_kl) > 0.01 and bool(report.finite)


def slow_losses(config: LearnerConfig, player: Policy, s: Segments) -> dict[str, float]:
    """PPO's loss over all valid decisions, one after the other, in float64."""
    w, space = player.weights, player.spec.actions
    seen = normalise(NUMPY, w, s.obs)
    insight = player.spec.network.unroll_insight(NUMPY, w.params, seen, s.first, s.memory)  # type: ignore[union-attr]
    advantages = slow_advantages(config, s, float(w.value_scale))
    targets = s.values + advantages
    valid = s.valid > 0
    standard = (advantages - advantages[valid].mean()) / (advantages[valid].std() + 1e-6)
    policy, value, entropy, opponent, recognition, kl, clipped = ([] for _ in range(7))
    for t, b in zip(*np.nonzero(valid), strict=True):
        log_p = np.log(_softmax(insight.logits[t, b]))
        ratio = np.exp(log_p[s.actions[t, b, 0]] - s.log_probs[t, b])
        bounded = min(max(ratio, 1 - config.clip), 1 + config.clip)
        policy.append(-min(ratio * standard[t, b], bounded * standard[t, b]))
        value.append(0.5 * (insight.values[t, b] - targets[t, b]) ** 2)
        entropy.append(-(np.exp(log_p) * log_p).sum())
        foreseen = _softmax(insight.opponent_logits[t, b])
        opponent.append(-np.log(foreseen[s.opponent_actions[t, b, 0]]))
        kind = s.opponent_kinds[t, b]
        naming = _softmax(np.asarray(insight.kind_logits)[t, b])
        recognition.append(-np.log(naming[kind]) if 0 <= kind < KINDS else 0.0)
        kl.append(ratio - 1 - np.log(ratio))
        clipped.append(abs(ratio - 1) > config.clip)
    found = {
        "policy": policy,
        "value": value,
        "entropy": entropy,
        "opponent": opponent,
        "recognition": recognition,
        "kl": kl,
        "clip_share": clipped,
    }
    means = {name: float(np.mean(column)) for name, column in found.items()}
    assert len(space.parts) == 1 and 0 < means["clip_share"] < 1
    means["total"] = (
        means["policy"]
        + config.value_weight * means["value"]
        + config.opponent_weight * means["opponent"]
        + config.recognition_weight * means["recognition"]
        - config.entropy_weight * means["entropy"]
    )
    return means


def _softmax(logits: NDArray) -> NDArray:
    odds = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(odds / odds.sum())


def test_losses_are_those_of_a_slow_loop() -> None:
    """Recorded under another policy, so that ratios differ from 1 and some are clipped."""
    player = PLAYERS["strategist"]
    s = segments_of(player)
    noise = np.random.default_rng(3).normal(0.0, 0.3, s.log_probs.shape).astype(np.float32)
    s = s._replace(log_probs=s.log_probs + noise)
    # At a learning rate of nothing, the mean over all steps is the mean over all decisions.
    _, report, squares = improve(player.spec, CONFIG, *ready(player, rate=0.0), s)
    for name, expected in slow_losses(CONFIG, player, s).items():
        assert float(getattr(report.losses, name)) == pytest.approx(expected, abs=2e-4), name
    scale = float(player.weights.value_scale)
    targets = (s.values + slow_advantages(CONFIG, s, scale)) * scale
    assert float(squares) == pytest.approx((targets[s.valid > 0] ** 2).mean(), rel=1e-4)


@each_network
def test_before_the_first_step_the_ratio_is_one_from_the_memory_that_was_kept(name: str) -> None:
    player = PLAYERS[name]
    s = segments_of(player)
    _, report, _ = improve(player.spec, CONFIG, *ready(player), s)
    assert float(report.behaviour_kl_max) < 5e-9, "every ratio is 1 within 1e-4"
    assert float(report.gradient_steps) == 4.0
    if name == "strategist":
        forgetful = s._replace(memory=STRATEGIST.memory(NUMPY, COLUMNS))
        _, report, _ = improve(player.spec, CONFIG, *ready(player), forgetful)
        assert float(report.behaviour_kl_max) > 1e-3


@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["rewarded", "punished"])
def test_what_is_rewarded_becomes_likelier_and_what_is_punished_unlikelier(sign: float) -> None:
    player = PLAYERS["mlp"]
    s = segments_of(player, reward=lambda actions: sign * (actions == 1))
    s = s._replace(values=0.0 * s.values, bootstrap=0.0 * s.bootstrap)  # rewards alone decide
    state, frozen = ready(player, rate=3e-3)
    before = _chances(player, state.params, s)
    for _ in range(5):
        state, _, _ = improve(player.spec, CONFIG, state, frozen, s)
    gained = _chances(player, state.params, s) - before
    assert sign * gained > 0.005


def _chances(player: Policy, params: dict[str, Array], s: Segments) -> float:
    """How likely action 1 is on average."""
    plain = {name: np.asarray(value) for name, value in params.items()}
    logits, _, _ = MLP.step(NUMPY, plain, normalise(NUMPY, player.weights, s.obs), ())
    log_p = distributions.log_probs(NUMPY, player.spec.actions, logits, None)
    return float(np.exp(log_p[..., 1]).mean())


@each_network
def test_a_decision_after_which_a_match_was_cut_off_teaches_nothing(name: str) -> None:
    player = PLAYERS[name]
    s = segments_of(player)
    cut = s.valid == 0
    littered = s._replace(
        rewards=np.where(cut, np.float32(99.0), s.rewards),
        log_probs=np.where(cut, np.float32(-9.0), s.log_probs),
        actions=np.where(cut[..., None], np.int32(1), s.actions),
        opponent_actions=np.where(cut[..., None], np.int32(1), s.opponent_actions),
    )
    clean, _, _ = improve(player.spec, CONFIG, *ready(player), s)
    dirty, report, _ = improve(player.spec, CONFIG, *ready(player), littered)
    assert distance(clean.params, ready(player)[0].params) > 1e-4
    assert distance(clean.params, dirty.params) < 1e-6
    assert np.isfinite(jax.tree.leaves(report)).all()


def test_passes_end_when_the_policy_has_moved_far_enough() -> None:
    player = PLAYERS["mlp"]
    s = segments_of(player)
    reports: dict[float, UpdateReport] = {}
    states: dict[float, LearnerState] = {}
    for stop in (0.0, 0.001):
        one = structs.replace(CONFIG, kl_stop=stop)
        states[stop], reports[stop], _ = improve(player.spec, one, *ready(player, rate=3e-2), s)
    steps = {stop: float(report.gradient_steps) for stop, report in reports.items()}
    assert 1.0 <= steps[0.001] < steps[0.0] == 4.0
    assert distance(states[0.001].params, ready(player)[0].params) > 0.0
    assert float(reports[0.001].kl) < float(reports[0.0].kl)
    assert np.isfinite(jax.tree.leaves(reports[0.001])).all()


def material_of(player: Policy, s: Segments) -> TrainingBatch:
    rng = np.random.default_rng(1)
    noise = rng.normal(size=s.valid.shape).astype(np.float32)
    material = TrainingBatch(
        obs=normalise(NUMPY, player.weights, s.obs),
        legal=s.legal,
        actions=s.actions,
        first=s.first,
        anchor_log_probs=s.log_probs,
        behaviour_log_probs=s.log_probs,
        targets=s.values + noise,
        advantages=noise,
        on_policy=np.ones_like(noise),
        imitated=np.zeros_like(noise),
        valid=np.ones_like(noise),
        foretold=np.zeros_like(noise),
        opponent_actions=s.opponent_actions,
        opponent_kinds=s.opponent_kinds,
    )
    on_device: TrainingBatch = jax.tree.map(jnp.asarray, material)
    return on_device


@pytest.mark.parametrize("name", ["mlp", "attentive"])
def test_minibatches_are_whole_segments_for_whoever_remembers(name: str) -> None:
    """At a learning rate of nothing, a step's value loss tells which decisions were in it."""
    player = PLAYERS[name]
    s = segments_of(player)
    material = material_of(player, s)
    memory = jax.tree.map(jnp.asarray, s.memory)
    config = structs.replace(CONFIG, epochs=2, minibatches=COLUMNS)

    @jax.jit
    def steps(state: LearnerState) -> tuple[LearnerState, Details]:
        return descend(player.spec, config, state, ready(player, rate=0.0)[1], material, memory)

    _, details = steps(ready(player)[0])
    errors = 0.5 * np.square(material.targets - s.values)
    got = np.asarray(details.losses.value) * LENGTH
    assert got.shape == (2 * COLUMNS,)
    for one_pass in (got[:COLUMNS], got[COLUMNS:]):
        assert one_pass.sum() == pytest.approx(errors.sum(), rel=1e-3), "all were seen once"
        whole = np.allclose(np.sort(one_pass), np.sort(errors.sum(0)), rtol=1e-3)
        assert whole == (name == "attentive")
    assert not np.allclose(got[:COLUMNS], got[COLUMNS:]), "every pass has an order of its own"


def test_what_was_remembered_is_a_constant() -> None:
    """It matters to what is learned, and nothing is learned by way of it."""
    player = PLAYERS["attentive"]
    s = segments_of(player)
    material = material_of(player, s)
    *caches, held = jax.tree.map(jnp.asarray, s.memory)
    state = ready(player)[0]
    config = structs.replace(CONFIG, epochs=1, minibatches=1)

    @jax.jit
    def learned(caches: list[Array]) -> Array:
        memory = (*caches, held)
        after, _ = descend(
            player.spec, config, state, ready(player, rate=1e-2)[1], material, memory
        )
        return after.params["embed.w"].sum()

    other = [cache + 0.5 for cache in caches]
    assert abs(float(learned(caches) - learned(other))) > 1e-6
    for gradient in jax.jit(jax.grad(learned))(caches):
        assert np.abs(np.asarray(gradient)).max() == 0.0


def test_narrow_computing_is_close_and_parameters_stay_wide() -> None:
    player = PLAYERS["strategist"]
    s = segments_of(player)
    config = structs.replace(CONFIG, precision="bfloat16")
    assert narrow(config) and not narrow(CONFIG)
    assert narrow(structs.replace(CONFIG, precision="auto")) == (jax.default_backend() == "gpu")
    s16 = s._replace(
        memory=jax.tree.map(
            lambda x: jnp.asarray(x, jnp.bfloat16) if x.ndim > 2 else jnp.asarray(x), s.memory
        )
    )
    state, report, _ = improve(player.spec, config, *ready(player), s16)
    wide, exact, _ = improve(player.spec, CONFIG, *ready(player), s)
    for leaf in jax.tree.leaves((state.params, state.optimiser)):
        assert leaf.dtype in (jnp.float32, jnp.int32)
    assert 5e-9 < float(report.behaviour_kl) < float(report.behaviour_kl_max) < 0.01
    assert float(report.losses.value) == pytest.approx(float(exact.losses.value), rel=0.1)
    assert 0.0 < distance(state.params, wide.params) < 0.01


def test_opponents_are_foreseen_when_that_is_asked_for_and_only_then() -> None:
    player = PLAYERS["strategist"]
    s = segments_of(player)
    state, frozen = ready(player, rate=1e-2)
    told = []
    for _ in range(25):
        state, report, _ = improve(player.spec, CONFIG, state, frozen, s)
        told.append(float(report.losses.opponent))
    assert told[-1] < 0.5 * told[0]
    start, _ = ready(player)
    silent = structs.replace(CONFIG, opponent_weight=0.0)
    after, _, _ = improve(player.spec, silent, start, frozen, s)
    assert distance(after.params, start.params, "opponent.") == 0.0
    assert distance(after.params, start.params, "policy.") > 0.0


def test_opponents_are_named_when_that_is_asked_for_and_only_then() -> None:
    player = PLAYERS["strategist"]
    s = segments_of(player)
    s = s._replace(opponent_kinds=(s.obs[..., -1] > 50.0).astype(np.int32))
    state, frozen = ready(player, rate=1e-2)
    told = []
    for _ in range(25):
        state, report, _ = improve(player.spec, CONFIG, state, frozen, s)
        told.append(float(report.losses.recognition))
    assert told[-1] < 0.5 * told[0]
    start, _ = ready(player)
    for config, kinds in (
        (structs.replace(CONFIG, recognition_weight=0.0), s.opponent_kinds),
        (CONFIG, np.full_like(s.opponent_kinds, -1)),
        (CONFIG, np.full_like(s.opponent_kinds, KINDS)),
    ):
        after, _, _ = improve(player.spec, config, start, frozen, s._replace(opponent_kinds=kinds))
        assert distance(after.params, start.params, "kind.") == 0.0
        assert distance(after.params, start.params, "policy.") > 0.0


# --- the trainer around it -----------------------------------------------------------------------


def trained(trainer: Trainer, spec: PolicySpec, *seeds: int) -> list[dict[str, float]]:
    told = []
    for seed in seeds:
        player = Policy(spec, trainer.weights(), 0)
        s = segments_of(player, seed)
        state, report, square = improve(spec, CONFIG, trainer.state, trainer.fixed_inputs, s)
        told.append(trainer.accept(state, report))
        trainer.absorb_returns(LENGTH * COLUMNS, return_square=float(square))
        trainer.adapt(told[-1]["kl"])
    return told


def test_everything_that_learning_goes_on_from_is_in_a_snapshot() -> None:
    spec = spec_of(STRATEGIST)
    one, other = Trainer(spec, CONFIG), Trainer(spec, CONFIG)
    trained(one, spec, 1, 2)
    other.restore(one.snapshot(), what="version 2")
    assert other.snapshot() == one.snapshot() and other.learning_rate == one.learning_rate
    assert trained(one, spec, 3, 4) == trained(other, spec, 3, 4)
    assert other.snapshot() == one.snapshot()


def test_a_state_with_a_number_that_is_not_finite_is_not_accepted() -> None:
    spec = spec_of(MLP)
    trainer = Trainer(spec, CONFIG)
    s = segments_of(Policy(spec, trainer.weights(), 0), 1)
    before = trainer.state
    state, report, _ = improve(spec, CONFIG, before, trainer.fixed_inputs, s)
    for bad in (report._replace(finite=np.bool_(False)), report._replace(kl=np.float32("nan"))):
        with pytest.raises(NotFinite, match="not finite"):
            trainer.accept(state, bad)
        assert trainer.state is before
    metrics = trainer.accept(state, report)
    assert trainer.state is state and metrics["kl"] == float(report.kl)


@pytest.mark.parametrize("network", [MLP, STRATEGIST], ids=["mlp", "strategist"])
def test_a_new_return_scale_does_not_change_what_is_expected(network: AnyNetwork) -> None:
    spec = spec_of(network)
    trainer = Trainer(spec, CONFIG)
    obs = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    trainer.absorb_returns(200, return_square=9.0)
    assert float(trainer.weights().value_scale) == pytest.approx(3.0)

    def expected() -> tuple[NDArray, NDArray]:
        w = trainer.weights()
        memory = network.memory(NUMPY, 4)
        logits, values, _ = network.step(NUMPY, w.params, normalise(NUMPY, w, obs), memory)
        return np.asarray(values * w.value_scale), np.asarray(logits)

    values, logits = expected()
    trainer.absorb_returns(100, return_square=1e4)
    assert float(trainer.weights().value_scale) == pytest.approx(3.0), "too soon for another fit"
    trainer.absorb_returns(100, return_square=1e4)
    assert float(trainer.weights().value_scale) == pytest.approx(np.sqrt((1800 + 2e6) / 400))
    after, same = expected()
    np.testing.assert_allclose(after, values, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(same, logits, atol=1e-6)
    w = trainer.weights()
    assert (w.obs_mean == 0).all() and (w.obs_scale == 1).all(), "observations stay as they are"
