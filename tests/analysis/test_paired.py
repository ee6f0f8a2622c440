"""Paired effects beside a reference, and how often their interval holds the truth."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.analysis.paired import effect

results = st.lists(
    st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])), min_size=1
)


@given(results)
def test_an_effect_is_the_mean_difference_within_its_interval(
    pairs: list[tuple[float, float]],
) -> None:
    ours, theirs = map(np.array, zip(*pairs, strict=True))
    found, turned = effect(ours, theirs), effect(theirs, ours)
    assert math.isclose(found.mean, sum(a - b for a, b in pairs) / len(pairs), abs_tol=1e-12)
    assert -1 <= found.low <= found.mean <= found.high <= 1
    assert found.low < found.high  # equal pairs are no proof that nothing ever differs
    assert math.isclose(found.low, -turned.high, abs_tol=1e-12)
    assert (found.pairs, found.differing) == (len(pairs), sum(a != b for a, b in pairs))


def test_of_wins_it_is_the_interval_of_the_textbook() -> None:
    """Agresti and Min: half a match is added to each cell of the table of pairs."""
    only_ours, only_theirs, both, neither = 30, 12, 200, 58
    ours = np.repeat([1, 0, 1, 0], [only_ours, only_theirs, both, neither])
    theirs = np.repeat([0, 1, 1, 0], [only_ours, only_theirs, both, neither])
    b, c, n = only_ours + 0.5, only_theirs + 0.5, len(ours) + 2
    half = 1.959964 * math.sqrt((b + c) - (b - c) ** 2 / n) / n
    found = effect(ours, theirs)
    assert math.isclose(found.low, (b - c) / n - half, rel_tol=1e-9)
    assert math.isclose(found.high, (b - c) / n + half, rel_tol=1e-9)


def test_the_interval_holds_the_truth_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(0)
    for pairs, better, worse in ((30, 0.02, 0.01), (100, 0.1, 0.05), (2000, 0.03, 0.01)):
        held = 0
        for _ in range(2000):
            draw = rng.random(pairs)
            ours, theirs = draw < better, (draw >= better) & (draw < better + worse)
            found = effect(ours, theirs)
            held += found.low <= better - worse <= found.high
        assert held / 2000 > 0.94


def test_nothing_played_says_nothing() -> None:
    found = effect(np.empty(0), np.empty(0))
    assert (found.low, found.high, found.pairs) == (-1, 1, 0)
