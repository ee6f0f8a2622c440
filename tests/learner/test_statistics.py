from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.experience.episode import returns_of
from understudy.learner import statistics


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    offset=st.sampled_from([0.0, 5.0, 1e4]),
    seed=st.integers(0, 2**16),
)
def test_in_pieces_or_at_once_is_the_same(lengths: list[int], offset: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    pieces = [rng.normal(offset, 3.0, (length, 2)).astype(np.float32) for length in lengths]
    returns = [rng.normal(1.0, 4.0, length) for length in lengths]
    seen = statistics.empty(2)
    for observations, one in zip(pieces, returns, strict=True):
        seen = statistics.absorb(seen, observations, one)
    whole = np.concatenate(pieces).astype(np.float64)
    assert seen.count == len(whole)
    np.testing.assert_allclose(seen.obs_mean, whole.mean(0), rtol=1e-9)
    np.testing.assert_allclose(seen.obs_spread / seen.count, whole.var(0), rtol=1e-6, atol=1e-9)
    everything = np.concatenate(returns)
    assert seen.return_scale() == pytest.approx(np.sqrt(np.mean(everything**2)), rel=1e-5)


def test_a_feature_that_never_changes_keeps_its_scale() -> None:
    observations = np.array([[7.0, 1.0], [7.0, 3.0]], np.float32)
    seen = statistics.absorb(statistics.empty(2), observations, np.zeros(2))
    np.testing.assert_allclose(seen.obs_scale(), [1.0, 1.0])
    wider = statistics.absorb(seen, 10.0 * observations, np.zeros(2))
    assert wider.obs_scale()[1] < 0.2
    assert wider.obs_scale().dtype == np.float32
    assert seen.return_scale() == 1.0


def test_the_normaliser_is_fitted_when_the_samples_have_doubled() -> None:
    seen = statistics.absorb(statistics.empty(1), np.zeros((10, 1), np.float32), np.zeros(10))
    assert seen.due
    fitted = statistics.Statistics(10.0, seen.obs_mean, seen.obs_spread, 0.0, fitted_at=10.0)
    assert not fitted.due
    more = statistics.absorb(fitted, np.zeros((10, 1), np.float32), np.zeros(10))
    assert more.due


def test_returns_of_one_episode() -> None:
    returns = returns_of(np.array([1.0, 0.0, 4.0], np.float32), 0.5)
    np.testing.assert_allclose(returns, [2.0, 2.0, 4.0])
