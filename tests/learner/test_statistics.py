from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core.arrays import NDArray
from understudy.core.feature_bounds import Bounds, bounds_of
from understudy.experience.episode import returns_of
from understudy.learner import statistics
from understudy.learner.maths.returns import Moments
from understudy.learner.statistics import Statistics


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


def seen_after(
    *matches: NDArray,
    start: Statistics | None = None,
    declared: Bounds | None = None,
) -> Statistics:
    seen = statistics.empty(matches[0].shape[1]) if start is None else start
    for observations in matches:
        nothing = np.zeros(len(observations))
        seen = statistics.absorb(seen, observations, nothing, declared=declared)
    return seen


def test_the_normaliser_is_fitted_when_the_samples_have_doubled_and_are_enough() -> None:
    match = np.zeros((40, 1), np.float32)
    seen = seen_after(match)
    assert seen.due, "the first match is better than nothing"
    fitted = replace(seen, fitted_at=seen.seen)
    assert not fitted.due
    for number in range(2, 8):
        fitted = seen_after(match, start=fitted)
        assert fitted.seen == 40.0 * number and not fitted.due, "matches are few"
    fitted = seen_after(match, start=fitted)
    assert fitted.matches == statistics.ENOUGH_MATCHES and fitted.due
    fitted = replace(fitted, fitted_at=fitted.seen)
    for _ in range(7):
        fitted = seen_after(match, start=fitted)
        assert not fitted.due
    assert seen_after(match, start=fitted).due
    short = seen_after(*[match[:8]] * 12)
    short = replace(short, fitted_at=8.0)
    assert short.matches > statistics.ENOUGH_MATCHES and not short.due, "decisions are few"
    assert seen_after(*[match[:8]] * 20, start=short).due


@pytest.mark.parametrize("where", [0, 3], ids=["first match", "fourth match"])
def test_one_absurd_number_does_not_say_what_the_scale_is(where: int) -> None:
    rng = np.random.default_rng(where)
    ordinary = [rng.normal(2.0, 3.0, (60, 2)).astype(np.float32) for _ in range(5)]
    absurd = [match.copy() for match in ordinary]
    absurd[where][17, 0] = 1e12
    ratios = seen_after(*ordinary).obs_scale() / seen_after(*absurd).obs_scale()
    assert 1.0 < ratios[0] < 10.0
    assert ratios[1] == 1.0
    assert abs(seen_after(*absurd).obs_mean[0] - 2.0) < 3.0


def test_what_lies_beyond_declared_bounds_counts_as_the_bound() -> None:
    """A sensor that fails in 3% of the decisions is more than an outlier."""
    rng = np.random.default_rng(0)
    names = ("height", "speed")
    ordinary = [rng.uniform(0.0, 8.0, (60, 2)).astype(np.float32) for _ in range(5)]
    failed = [match.copy() for match in ordinary]
    for match in failed:
        match[:2, 0] = -1e6
    whole = seen_after(*ordinary)
    assert seen_after(*failed).obs_scale()[0] < 1e-3 * whole.obs_scale()[0], "without bounds"
    known = seen_after(*failed, declared=bounds_of(names, {"height": (0.0, 8.0)}))
    assert 0.8 < known.obs_scale()[0] / whole.obs_scale()[0] <= 1.0
    assert known.obs_scale()[1] == whole.obs_scale()[1]


def test_bounds_that_are_declared_later_undo_what_was_counted_before() -> None:
    """A run whose sensor failed all along is opened again with bounds."""
    rng = np.random.default_rng(0)
    failed = [rng.uniform(0.0, 8.0, (60, 2)).astype(np.float32) for _ in range(40)]
    for match in failed:
        match[:2, 0] = -1e6
    flat = replace(seen_after(*failed), fitted_at=2000.0)
    declared = bounds_of(("height", "speed"), {"height": (0.0, 8.0), "speed": (0.0, 8.0)})
    known = statistics.within_bounds(flat, declared)
    assert not flat.due and known.due
    np.testing.assert_allclose(known.obs_mean[0], 4.0)
    np.testing.assert_allclose(known.obs_scale()[0], 0.25, rtol=1e-6)
    assert known.obs_scale()[1] == flat.obs_scale()[1]
    assert statistics.within_bounds(known, declared) is known


