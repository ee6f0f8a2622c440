from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import jax
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs
from policy.makers import MLP, TRANSFORMER, lively_policy, play, spec_of

from understudy.core.arrays import NDArray, from_npz, to_npz
from understudy.core.config import LearnerConfig
from understudy.core.errors import FileFormatError, NotFinite
from understudy.core.ops import NUMPY
from understudy.core.spaces import Discrete
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.experience.episode_replay import EpisodeReplay, Priority
from understudy.learner import hardware, settling
from understudy.learner import trainer as trainers
from understudy.learner.batch import Batch, assemble
from understudy.learner.maths.update import update
from understudy.learner.trainer import Trainer
from understudy.policy import distributions
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.transformer import Transformer
from understudy.policy.weights import CLIP, Weights, normalise
from understudy.registry.versions import LEARNER, WEIGHTS

SPEC = spec_of()
CONFIG = LearnerConfig(
    epochs=2,
    minibatches=2,
    batch_matches=4,
    replay_matches=0,
    learning_rate=1e-3,
    kl_target=0.02,
    learning_rate_max=3e-3,
)


def player_of(trainer: Trainer, version: int) -> Policy:
    return Policy(SPEC, trainer.weights(), version)


def matches(trainer: Trainer, version: int, *, count: int = 4, length: int = 30) -> list[Episode]:
    """Fresh matches of what the trainer has learned; the first action is the good one."""
    rng = np.random.default_rng(version)
    player = player_of(trainer, version)
    return [
        play(player, rng, length, reward=lambda obs, action: 1.0 - float(action[0]))
        for _ in range(count)
    ]


def trained(batches: int, *, length: int = 30) -> Trainer:
    trainer = Trainer(SPEC, CONFIG)
    for version in range(batches):
        trainer.train(matches(trainer, version, length=length), [], version=version)
    return trainer


def of_matches(episodes: list[Episode], spec: PolicySpec = SPEC) -> Batch:
    return assemble(episodes, spec, columns=4, version=0, max_lag=10)


def test_a_batch_reports_what_a_person_wants_to_know() -> None:
    trainer = Trainer(SPEC, CONFIG)
    metrics = trainer.train(matches(trainer, 0), [], version=0)
    assert metrics.keys() >= {
        "loss", "entropy", "kl", "explained_variance", "behaviour_kl", "behaviour_kl_max",
        "learning_rate",
    }  # fmt: skip
    assert metrics["steps"] == 120.0
    assert np.isfinite(list(metrics.values())).all()


def test_fresh_matches_have_ratio_one_once_the_normaliser_rests() -> None:
    trainer = trained(3)  # fitted at 120 decisions and, there being enough, at 360
    metrics = trainer.train(matches(trainer, 3, count=1), [], version=3)
    assert metrics["behaviour_kl_max"] < 5e-9, "every ratio is 1 within 1e-4"


