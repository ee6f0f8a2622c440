"""Batches of one or two new matches: one step over new matches and earlier ones."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
import pytest

from understudy.core.arrays import NDArray
from understudy.core.config import LearnerConfig
from understudy.core.spaces import Discrete
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.learner.batch import assemble
from understudy.learner.maths import update as updates
from understudy.learner.slow_games import batch_settings
from understudy.learner.trainer import Trainer
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec

SPEC = PolicySpec(("a", "b"), Discrete(("left", "right")), Mlp((8,)))
CONFIG = LearnerConfig()


def match(
    number: int, *, won: bool = True, sampled: bool = True, length: int = 20, gap: float = 0.0
) -> Episode:
    """A match whose result is its only reward; `gap`: log-probability beyond an even choice."""
    rng = np.random.default_rng(number)
    rewards = np.zeros(length, np.float32)
    rewards[-1] = 10.0 if won else -5.0
    return Episode(
        meta=Meta(
            id=str(number),
            outcome=Outcome.VICTORY if won else Outcome.DEFEAT,
            finished_at=0.0,
        ),
        observations=rng.normal(size=(length, 2)).astype(np.float32),
        actions=rng.integers(0, 2, (length, 1)).astype(np.int32),
        log_probs=np.full(length, (np.log(0.5) + gap) if sampled else 0.0, np.float32),
        values=np.zeros(length, np.float32),
        rewards=rewards,
        sampled=np.full(length, sampled),
        versions=np.zeros(length, np.int64),
    )


def steps(
    trainer: Trainer,
    new: Sequence[Episode],
    earlier: Sequence[Episode],
    *,
    by_evidence: bool = False,
) -> int:
    metrics = trainer.train(new, earlier, version=0, by_evidence=by_evidence)
    return round(metrics["gradient_steps"])


def test_few_matches_are_sampled_as_often_as_others_but_in_one_pass() -> None:
    for count in (1, 2):
        made = batch_settings(CONFIG, [match(n) for n in range(count)], by_evidence=False)
        assert made.epochs == 1
        assert made.replay_matches + count == count * CONFIG.samples_per_insert


def test_no_batch_is_larger_than_its_columns() -> None:
    config = LearnerConfig(batch_matches=2, replay_matches=3)
    assert batch_settings(config, [match(1), match(2)], by_evidence=False).replay_matches == 3


@pytest.mark.parametrize(
    ("config", "new", "by_evidence"),
    [
        (CONFIG, [match(n) for n in range(3)], False),
        (CONFIG, [match(1)], True),
        (CONFIG, [match(1, sampled=False)], False),
        (LearnerConfig(replay_matches=0), [match(1)], False),
        (CONFIG, [], False),
    ],
    ids=["many matches", "by evidence", "matches of rules", "no replay", "nothing new"],
)
def test_other_batches_keep_their_settings(
    config: LearnerConfig, new: list[Episode], by_evidence: bool
) -> None:
    assert batch_settings(config, new, by_evidence=by_evidence) is config


def test_a_batch_of_few_matches_is_one_step_and_others_are_as_before() -> None:
    trainer = Trainer(SPEC, CONFIG)
    assert steps(trainer, [match(1)], [match(n) for n in range(2, 9)]) == 1
    assert steps(trainer, [match(n) for n in range(3)], []) == CONFIG.epochs * CONFIG.minibatches
    assert steps(trainer, [match(1)], [], by_evidence=True) == CONFIG.epochs * CONFIG.minibatches


def test_a_full_batch_is_not_given_the_rate_of_a_single_step() -> None:
    trainer = Trainer(SPEC, CONFIG)
    for number in range(40):
        trainer.train([match(number, won=number % 2 == 0)], [], version=0)
    assert trainer.learning_rate > CONFIG.learning_rate_max
    full = trainer.train([match(n) for n in range(3)], [], version=0)
    assert full["learning_rate"] <= CONFIG.learning_rate_max


def advantages(corrected: float) -> NDArray:
    """Of a match that was played by another policy; values say nothing."""
    batch = assemble([match(1, gap=0.3)], SPEC, columns=1, version=0, max_lag=None)
    logits = np.zeros((*batch.valid.shape, 2), np.float32)
    values = np.zeros(batch.valid.shape, np.float32)
    with jax.disable_jit():
        made = updates._targets(
            SPEC, LearnerConfig(gamma=1.0), logits, values, batch, lam=1.0, corrected=corrected
        )
    return np.asarray(made.advantages)[:20, 0]


def test_a_result_reaches_the_first_decision_where_traces_are_not_cut() -> None:
    cut, whole = advantages(1.0), advantages(0.0)
    np.testing.assert_allclose(whole, 10.0, rtol=1e-5)
    assert cut[0] < 0.05 * whole[0]
    half = advantages(0.5)
    assert (cut[:-1] < half[:-1]).all() and (half[:-1] < whole[:-1]).all()


def test_rewarded_actions_become_likelier_and_punished_ones_less_likely() -> None:
    """One match a batch, as a slow game has it; the result is the only reward."""
    trainer, rng = Trainer(SPEC, LearnerConfig(seed=1)), np.random.default_rng(1)
    seen = np.tile(np.array([1.0, -1.0], np.float32), (20, 1))
    earlier: list[Episode] = []

    def right_share(version: int) -> tuple[Episode, float]:
        policy = Policy(SPEC, trainer.weights(), version)
        draws = rng.random((20, 1), dtype=np.float32)
        choice = policy.act(seen, policy.begin(20), uniforms=draws)
        share = float(choice.actions.mean())
        made = match(version, won=bool(rng.random() < share))
        return (
            Episode(
                meta=made.meta,
                observations=seen,
                actions=choice.actions,
                log_probs=choice.log_probs,
                values=choice.values,
                rewards=made.rewards,
                sampled=made.sampled,
                versions=np.full(20, version, np.int64),
            ),
            share,
        )

    shares = []
    for version in range(150):
        new, share = right_share(version)
        trainer.train([new], earlier, version=version)
        earlier = [*earlier, new][-7:]
        shares.append(share)
    assert np.mean(shares[-20:]) > np.mean(shares[:20]) + 0.2
