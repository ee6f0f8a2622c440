from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from policy.makers import aborted, lively_policy, play, spec_of

from understudy.experience.episode import Episode
from understudy.learner.batch import Batch, assemble, padded_length

SPEC = spec_of()


def played(length: int, *, version: int = 0, seed: int = 0) -> Episode:
    rng = np.random.default_rng(seed)
    player = lively_policy(SPEC, version=version)
    return play(player, rng, length, masked=True, reward=lambda obs, action: float(obs[0]))


def batch_of(*episodes: Episode, version: int = 0, max_lag: int = 10) -> Batch:
    return assemble(episodes, SPEC, columns=4, version=version, max_lag=max_lag)


@pytest.mark.parametrize(
    ("longest", "length"), [(1, 64), (63, 64), (64, 128), (127, 128), (128, 256), (250, 256)]
)
def test_lengths_are_few_and_leave_a_row_for_the_bootstrap(longest: int, length: int) -> None:
    assert padded_length(longest) == length


def test_an_episode_fills_its_column_and_nothing_else() -> None:
    first, second = played(5), played(9, seed=1)
    batch = batch_of(first, second)
    assert batch.obs.shape == (64, 4, 3)
    assert batch.weights is None, "in the ring all decisions count alike"
    np.testing.assert_array_equal(batch.obs[:5, 0], first.observations)
    np.testing.assert_array_equal(batch.actions[:9, 1], second.actions)
    np.testing.assert_array_equal(batch.rewards[:5, 0], first.rewards)
    np.testing.assert_array_equal(batch.log_probs[:9, 1], second.log_probs)
    assert first.legal is not None
    np.testing.assert_array_equal(batch.legal[:5, 0], first.legal)
    np.testing.assert_array_equal(batch.valid.sum(0), [5, 9, 0, 0])
    for array in (batch.rewards, batch.on_policy, batch.imitated, batch.ongoing, batch.log_probs):
        assert not array[5:, 0].any()
        assert not array[9:, 1].any()
        assert not array[:, 2:].any()
    assert batch.legal[5:, 0].all(), "an empty row must not be without a legal action"


def test_a_finished_match_ends_with_its_last_decision() -> None:
    batch = batch_of(played(5))
    np.testing.assert_array_equal(batch.ongoing[:6, 0], [1, 1, 1, 1, 0, 0])


def test_a_bootstrap_observation_follows_the_last_decision() -> None:
    seen = np.array([9.0, 8.0, 7.0], np.float32)
    batch = batch_of(replace(played(5), bootstrap=seen))
    np.testing.assert_array_equal(batch.obs[5, 0], seen)
    np.testing.assert_array_equal(batch.ongoing[:6, 0], [1, 1, 1, 1, 1, 0])
    np.testing.assert_array_equal(batch.valid[:6, 0], [1, 1, 1, 1, 1, 0])


def test_an_aborted_match_gives_its_last_decision_as_the_bootstrap() -> None:
    episode = replace(played(5), meta=aborted())
    batch = batch_of(episode)
    np.testing.assert_array_equal(batch.obs[4, 0], episode.observations[4])
    np.testing.assert_array_equal(batch.ongoing[:6, 0], [1, 1, 1, 1, 0, 0])
    np.testing.assert_array_equal(batch.valid[:6, 0], [1, 1, 1, 1, 0, 0])
    lone = batch_of(replace(played(1), meta=aborted()))
    assert not lone.valid.any()


def test_decisions_that_were_not_sampled_are_imitated_and_never_on_policy() -> None:
    sampled = np.array([True, False, True, False, False])
    batch = batch_of(replace(played(5), sampled=sampled))
    np.testing.assert_array_equal(batch.on_policy[:5, 0], sampled)
    np.testing.assert_array_equal(batch.imitated[:5, 0], ~sampled)


def test_decisions_of_versions_too_long_ago_teach_the_value_alone() -> None:
    episode = replace(played(4), versions=np.array([1, 2, 3, 12], np.int64))
    batch = batch_of(episode, version=13, max_lag=11)
    np.testing.assert_array_equal(batch.on_policy[:4, 0], [0, 1, 1, 1])
    np.testing.assert_array_equal(batch.valid[:4, 0], [1, 1, 1, 1])
    assert not batch.imitated.any()