@pytest.mark.parametrize("precision", ["auto", "bfloat16"])
def test_what_numpy_played_is_trained_in_float32_whatever_the_device(
    precision: Literal["auto", "bfloat16"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "has_gpu", lambda: True)
    products: list[str] = []
    square = np.ones((2, 2), np.float32)

    def noted(*args: Any) -> Any:
        products.append(str(jax.make_jaxpr(jax.numpy.matmul)(square, square)))
        return update(*args)

    monkeypatch.setattr(trainers, "update", noted)
    seed = 41  # of no other test: what was compiled for another would be taken again
    one, other = (
        Trainer(SPEC, structs.replace(CONFIG, seed=seed, precision=each))
        for each in (precision, "float32")
    )
    for version in range(4):
        played = matches(one, version, count=1 if version == 3 else 4)
        metrics = one.train(played, [], version=version)
        other.train(played, [], version=version)
    assert metrics["behaviour_kl_max"] < 5e-9, "every ratio is 1 within 1e-4"
    assert one.snapshot() == other.snapshot()
    assert all("HIGHEST" in each for each in products), "not TensorFloat-32, as a GPU would"


def too_hopeful(priority: Priority, *, batches: int) -> float:
    """How far the value is above the mean result of matches that chance wins (+1) or loses (-1)."""
    config = structs.replace(
        CONFIG, batch_matches=10, replay_matches=20, samples_per_insert=40, epochs=4, gamma=1.0,
        minibatches=1, value_weight=1.0, entropy_weight=0.0, priority=priority,
    )  # fmt: skip
    trainer, chance, rng = Trainer(SPEC, config), np.random.default_rng(0), np.random.default_rng(1)
    replay = EpisodeReplay(
        capacity=config.replay_capacity, limit=config.samples_per_insert, priority=priority,
        gamma=config.gamma, lam=config.target_lambda,
    )  # fmt: skip
    above = []
    for version in range(batches):
        player, new = player_of(trainer, version), []
        for index in range(config.batch_matches):
            outcome = Outcome.VICTORY if chance.random() < 0.2 else Outcome.DEFEAT
            meta = Meta(id=f"{version}-{index}", outcome=outcome, finished_at=0.0)
            score = np.array([1.0 if outcome is Outcome.VICTORY else -1.0], np.float32)
            new.append(play(player, chance, 1, meta=meta, rewards=score))
        above += [float(one.values[0] - one.rewards[0]) for one in new]
        replayed = replay.sample(rng, config.replay_matches, times=config.epochs)
        trainer.train(new, replayed, version=version)
        for one in new:
            replay.insert(one.meta.id, one, samples=config.epochs)
    return float(np.mean(above[len(above) // 2 :]))


@pytest.mark.parametrize("priority", ["uniform", "won", "surprise"])
def test_a_preference_for_some_matches_makes_the_value_no_more_hopeful(priority: Priority) -> None:
    assert too_hopeful(priority, batches=200) == pytest.approx(0.0, abs=0.05)


def test_what_is_rewarded_is_done_more_often() -> None:
    trainer = trained(12)
    start = np.mean([e.actions == 0 for e in matches(Trainer(SPEC, CONFIG), 99)])
    now = np.mean([e.actions == 0 for e in matches(trainer, 99)])
    assert now > start + 0.1


def test_a_segments_value_scale_knows_what_comes_after_its_end() -> None:
    """Live segments are short: with gamma near 1 nearly all of a return lies beyond them."""
    length, gamma, reward = 8, 0.99, 0.1
    worth = reward / (1.0 - gamma)
    config = structs.replace(CONFIG, gamma=gamma)
    player = player_of(Trainer(SPEC, config), 0)
    one = play(player, np.random.default_rng(0), length, reward=lambda obs, action: reward)
    one = replace(one, values=np.full(length, worth, np.float32))
    segment = replace(one, bootstrap=one.observations[0])
    batch = assemble([one], SPEC, columns=4, version=0, max_lag=10)

    def scale(*new: Episode, ring: bool = False) -> float:
        trainer = Trainer(SPEC, config)
        if ring:
            trainer.train(new, [], version=0)
        else:
            trainer.train_items(batch, new=new, learning_rate=1e-3, entropy_weight=0.0)
        return float(trainer.weights().value_scale)

    assert scale(segment) == pytest.approx(worth, rel=1e-4)
    assert scale(one) < worth / 10.0, "that match was over"
    assert scale(segment, ring=True) == pytest.approx(scale(one, ring=True)), "as ever"


def test_going_on_from_a_snapshot_is_going_on() -> None:
    trainer = trained(2)
    copy = Trainer(SPEC, CONFIG)
    copy.restore(trainer.snapshot(), what="version 2")
    assert copy.snapshot() == trainer.snapshot()
    for version in (2, 3):
        batch = matches(trainer, version)
        assert trainer.train(batch, [], version=version) == copy.train(batch, [], version=version)
    assert copy.snapshot() == trainer.snapshot()


def test_a_minibatch_without_a_decision_is_no_step() -> None:
    trainer = trained(1)
    steps = _steps(trainer)
    trainer.train(matches(trainer, 1, count=1, length=1), [], version=1)
    assert _steps(trainer) == steps + CONFIG.epochs
    trainer.train(matches(trainer, 2, count=2, length=1), [], version=2)
    assert _steps(trainer) == steps + CONFIG.epochs + CONFIG.epochs * CONFIG.minibatches


def _steps(trainer: Trainer) -> int:
    (count,) = (leaf for leaf in jax.tree.leaves(trainer.state.optimiser) if leaf.ndim == 0)
    return int(count)


def test_starting_over_and_weights_alone() -> None:
    trainer = trained(2)
    contents = trainer.snapshot()
    fresh = Trainer(SPEC, CONFIG)
    fresh.restore({WEIGHTS: contents[WEIGHTS]}, what="an old model")
    assert fresh.snapshot()[WEIGHTS] == contents[WEIGHTS]
    fresh.restore(None, what="nothing")
    assert fresh.snapshot() == Trainer(SPEC, CONFIG).snapshot()


def test_files_that_do_not_fit_are_refused() -> None:
    trainer = trained(1)
    contents = trainer.snapshot()
    other = Trainer(spec_of(Mlp(widths=(9,))), CONFIG)
    with pytest.raises(FileFormatError, match=r"version 1: .*expected float32"):
        other.restore(contents, what="version 1")
    with pytest.raises(FileFormatError, match="version 1"):
        trainer.restore({**contents, LEARNER: contents[WEIGHTS]}, what="version 1")


@pytest.mark.parametrize("replayed", [False, True])
def test_numbers_that_are_not_finite_leave_the_trainer_as_it_was(replayed: bool) -> None:
    trainer = trained(1)
    before = trainer.snapshot()
    good, poison = matches(trainer, 1, count=2)
    poison = replace(poison, rewards=np.full(30, np.nan, np.float32))
    with pytest.raises(NotFinite, match="not finite"):
        trainer.train([good] if replayed else [good, poison], [poison] * replayed, version=1)
    assert trainer.snapshot() == before
    assert np.isfinite(trainer.train([good], [], version=1)["loss"])


def test_the_learning_rate_follows_how_far_a_batch_moved_the_policy() -> None:
    trainer = Trainer(SPEC, CONFIG)
    start = trainer.learning_rate
    trainer.adapt(3.0 * CONFIG.kl_target)
    assert trainer.learning_rate < start
    lowered = trainer.learning_rate
    trainer.adapt(CONFIG.kl_target)
    assert trainer.learning_rate == lowered
    trainer.adapt(0.3 * CONFIG.kl_target)
    assert trainer.learning_rate == pytest.approx(start)
    for _ in range(30):
        trainer.adapt(0.0)
    assert trainer.learning_rate == CONFIG.learning_rate_max
    for _ in range(30):
        trainer.adapt(1.0)
    assert trainer.learning_rate == CONFIG.learning_rate_min


def test_slowing_down_halves_the_rate_and_survives_a_snapshot() -> None:
    trainer = trained(1)
    rate = trainer.learning_rate
    trainer.slow_down()
    assert trainer.learning_rate == rate / 2.0
    copy = Trainer(SPEC, CONFIG)
    copy.restore(trainer.snapshot(), what="version 1")
    assert copy.learning_rate == trainer.learning_rate


def test_a_new_return_scale_leaves_what_the_value_says() -> None:
    trainer = trained(1, length=60)
    (episode,) = matches(trainer, 1, count=1)
    observations = episode.observations
    before = player_of(trainer, 1)
    expected = before.act(observations, before.begin(len(observations))).values
    # The same observations again, so the normaliser stays; rewards a hundred times as large.
    again = [
        replace(e, rewards=100.0 * e.rewards) for e in matches(Trainer(SPEC, CONFIG), 0, length=60)
    ]
    trainer._absorb(again, of_matches(again), whole=True)
    after = player_of(trainer, 1)
    np.testing.assert_allclose(after.weights.obs_mean, before.weights.obs_mean, rtol=1e-5)
    assert after.weights.value_scale > 10.0 * before.weights.value_scale
    got = after.act(observations, after.begin(len(observations))).values
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


def test_by_advantage_matches_of_rules_alone_teach_what_went_well() -> None:
    """More of what the rules did well than they do themselves, less of what they did badly."""
    trainer = Trainer(SPEC, structs.replace(CONFIG, gamma=0.0, imitation="advantage"))
    rng = np.random.default_rng(0)
    rules = lively_policy(SPEC, 4)

    def by_rules() -> Episode:
        made = play(rules, rng, 30, reward=lambda obs, action: 1.0 - float(action[0]))
        return replace(made, sampled=np.zeros(30, bool), log_probs=np.zeros(30, np.float32))

    shown = []
    for version in range(30):
        batch = [by_rules() for _ in range(4)]
        shown += batch
        trainer.train(batch, [], version=version)
    learned = matches(trainer, 99)
    good, bad = 0, SPEC.actions.options - 1
    for action, sign in ((good, 1.0), (bad, -1.0)):
        of_rules = np.mean([e.actions == action for e in shown])
        assert sign * (np.mean([e.actions == action for e in learned]) - of_rules) > 0.05


# -- rules that see more than the features, and rules that always choose alike -----------------

SHADOW = structs.replace(CONFIG, gamma=0.0, entropy_weight=0.0, epochs=4)
LURE, SAFE = 0, 2


def of_rules(rng: np.random.Generator, actions: NDArray, rewards: NDArray) -> Episode:
    """A match that rules played: nothing is known of how likely their actions were."""
    n = len(actions)
    return Episode(
        meta=Meta(id="rules", outcome=Outcome.VICTORY, finished_at=0.0),
        observations=rng.normal(size=(n, len(SPEC.features))).astype(np.float32),
        actions=actions.astype(np.int32)[:, None],
        log_probs=np.zeros(n, np.float32),
        values=np.zeros(n, np.float32),
        rewards=rewards.astype(np.float32),
        sampled=np.zeros(n, np.bool_),
        versions=np.zeros(n, np.int64),
    )


def informed(rng: np.random.Generator) -> Episode:
    """Rules that see whether the lure is a trap (-3) or not (+1), and else are safe (0)."""
    trap = rng.random(60) < 0.5
    return of_rules(rng, np.where(trap, SAFE, LURE), np.where(trap, 0.0, 1.0))


def always_the_same(rng: np.random.Generator) -> Episode:
    return of_rules(rng, np.full(60, LURE), np.ones(60))


def shadowed(
    config: LearnerConfig, rules: Callable[[np.random.Generator], Episode], *, batches: int
) -> tuple[NDArray, list[dict[str, float]]]:
    """Probabilities [N, options] of what was learned in the shadow of rules, and the reports."""
    trainer, rng = Trainer(SPEC, config), np.random.default_rng(5)
    told = [trainer.train([rules(rng) for _ in range(4)], [], version=v) for v in range(batches)]
    seen = rng.normal(size=(500, len(SPEC.features))).astype(np.float32)
    return np.exp(log_probs_of(SPEC, trainer.weights(), seen)), told


def log_probs_of(spec: PolicySpec, w: Weights, seen: NDArray) -> NDArray:
    """[N, options] under NumPy, of one match from its start."""
    network = spec.network
    first = np.arange(len(seen))[:, None] == 0
    logits, _, _ = network.unroll(
        NUMPY, w.params, normalise(NUMPY, w, seen)[:, None], first, network.memory(NUMPY, 1)
    )
    return np.asarray(distributions.log_probs(NUMPY, spec.actions, logits, None))[:, 0]


def test_by_default_a_policy_in_the_shadow_of_rules_is_their_clone() -> None:
    """Rules get +0.5 a decision. Without what they see the lure is worth -1: the best clone takes
    it as often as they do (-0.5); taking it more often because it went well for them is worse."""
    worth = {}
    for imitation in ("clone", "advantage"):
        config = structs.replace(SHADOW, imitation=imitation)
        chances, _ = shadowed(config, informed, batches=60)
        worth[imitation] = -float(chances[:, LURE].mean())
    assert LearnerConfig().imitation == "clone"
    assert worth["clone"] == pytest.approx(-0.5, abs=0.08)
    assert worth["advantage"] < -0.8


def test_imitation_leaves_entropy_to_learn_with() -> None:
    left = {}
    for share in (0.0, 0.1):
        config = structs.replace(SHADOW, imitation_entropy=share)
        chances, _ = shadowed(config, always_the_same, batches=120)
        left[share] = float(-(chances * np.log(chances)).sum(-1).mean()) / np.log(3.0)
    assert left[0.0] < 0.05, "the test is long enough"
    assert left[0.1] == pytest.approx(0.1, abs=0.03)


def test_passes_end_early_in_the_shadow_of_rules_too() -> None:
    steps = {}
    for stop in (0.0, 0.001):
        config = structs.replace(SHADOW, kl_stop=stop, learning_rate=1e-2, learning_rate_max=1e-2)
        _, told = shadowed(config, always_the_same, batches=3)
        steps[stop] = [metrics["gradient_steps"] for metrics in told]
        assert all(np.isfinite(list(metrics.values())).all() for metrics in told)
    most = float(SHADOW.epochs * SHADOW.minibatches)
    assert steps[0.0] == 3 * [most]
    assert all(1.0 <= count < most for count in steps[0.001])


# -- the normaliser under a policy that has learned something ----------------------------------

WILD = ("scaled", "widening", "count", "absurd", "steady")
ORDINARY = [0, 1, 2, 4]
"""Features that are not heavy-tailed."""
WILD_LENGTH = 60


def wild(rng: np.random.Generator, number: int, *, scale: float, shift: int, odd: int) -> NDArray:
    """Observations [T, F] of match `number`; features change their range at match `shift`, and in
    match `odd` one number is absurd."""
    n, later = WILD_LENGTH, number >= shift
    seen = np.zeros((n, len(WILD)))
    seen[:, 0] = scale * rng.normal(1.0, 1.0, n)
    seen[:, 1] = rng.uniform(0.0, 1.0 if later else 0.001, n)
    seen[:, 2] = rng.integers(0, 41, n) if later else rng.random(n) < 0.02
    seen[:, 3] = rng.normal(size=n)
    seen[:, 4] = 7.0
    if number == odd:
        seen[rng.integers(n), 3] = 1e12
    return seen.astype(np.float32)


def apart(spec: PolicySpec, before: Weights, after: Weights, seen: NDArray) -> float:
    """KL divergence a decision."""
    one, other = (log_probs_of(spec, w, seen) for w in (before, after))
    return float((np.exp(one) * (one - other)).sum(-1).mean())


def wild_matches(
    network: AnyNetwork, *, scale: float, shift: int, odd: int, seed: int, count: int
) -> tuple[list[float], NDArray]:
    """How far each fit moved a policy that learns which features matter, and the clipped share of
    each feature [F] in the last matches."""
    spec = PolicySpec(WILD, Discrete(("no", "yes")), network)
    trainer, rng = Trainer(spec, CONFIG), np.random.default_rng(seed)
    moved, clipped = [], []
    for number in range(count):
        seen = wild(rng, number, scale=scale, shift=shift, odd=odd)
        high = seen[:, 1] > 0.5 * seen[:, 1].max()
        episode = play(Policy(spec, trainer.weights(), number), rng, WILD_LENGTH, observations=seen)
        right = episode.actions[:, 0] == (high ^ (seen[:, 0] > scale))
        episode = replace(episode, rewards=right.astype(np.float32))
        kept, before = trainer._saved_state(), trainer.weights()
        trainer._absorb([episode], of_matches([episode], spec), whole=True)
        w = trainer.weights()
        if number:
            moved.append(apart(spec, before, w, seen))
        trainer._go_back(kept)
        trainer.train([episode], [], version=number)
        w = trainer.weights()
        clipped.append((np.abs((seen - w.obs_mean) * w.obs_scale) > CLIP).mean(0))
    return moved, np.mean(clipped[-10:], axis=0)


def after_failing_sensor(bounds: dict[str, tuple[float, float]]) -> float:
    """The share of right actions after 160 matches; what is right is said by a feature of 0..8
    whose sensor says a million too little in every thirtieth decision."""
    spec = PolicySpec(("height", "speed"), Discrete(("no", "yes")), Mlp(widths=(16,)))
    config = structs.replace(CONFIG, gamma=0.0)
    trainer, rng = Trainer(spec, config, bounds=bounds), np.random.default_rng(1)
    rates = []
    for number in range(40):
        player, batch = Policy(spec, trainer.weights(), number), []
        for _ in range(4):
            seen = rng.uniform(0.0, 8.0, (WILD_LENGTH, 2)).astype(np.float32)
            high = seen[:, 0] > 4.0
            seen[::30, 0] = -1e6
            episode = play(player, rng, WILD_LENGTH, observations=seen)
            right = (episode.actions[:, 0] == high).astype(np.float32)
            rates.append(float(right.mean()))
            batch.append(replace(episode, rewards=right))
        trainer.train(batch, [], version=number)
    return float(np.mean(rates[-20:]))


def test_a_game_with_a_failing_sensor_is_learned_with_declared_bounds() -> None:
    assert after_failing_sensor({}) < 0.6, "the feature is scaled away"
    assert after_failing_sensor({"height": (0.0, 8.0)}) > 0.8


@settings(max_examples=5, deadline=None)
@example(scale=30.0, shift=34, odd=12, seed=0)  # long before the samples have doubled again
@given(
    scale=st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e3]),
    shift=st.sampled_from([1, 5, 20]),
    odd=st.sampled_from([0, 1, 12]),
    seed=st.integers(0, 2**16),
)
def test_whatever_the_features_are_a_fit_leaves_the_policy_what_it_is(
    scale: float, shift: int, odd: int, seed: int
) -> None:
    moved, clipped = wild_matches(MLP, scale=scale, shift=shift, odd=odd, seed=seed, count=50)
    assert max(moved) < 0.05
    assert (clipped[ORDINARY] < 0.01).all(), clipped


def test_a_fit_leaves_a_policy_with_memory_what_it_is() -> None:
    moved, clipped = wild_matches(TRANSFORMER, scale=30.0, shift=5, odd=9, seed=0, count=25)
    assert max(moved) < 0.05
    assert (clipped[ORDINARY] < 0.01).all(), clipped


def test_a_game_whose_features_leave_their_range_is_still_learned() -> None:
    """A feature is within 0..0.001 in the first matches and within 0..1 from then on."""
    config = structs.replace(CONFIG, gamma=0.0, learning_rate=3e-3)
    trainer, rng = Trainer(SPEC, config), np.random.default_rng(0)
    shares = []
    for version in range(70):
        episodes = []
        for _ in range(4):
            seen = rng.random((30, 3)).astype(np.float32)
            seen[:, 0] *= 0.001 if version < 3 else 1.0
            high = seen[:, 0] > (0.0005 if version < 3 else 0.5)
            one = play(player_of(trainer, version), rng, 30, observations=seen)
            right = one.actions[:, 0] == np.where(high, 0, 2)
            episodes.append(replace(one, rewards=right.astype(np.float32)))
            shares.append(float(right.mean()))
        trainer.train(episodes, [], version=version)
    assert np.mean(shares[12:24]) < 0.5, "there is something to learn"
    assert np.mean(shares[-40:]) > 0.8


def test_one_odd_decision_a_match_is_no_reason_for_a_fit_each_time() -> None:
    trainer, rng = Trainer(SPEC, CONFIG), np.random.default_rng(0)
    fits = 0
    for version in range(40):
        seen = rng.normal(size=(60, 3)).astype(np.float32)
        seen[:, 1] = 0.0
        seen[rng.integers(60), 1] = 1000.0
        before = trainer.weights()
        one = play(player_of(trainer, version), rng, 60, observations=seen)
        trainer.train([one], [], version=version)
        fits += not np.array_equal(trainer.weights().obs_mean, before.obs_mean)
    assert fits <= 5, "at 1, 8, 16 and 32 matches"
    assert trainer._statistics.count == 40 * 60, "and nothing was forgotten"


# -- steps that get smaller ---------------------------------------------------------------------


def test_how_far_the_learner_has_settled_survives_a_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settling, "MATCHES", settling.SettlingWindows(100.0, 0.05))
    trainer = trained(11)
    assert len(trainer._settling.moved) and trainer._settling.agreement != 0.0
    trainer._settling = replace(trainer._settling, share=0.1)
    copy = Trainer(SPEC, CONFIG)
    copy.restore(trainer.snapshot(), what="version 11")
    assert copy.snapshot() == trainer.snapshot() and copy._settling.share == 0.1
    for version in (11, 12, 13):
        batch = matches(trainer, version)
        one, other = (each.train(batch, [], version=version) for each in (trainer, copy))
        assert one == other
    assert copy.snapshot() == trainer.snapshot()


def test_the_smaller_the_share_the_smaller_the_steps() -> None:
    trainer = Trainer(SPEC, CONFIG)
    trainer._settling = replace(trainer._settling, share=0.1)
    for _ in range(30):
        trainer.adapt(0.0)
    assert trainer.learning_rate == pytest.approx(0.1 * CONFIG.learning_rate_max)
    trainer.adapt(0.5 * CONFIG.kl_target)
    assert trainer.learning_rate < 0.1 * CONFIG.learning_rate_max, "that is too far by now"
    for _ in range(40):
        trainer.adapt(1.0)
    assert trainer.learning_rate == pytest.approx(0.1 * CONFIG.learning_rate_min)
    trainer.train(matches(trainer, 0), [], version=0)
    assert trainer.entropy_weight == pytest.approx(0.1 * CONFIG.entropy_weight)


def test_a_fit_begins_the_windows_anew() -> None:
    trainer = trained(4)
    trainer._settling = replace(trainer._settling, share=0.5, moved=trainer._settling.start)
    assert len(trainer._settling.start)
    far = [replace(one, observations=one.observations + 100.0) for one in matches(trainer, 4)]
    trainer._absorb(far, of_matches(far), whole=True)
    after = trainer._settling
    assert (len(after.start), len(after.moved), after.decisions, after.share) == (0, 0, 0.0, 0.5)


def test_a_version_that_knows_of_fewer_sums_goes_on() -> None:
    trainer = trained(3)
    contents = trainer.snapshot()
    rest = {
        name: array
        for name, array in from_npz(contents[LEARNER], what=LEARNER).items()
        if not name.startswith("settling")
    }
    rest["statistics.sums"] = rest["statistics.sums"][:3]
    older = Trainer(SPEC, CONFIG)
    older.restore({**contents, LEARNER: to_npz(rest)}, what="an older version")
    assert older.snapshot()[WEIGHTS] == contents[WEIGHTS]
    seen = older._statistics
    assert seen.seen == seen.count == 360.0 and not seen.due
    assert seen.advantages == (0.0, 0.0, 0.0)
    metrics = older.train(matches(older, 3), [], version=3)
    assert np.isfinite(list(metrics.values())).all() and metrics["step_share"] == 1.0
    assert metrics["behaviour_kl_max"] < 5e-9, "nothing was fitted anew"
    again = Trainer(SPEC, CONFIG)
    again.restore(older.snapshot(), what="the next one")
    assert again.snapshot() == older.snapshot()


# -- memory: a cue that only attention can use ------------------------------------------------

CUE_LENGTH, CUE_ACTS = 48, 40
CUE_MATCHES = 64
CUE_CONFIG = LearnerConfig(
    gamma=0.5,
    gae_lambda=0.95,
    clip=0.2,
    max_gradient_norm=0.5,
    value_weight=0.5,
    epochs=4,
    minibatches=2,
    batch_matches=CUE_MATCHES,
    replay_matches=0,
    learning_rate=3e-3,
    learning_rate_max=1e-2,
    kl_target=0.05,
    entropy_weight=0.0,
)


def cue_spec(network: AnyNetwork) -> PolicySpec:
    return PolicySpec(("cue", "act now"), Discrete(("no", "yes")), network)


def cue_matches(
    player: Policy, rng: np.random.Generator, *, explore: bool
) -> tuple[list[Episode], float]:
    """Matches with a cue in the first decision that is asked for from the 40th on; share right."""
    n = CUE_MATCHES
    cues: NDArray = rng.permutation(n) % 2
    obs = np.zeros((CUE_LENGTH, n, 2), np.float32)
    obs[0, :, 0] = 2 * cues - 1
    obs[CUE_ACTS:, :, 1] = 1.0
    memory, rows = player.begin(n), []
    for seen in obs:
        uniforms = rng.random((n, 1), dtype=np.float32) if explore else None
        choice = player.act(seen, memory, uniforms=uniforms)
        memory = choice.memory
        rows.append(choice[:3])
    actions, log_probs, values = (np.stack(column) for column in zip(*rows, strict=True))
    right = actions[..., 0] == cues
    rewards = np.where(right, 1.0, -1.0).astype(np.float32)
    rewards[:CUE_ACTS] = 0.0
    episodes = [
        Episode(
            meta=Meta(id="cue", outcome=Outcome.TIE, finished_at=0.0),
            observations=obs[:, index],
            actions=actions[:, index],
            log_probs=log_probs[:, index],
            values=values[:, index],
            rewards=rewards[:, index],
            sampled=np.ones(CUE_LENGTH, bool),
            versions=np.full(CUE_LENGTH, player.version, np.int64),
        )
        for index in range(n)
    ]
    return episodes, float(right[CUE_ACTS:].mean())


def share_right(network: AnyNetwork, *, most_batches: int) -> float:
    spec, rng = cue_spec(network), np.random.default_rng(0)
    trainer = Trainer(spec, CUE_CONFIG)
    for version in range(most_batches):
        played, share = cue_matches(Policy(spec, trainer.weights(), version), rng, explore=True)
        if share > 0.97:
            break
        trainer.train(played, [], version=version)
    return cue_matches(Policy(spec, trainer.weights(), 0), rng, explore=False)[1]


def test_attention_remembers_a_cue_of_forty_decisions_ago() -> None:
    remembers = Transformer(width=16, heads=2, layers=1, feed=16, window=CUE_LENGTH)
    assert share_right(remembers, most_batches=60) >= 0.9


def test_without_memory_the_cue_is_lost() -> None:
    assert share_right(Mlp(widths=(16,)), most_batches=20) == pytest.approx(0.5, abs=0.01)