def test_a_feature_that_is_always_at_a_bound_is_within_it() -> None:
    """The mean of many equal numbers is rounded, beyond the bound it may be."""
    still = np.full((60, 1), 0.7, np.float32)
    seen = seen_after(*[still] * 7)
    for bounds in ((0.0, 0.7), (0.7, 3.0)):
        assert statistics.within_bounds(seen, bounds_of(("height",), {"height": bounds})) is seen


def test_what_lies_within_declared_bounds_counts_as_it_is() -> None:
    rare = np.zeros((60, 1), np.float32)
    rare[7] = 40.0
    calm = np.zeros((60, 1), np.float32)
    assert seen_after(calm, rare).obs_mean[0] == 0.0, "without bounds it is an outlier"
    known = seen_after(calm, rare, declared=bounds_of(("gold",), {"gold": (0.0, 50.0)}))
    np.testing.assert_allclose(known.obs_mean, 40.0 / 120.0)


def test_what_is_ordinary_is_counted_as_it_is() -> None:
    rng = np.random.default_rng(0)
    matches = [rng.normal(2.0, 3.0, (60, 2)).astype(np.float32) for _ in range(5)]
    whole = np.concatenate(matches)
    np.testing.assert_allclose(seen_after(*matches).obs_scale(), 1.0 / whole.std(0), rtol=1e-4)


def test_what_a_feature_was_is_forgotten_within_the_horizon() -> None:
    rng = np.random.default_rng(0)
    size = 1000
    turns = int(statistics.HORIZON) // size
    before = [rng.uniform(0.0, 100.0, (size, 1)).astype(np.float32) for _ in range(3 * turns)]
    after = [rng.uniform(0.0, 1.0, (size, 1)).astype(np.float32) for _ in range(5 * turns)]
    seen = seen_after(*before)
    assert seen.count == statistics.HORIZON and seen.seen == 3.0 * statistics.HORIZON
    for match in after[:turns]:
        seen = statistics.absorb(seen, match, np.full(size, 2.0))
    # The weight of what is older by a horizon is 1 / e, whatever there was before it.
    assert seen.obs_mean[0] == pytest.approx(0.5 + 49.5 / np.e, rel=0.02)
    for match in after[turns:]:
        seen = statistics.absorb(seen, match, np.full(size, 2.0))
    assert seen.obs_mean[0] == pytest.approx(0.5, abs=0.5)
    assert seen.return_scale() == pytest.approx(2.0, rel=0.01)


def test_a_shorter_horizon_forgets_at_once() -> None:
    old = seen_after(*[np.full((1000, 1), 100.0, np.float32)] * 9)
    seen = statistics.absorb(old, np.zeros((100, 1), np.float32), np.zeros(100), horizon=400.0)
    assert seen.count == 400.0
    assert seen.obs_mean[0] == pytest.approx(75.0)


def test_moments_of_advantages_forget_sooner() -> None:
    seen = statistics.empty(1)
    for mean, square, count in ((3.0, 10.0, 2000.0), (-1.0, 2.0, 6000.0)):
        seen = statistics.absorb_advantages(seen, Moments(mean, square, count))
    assert seen.advantages == pytest.approx((0.0, 4.0, 8000.0))
    for _ in range(60):
        seen = statistics.absorb_advantages(seen, Moments(5.0, 26.0, 1000.0))
    mean, square, count = seen.advantages
    assert count == statistics.VALUE_HORIZON
    assert (mean, square) == pytest.approx((5.0, 26.0), rel=0.01)


def test_returns_of_one_episode() -> None:
    returns = returns_of(np.array([1.0, 0.0, 4.0], np.float32), 0.5)
    np.testing.assert_allclose(returns, [2.0, 2.0, 4.0])
