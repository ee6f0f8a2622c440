from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import jax
import numpy as np
import pytest
from msgspec import structs
from policy.makers import lively_policy, play, spec_of

from understudy.core.arrays import NDArray
from understudy.core.config import LearnerConfig
from understudy.core.errors import FileFormatError, NotFinite
from understudy.core.spaces import Discrete
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.experience.episode_replay import EpisodeReplay, Priority
from understudy.learner import hardware
from understudy.learner import trainer as trainers
from understudy.learner.batch import assemble
from understudy.learner.trainer import Trainer
from understudy.learner.update import update
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork, PolicySpec
from understudy.policy.transformer import Transformer
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


def trained(batches: int) -> Trainer:
    trainer = Trainer(SPEC, CONFIG)
    for version in range(batches):
        trainer.train(matches(trainer, version), [], version=version)
    return trainer


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
    trainer = trained(3)  # fitted at 120 and 240 samples, then not before 480
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
        capacity=config.replay_capacity, limit=config.samples_per_insert, priority=priority
    )
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
    (count,) = (leaf for leaf in jax.tree.leaves(trainer._state.optimiser) if leaf.ndim == 0)
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
    trainer = trained(1)
    (episode,) = matches(trainer, 1, count=1)
    observations = episode.observations
    before = player_of(trainer, 1)
    expected = before.act(observations, before.begin(len(observations))).values
    # The same observations again, so the normaliser stays; rewards a hundred times as large.
    again = [replace(e, rewards=100.0 * e.rewards) for e in matches(Trainer(SPEC, CONFIG), 0)]
    trainer._absorb(again, whole=True)
    after = player_of(trainer, 1)
    np.testing.assert_allclose(after.weights.obs_mean, before.weights.obs_mean, rtol=1e-5)
    assert after.weights.value_scale > 10.0 * before.weights.value_scale
    got = after.act(observations, after.begin(len(observations))).values
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


def test_matches_of_rules_alone_teach_what_went_well() -> None:
    """More of what the rules did well than they do themselves, less of what they did badly."""
    trainer = Trainer(SPEC, structs.replace(CONFIG, gamma=0.0))
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
