"""How latents lie, beside what one can see by hand."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.analysis.study import distances, neighbours, principal, silhouette, standardised

LABELS = np.repeat([0, 1, 2], 20)
RNG = np.random.default_rng(0)


def clusters(distance: float) -> np.ndarray:
    middles = distance * np.array([[0, 0, 0], [1, 0, 0], [0, 3, 0]], np.float32)
    noise = np.random.default_rng(0).standard_normal((60, 3))
    return np.asarray(middles[LABELS] + noise, np.float32)


def test_a_number_that_never_changes_is_no_trouble() -> None:
    values = np.column_stack([np.full(60, 7.0), clusters(1.0)])
    scaled = standardised(values)
    assert (scaled[:, 0] == 0).all()
    np.testing.assert_allclose(scaled[:, 1:].std(0), 1.0)
    assert np.isfinite(principal(values)[0]).all()


def test_distances_are_of_means_in_units_of_the_spread() -> None:
    found = distances(clusters(5.0), LABELS, opponents=3)
    scaled = standardised(clusters(5.0))
    means = [scaled[one == LABELS].mean(0) for one in range(3)]
    gaps = [((row - means[label]) ** 2).sum() for row, label in zip(scaled, LABELS, strict=True)]
    spread = np.sqrt(np.mean(gaps))
    for one in range(3):
        for other in range(3):
            apart = np.linalg.norm(means[one] - means[other]) / spread
            assert found[one, other] == pytest.approx(apart)
    np.testing.assert_array_equal(found, found.T)


def test_clusters_that_are_further_apart_score_higher() -> None:
    scores = [silhouette(clusters(distance), LABELS) for distance in (0.0, 2.0, 8.0)]
    assert abs(scores[0]) < 0.1
    assert scores == sorted(scores) and scores[2] > 0.4


def test_pictures_keep_neighbours_together_and_are_the_same_every_time() -> None:
    values = clusters(8.0)
    places, shares = principal(values)
    assert places.shape == (60, 2) and 0 < shares.sum() <= 1
    near = neighbours(values)
    assert near.shape == (60, 2)
    assert silhouette(near, LABELS) > 0.5
    np.testing.assert_array_equal(near, neighbours(values))
