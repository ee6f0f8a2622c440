"""Matches that older versions played: they push the policy a little way, and no further."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs
from policy.makers import MLP, TRANSFORMER, play, spec_of

from understudy.core.config import LearnerConfig
from understudy.experience.episode import Episode
from understudy.learner.batch import assemble
from understudy.learner.maths.update import _without_outrun
from understudy.learner.trainer import Trainer
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork

SPEC = spec_of()
CONFIG = LearnerConfig(batch_matches=4, replay_matches=0, minibatches=2, entropy_weight=0.0)


def matches(policy: Policy, rng: np.random.Generator) -> list[Episode]:
    """The first action is the good one."""
    return [
        play(policy, rng, 30, reward=lambda obs, action: 1.0 - float(action[0])) for _ in range(4)
    ]


def good(trainer: Trainer) -> float:
    """How likely the good action is, on average."""
    rng = np.random.default_rng(99)
    policy = Policy(SPEC, trainer.weights(), 1)
    actions = [episode.actions[:, 0] for episode in matches(policy, rng) for _ in range(5)]
    return float(np.mean(np.concatenate(actions) == 0))


def test_matches_of_one_old_version_push_the_policy_no_further_than_they_can_say() -> None:
    """The answer to a push is in matches that come later; until then the old ones must not repeat
    it. Before, they did: whatever they had once rewarded became certain."""
    trainer, rng = Trainer(SPEC, CONFIG), np.random.default_rng(0)
    old = Policy(SPEC, trainer.weights(), 0)
    start = good(trainer)
    for _ in range(60):
        trainer.train(matches(old, rng), [], version=0)
    pushed = good(trainer)
    assert start + 0.1 < pushed < 0.85
    for version in range(1, 60):
        trainer.train(matches(Policy(SPEC, trainer.weights(), version), rng), [], version=version)
    assert good(trainer) > 0.93, "what it plays itself goes on"


def test_a_batch_that_could_not_move_the_policy_does_not_raise_the_rate() -> None:
    """Else the first matches that can would move it by far too much."""
    trainer = Trainer(SPEC, CONFIG)
    for outrun, rate in ((True, CONFIG.learning_rate), (False, CONFIG.learning_rate_max)):
        trainer.adapt(0.0, outrun=outrun)
        assert trainer.learning_rate == pytest.approx(rate)
    trainer, rng = Trainer(SPEC, structs.replace(CONFIG, gamma=0.0)), np.random.default_rng(0)
    outrun_matches = [
        replace(one, log_probs=one.log_probs - np.where(one.rewards > 0, 1.0, -1.0))
        for one in matches(Policy(SPEC, trainer.weights(), 0), rng)
    ]
    metrics = trainer.train(outrun_matches, [], version=0)
    assert metrics["kl"] < 0.5 * CONFIG.kl_target
    assert trainer.learning_rate == CONFIG.learning_rate


def test_where_evidence_moves_the_champion_the_rate_is_not_held_back() -> None:
    """There matches are far by design, and ADR 0037 bounds their distance."""
    trainer, rng = Trainer(SPEC, CONFIG), np.random.default_rng(0)
    far = [
        replace(one, log_probs=one.log_probs - 2.0)
        for one in matches(Policy(SPEC, trainer.weights(), 0), rng)
    ]
    metrics = trainer.train(far, [], version=0, by_evidence=True)
    assert metrics["kl"] < 0.5 * CONFIG.kl_target
    assert trainer.learning_rate > CONFIG.learning_rate


@pytest.mark.parametrize(
    ("advantage", "grown", "trains"),
    [
        (1.0, 0.6, True),
        (1.0, 0.8, False),
        (1.0, -0.8, True),
        (-1.0, 0.8, True),
        (-1.0, -0.6, True),
        (-1.0, -0.8, False),
    ],
)
def test_what_the_policy_has_outrun_trains_the_value_alone(
    advantage: float, grown: float, *, trains: bool
) -> None:
    """Log 2 is 0.69: a decision may become twice as likely, or half as likely."""
    policy = Policy(SPEC, Trainer(SPEC, CONFIG).weights(), 0)
    batch = assemble(
        matches(policy, np.random.default_rng(0)), SPEC, columns=4, version=0, max_lag=None
    )
    advantages = np.full(batch.valid.shape, advantage, np.float32)
    after = _without_outrun(
        batch, batch.log_probs + np.float32(grown), advantages, most=np.float32(2.0)
    )
    np.testing.assert_array_equal(after.on_policy, batch.on_policy * trains)
    np.testing.assert_array_equal(after.valid, batch.valid)


@pytest.mark.parametrize(("network", "steps"), [(MLP, 4 * 8), (TRANSFORMER, 4 * 4)])
def test_a_step_of_a_network_with_memory_rests_on_four_matches(
    network: AnyNetwork, steps: int
) -> None:
    """Its minibatches are whole matches: with two in each, a step follows their noise."""
    spec = spec_of(network)
    trainer, rng = Trainer(spec, LearnerConfig()), np.random.default_rng(0)
    policy = Policy(spec, trainer.weights(), 0)
    made = [play(policy, rng, 30) for _ in range(16)]
    metrics = trainer.train(made[:10], made[10:], version=0)
    assert metrics["gradient_steps"] == steps
