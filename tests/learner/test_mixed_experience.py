"""Rules' matches and own ones together: what is imitated, what is learned, and where traces end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from understudy.core.arrays import NDArray, from_npz, to_npz
from understudy.core.config import LearnerConfig
from understudy.core.spaces import Discrete
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.learner.batch import assemble
from understudy.learner.maths.update import _targets, _without_far, update
from understudy.learner.settling import BESIDE_RULES, Settling
from understudy.learner.trainer import Trainer
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.registry.versions import LEARNER

SPEC = PolicySpec(("x", "y"), Discrete(("left", "right")), Mlp(widths=(8,)))
CONFIG = structs.replace(  # one for all, so that little is compiled
    LearnerConfig(),
    batch_matches=4,
    replay_matches=0,
    minibatches=4,
    learning_rate=3e-3,
    learning_rate_max=3e-3,
    kl_target=0.05,
    entropy_weight=0.0,
    imitation_fade_matches=8.0,
    anchor_kl=0.02,
)
SEEN = np.random.default_rng(5).normal(size=(200, 2)).astype(np.float32)


def right(trainer: Trainer) -> float:
    """The mean probability of the action `right`."""
    policy = Policy(SPEC, trainer.weights(), 1)
    chosen = policy.act(SEEN, policy.begin(len(SEEN)))
    p = np.exp(chosen.log_probs)
    return float(np.where(chosen.actions[:, 0] == 1, p, 1.0 - p).mean())


def match(trainer: Trainer, rng: np.random.Generator, own: NDArray, *, good: int) -> Episode:
    """Rules go left; each action of the policy (`own` [T]) is rewarded if it is `good`."""
    seen = rng.normal(size=(len(own), 2)).astype(np.float32)
    policy = Policy(SPEC, trainer.weights(), 1)
    chosen = policy.act(seen, policy.begin(len(own)), uniforms=rng.random((len(own), 1)))
    actions = np.where(own, chosen.actions[:, 0], 0)
    windows = np.cumsum(np.diff(own.astype(int), prepend=0) == 1) * own
    rewards = np.where(own, np.where(actions == good, 1.0, -1.0), 0.0)
    mixed = own.any() and not own.all()
    return Episode(
        meta=Meta(id="1", outcome=Outcome.VICTORY, finished_at=0.0, cameo_coin=0.5),
        observations=seen,
        actions=actions[:, None].astype(np.int32),
        log_probs=np.where(own, chosen.log_probs, 0.0).astype(np.float32),
        values=chosen.values.astype(np.float32),
        rewards=rewards.astype(np.float32),
        sampled=own,
        versions=np.ones(len(own), np.int64),
        cameos=windows.astype(np.int16) if mixed else None,
    )


RULES, OWN = np.zeros(40, np.bool_), np.ones(40, np.bool_)
WINDOW = (np.arange(40) >= 10) & (np.arange(40) < 30)


def after_shadow(batches: int = 12) -> tuple[Trainer, np.random.Generator]:
    trainer, rng = Trainer(SPEC, CONFIG), np.random.default_rng(3)
    for _ in range(batches):
        trainer.train([match(trainer, rng, RULES, good=1) for _ in range(4)], [], version=1)
    return trainer, rng


def test_after_shadow_rewarded_actions_win_over_the_rules_beside_them() -> None:
    for own, good, batches in ((OWN, 1, 70), (WINDOW, 1, 40), (OWN, 0, 20)):
        trainer, rng = after_shadow()
        assert right(trainer) < 0.2
        for _ in range(batches):
            batch = [match(trainer, rng, one, good=good) for one in (RULES, own, own, RULES)]
            trainer.train(batch, [], version=1, by_evidence=True)
        assert right(trainer) > 0.6 if good else right(trainer) < 0.2


def test_leaving_shadow_starts_steps_over_and_a_snapshot_goes_on_alike() -> None:
    """With few matches a batch steps stay smaller than full ones, and do not settle."""
    for count, share in ((4, 1.0), (1, BESIDE_RULES)):
        trainer, rng = after_shadow(2)
        trainer.learning_rate = CONFIG.learning_rate_min
        copy = Trainer(SPEC, CONFIG)
        copy.restore(trainer.snapshot(), what="a version")
        first = [match(trainer, rng, OWN, good=1) for _ in range(count)]
        told = trainer.train(first, [], version=1, by_evidence=True)
        assert told["step_share"] == share
        assert told["learning_rate"] >= CONFIG.learning_rate * share / 1.5
        assert told["learning_rate"] <= CONFIG.learning_rate_max * share
        assert told == copy.train(first, [], version=1, by_evidence=True)
        later = [match(trainer, rng, RULES, good=1)]
        after = trainer.train(later, [], version=1, by_evidence=True)
        assert after == copy.train(later, [], version=1, by_evidence=True)


def test_one_small_batch_leaves_the_steps_of_full_ones_as_they_are() -> None:
    trainer, rng = after_shadow(2)

    def trained(count: int) -> dict[str, float]:
        batch = [match(trainer, rng, OWN, good=1) for _ in range(count)]
        return trainer.train(batch, [], version=1, by_evidence=True)

    before = trained(4)
    trainer.learning_rate = CONFIG.learning_rate_max
    few = trained(1)
    assert few["step_share"] == BESIDE_RULES
    assert few["learning_rate"] == CONFIG.learning_rate_max * BESIDE_RULES
    assert trainer.learning_rate == CONFIG.learning_rate_max
    assert trained(4)["step_share"] == before["step_share"] == 1.0
    trainer.learning_rate = small = CONFIG.learning_rate_min * BESIDE_RULES
    trainer.slow_down()
    assert trainer.learning_rate == small, "slowing down never makes steps larger"


def test_faults_of_a_policy_that_always_played_add_up_to_no_shadow() -> None:
    """In mode `learn` a fault gives single decisions to the fallback."""
    trainer, rng = Trainer(SPEC, CONFIG), np.random.default_rng(3)
    trainer._settling = Settling(0.5)
    faults = np.arange(40) != 7
    for _ in range(41):  # more than a match of faults
        trainer._count_players([match(trainer, rng, faults, good=1)], by_evidence=False)
    assert trainer._imitated > 1.0 and not trainer._mixed
    told = trainer.train([match(trainer, rng, OWN, good=1)], [], version=1)
    assert told["step_share"] == 0.5


def test_a_run_from_before_players_were_counted_leaves_shadow_once() -> None:
    trainer, rng = after_shadow(2)
    trainer._settling = Settling(0.1)
    files = trainer.snapshot()
    rest = from_npz(files[LEARNER], what="a version")
    del rest["players"]
    copy = Trainer(SPEC, CONFIG)
    copy.restore({**files, LEARNER: to_npz(rest)}, what="an old version")
    shares = []
    for one in (OWN, RULES, OWN):
        batch = [match(copy, rng, one, good=1) for _ in range(4)]
        shares.append(copy.train(batch, [], version=1, by_evidence=True)["step_share"])
        copy.restore(copy.snapshot(), what="its own version")
        copy._settling = replace(copy._settling, share=0.1)
    assert shares == [0.1, 1.0, 0.1]


def test_what_is_far_from_the_policy_does_not_move_it() -> None:
    """With few matches a batch less is far."""
    for count, apart, is_far in ((4, 2.0, True), (4, 0.7, False), (1, 0.7, True), (1, 0.0, False)):
        trainer, rng = after_shadow(2)
        for _ in range(2):  # until imitation has faded
            trainer.train([match(trainer, rng, OWN, good=1)] * 4, [], version=1, by_evidence=True)
        episode = match(trainer, rng, OWN, good=1)
        other = with_log_probs(episode, log_probs=episode.log_probs - apart)
        loss = trainer.train([other] * count, [], version=1, by_evidence=True)["policy_loss"]
        assert (loss == 0.0) is is_far


def test_a_decision_that_counts_in_part_adds_that_part_to_the_distance() -> None:
    """As those of the rules in a served game, while imitation fades."""
    trainer, rng = Trainer(SPEC, CONFIG), np.random.default_rng(2)
    episodes = [match(trainer, rng, OWN, good=1) for _ in range(2)]
    batch = assemble(episodes, SPEC, columns=2, version=1, max_lag=None)
    share, limit = 0.25 * batch.on_policy, np.expm1(0.5) - 0.5
    for apart, trains in ((0.45, True), (0.55, False)):
        log_probs = batch.log_probs + np.array([apart, 0.0], np.float32)
        kept = _without_far(batch._replace(on_policy=share), log_probs, limit=limit).on_policy
        np.testing.assert_array_equal(kept, share * [trains, True])


def with_log_probs(episode: Episode, *, log_probs: NDArray) -> Episode:
    return Episode(**{**episode.__dict__, "log_probs": log_probs.astype(np.float32)})


def test_the_policy_stays_near_the_champion() -> None:
    moved = []
    for near in (True, False):
        trainer, rng = Trainer(SPEC, CONFIG), np.random.default_rng(4)
        champion = trainer.weights()
        for _ in range(20):
            batch = [match(trainer, rng, OWN, good=1) for _ in range(4)]
            trainer.train(batch, [], version=1, champion=champion if near else None)
        moved.append(right(trainer))
    assert moved[0] < 0.8
    assert moved[1] > 0.9


def test_the_champion_sees_observations_under_its_own_normaliser() -> None:
    """The same policy, told by another normaliser, is at no distance and adds nothing to the loss;
    the same parameters under another normaliser are another policy."""
    trainer, rng = Trainer(SPEC, CONFIG), np.random.default_rng(4)
    for _ in range(8):
        trainer.train([match(trainer, rng, OWN, good=1) for _ in range(4)], [], version=1)
    same = trainer.weights()
    params = dict(same.params)
    mean, scale = same.obs_mean + 2.0, np.ones(2, np.float32)
    for layer in ("trunk.0", "critic.0"):
        w = same.params[f"{layer}.w"] * same.obs_scale[:, None]
        params |= {f"{layer}.w": w, f"{layer}.b": same.params[f"{layer}.b"] + 2.0 * w.sum(0)}
    alike = replace(same, params=params, obs_mean=mean, obs_scale=scale)
    champions = (same, alike, replace(same, obs_mean=mean))
    batch = [match(trainer, rng, OWN, good=1) for _ in range(4)]
    files, told = trainer.snapshot(), []
    for champion in champions:
        trainer.restore(files, what="a version")
        told.append(trainer.train(batch, [], version=1, champion=champion)["loss"])
    assert abs(told[1] - told[0]) < 1e-4
    assert told[2] > told[0] + 0.005


def test_entropy_is_kept_where_the_policy_learns_and_a_clone_is_left_as_it_is() -> None:
    """Nothing is compiled when the first own decisions come."""
    trainer = Trainer(SPEC, structs.replace(CONFIG, kept_entropy=0.9))
    rng, told = np.random.default_rng(3), []
    for players in ((RULES, RULES, RULES, RULES), (RULES, OWN, OWN, RULES)):
        for _ in range(25):
            batch = [match(trainer, rng, one, good=0) for one in players]
            metrics = trainer.train(batch, [], version=1, by_evidence=True)
        told.append((metrics["entropy"] / np.log(2.0), update._cache_size()))  # type: ignore[attr-defined]
    (cloned, programs), (kept, programs_after) = told
    assert cloned < 0.18
    assert kept > 0.7
    assert programs_after == programs


@pytest.mark.parametrize("imitation", [0.0, 0.3, 1.0])
def test_targets_and_advantages_of_a_match_of_two_players(imitation: float) -> None:
    """The trace ends where a window begins and ends; rules chose with probability 1."""
    rng = np.random.default_rng(1)
    own = np.array([0, 0, 1, 1, 1, 0, 0], np.bool_)
    episode = match(Trainer(SPEC, CONFIG), rng, own, good=1)
    batch = assemble([episode], SPEC, columns=1, version=1, max_lag=None, mixed=True)
    assert batch.cut is not None
    assert np.flatnonzero(batch.cut[:, 0]).tolist() == [1, 4]
    batch = batch._replace(rewards=rng.normal(size=batch.valid.shape) * batch.valid)
    logits = rng.normal(size=(*batch.valid.shape, 2)).astype(np.float32)
    values = rng.normal(size=batch.valid.shape).astype(np.float32)
    made = _targets(SPEC, CONFIG, logits, values, batch, lam=0.9, imitation=np.float32(imitation))
    n, gamma, cap = len(own), CONFIG.gamma, CONFIG.behaviour_clip
    targets, advantages = values[: n + 1, 0].astype(float), np.zeros(n)
    error = 0.0
    for t in reversed(range(n)):  # slow and obvious
        p = np.exp(logits[t, 0] - np.logaddexp(*logits[t, 0]))[batch.actions[t, 0, 0]]
        ratio = p / np.exp(batch.log_probs[t, 0]) if own[t] else imitation + (1 - imitation) * p
        discount, lam = gamma * (t < n - 1), 0.0 if t in (1, 4) else 0.9
        later = lam * targets[t + 1] + (1.0 - lam) * values[t + 1, 0]
        advantages[t] = batch.rewards[t, 0] + discount * later - values[t, 0]
        one_step = batch.rewards[t, 0] + discount * values[t + 1, 0] - values[t, 0]
        error = min(ratio, cap) * one_step + lam * discount * min(ratio, 1.0) * error
        targets[t] += error
    np.testing.assert_allclose(made.targets[:n, 0], targets[:n], rtol=1e-4)
    np.testing.assert_allclose(made.advantages[:n, 0], advantages, rtol=1e-4)
