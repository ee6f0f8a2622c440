"""The probe finds what was planted, reports chance for noise, and is not fooled by equal seeds."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.analysis.probing import (
    FOLDS,
    Accuracy,
    ProbeInputs,
    ceiling,
    compare,
    folds,
    predict,
)

OPPONENTS, MATCHES, WIDTH = 4, 40, 12
LABELS = np.repeat(np.arange(OPPONENTS), MATCHES)
NUMBERS = np.tile(np.arange(MATCHES), OPPONENTS)


def noise(seed: int, width: int = WIDTH) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((len(LABELS), width)).astype(np.float32)


def planted(distance: float) -> np.ndarray:
    """Clusters along some directions, in units that differ a millionfold."""
    places = np.random.default_rng(9).standard_normal((OPPONENTS, WIDTH))
    values = noise(0) + distance * places[LABELS]
    return (values * np.logspace(-3, 3, WIDTH)).astype(np.float32)


def test_planted_clusters_are_found_and_noise_is_chance() -> None:
    nothing = np.stack([noise(1), noise(2), noise(3)])
    found = compare(ProbeInputs(planted(2.0), nothing, LABELS, NUMBERS), opponents=OPPONENTS)
    assert found.trained.share > 0.97
    assert found.trained.low <= found.trained.share <= found.trained.high
    assert found.untrained is not None and found.gain is not None
    assert found.untrained.low < 1 / OPPONENTS < found.untrained.high
    assert found.gain.low > 0.6
    assert np.array(found.confusion).sum(1).tolist() == OPPONENTS * [MATCHES]
    assert np.trace(np.array(found.confusion)) == round(found.trained.share * len(LABELS))
    none = compare(ProbeInputs(noise(4), nothing, LABELS, NUMBERS), opponents=OPPONENTS)
    assert none.gain is not None and none.gain.low < 0 < none.gain.high


def test_where_no_encoder_is_asked_there_is_no_zero_line() -> None:
    found = compare(
        ProbeInputs(planted(2.0), np.empty((0, len(LABELS), WIDTH)), LABELS, NUMBERS),
        opponents=OPPONENTS,
    )
    assert found.untrained is None and found.gain is None


def test_a_match_is_judged_by_a_probe_that_saw_nothing_of_its_seed() -> None:
    """Numbers that give each seed away, and no opponent: a probe that had seen the seed's other
    matches could only ever learn to name *another* one."""
    code = np.eye(MATCHES, dtype=np.float32)[NUMBERS]
    right = predict(code, LABELS, NUMBERS) == LABELS
    assert right.mean() == pytest.approx(1 / OPPONENTS, abs=0.01)
    groups = folds(NUMBERS)
    assert len(np.unique(groups)) == FOLDS
    for number in range(MATCHES):
        assert len(np.unique(groups[number == NUMBERS])) == 1
    for group in range(FOLDS):
        assert set(NUMBERS[groups == group] % 2) == {0, 1}  # both slots


def test_the_same_every_time() -> None:
    np.testing.assert_array_equal(
        predict(planted(0.3), LABELS, NUMBERS), predict(planted(0.3), LABELS, NUMBERS)
    )


def test_seeds_of_one_encoder_do_not_count_as_more_matches() -> None:
    right = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], bool)
    found = Accuracy.of(right)
    assert (found.share, found.matches) == (0.375, 4)
    assert found == Accuracy.of(np.array([1.0, 0.5, 0.0, 0.0]))


def test_nobody_tells_equal_matches_apart() -> None:
    """Seed 0: three alike, one not; seed 1: two and two; seed 2: all different."""
    values = np.array([[7, 7, 7, 8], [1, 1, 2, 2], [1, 2, 3, 4]], np.float32)
    seen = values.T.reshape(1, -1, 1)  # matches of one opponent side by side
    numbers = np.tile(np.arange(3), 4)
    by_hand = np.mean([1 / 3, 1 / 3, 1 / 3, 1, 1 / 2, 1 / 2, 1 / 2, 1 / 2, 1, 1, 1, 1])
    assert ceiling(seen, numbers) == pytest.approx(by_hand)
    later = np.concatenate([seen, np.arange(12, dtype=np.float32).reshape(1, 12, 1)])
    assert ceiling(later, numbers) == 1.0
