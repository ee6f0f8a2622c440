"""Paired effects beside a reference, and how often their interval holds the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.analysis.paired import SharedMatches, effect
from understudy.core.arrays import NDArray

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


OPPONENTS, DONORS, EACH = 7, 5, 286
"""As many as the largest preset has room for, and 2,000 matches in all."""


def studied(
    rng: np.random.Generator, ways: tuple[str, ...]
) -> tuple[NDArray, NDArray, SharedMatches]:
    """Matches that are told donors, some of which mislead more than others; by 0.04 on average."""
    labels = np.repeat(np.arange(OPPONENTS), EACH)
    other = rng.integers(0, (OPPONENTS - 1) * DONORS, len(labels))
    donors = {
        "same": labels * DONORS + rng.integers(0, DONORS, len(labels)),
        "other": other + DONORS * (other >= labels * DONORS),
    }
    misleading = rng.uniform(-0.06, 0.06, (len(ways), OPPONENTS * DONORS)) / math.sqrt(len(ways))
    heard = np.stack([donors[way] for way in ways])
    by_opponent = np.linspace(0.01, 0.11, OPPONENTS)[labels]
    chance = by_opponent + sum(one[told] for one, told in zip(misleading, heard, strict=True))
    draw = rng.random(len(labels))
    return draw < chance, draw >= 0.98, SharedMatches(heard, labels)


@pytest.mark.parametrize("ways", [("same",), ("other",), ("same", "other")], ids="-".join)
def test_pairs_that_share_donors_do_not_count_as_so_many(ways: tuple[str, ...]) -> None:
    """The truth is about all donors that there could be, not about those that were recorded."""
    rng, studies, held = np.random.default_rng(1), 500, np.zeros(2)
    for _ in range(studies):
        ours, theirs, shared = studied(rng, ways)
        for at, found in enumerate((effect(ours, theirs), effect(ours, theirs, shared))):
            held[at] += found.low <= 0.04 <= found.high
    by_itself, by_donor = held / studies
    assert by_donor >= 0.93
    assert 0.8 < by_itself < 0.9, "donors make no difference here: nothing is shown"


def test_donors_are_counted_and_equal_pairs_have_a_width() -> None:
    donors = np.array([[0, 0, 1, 1, 2, 2], [3, 4, 3, 4, 3, 0]])
    shared, same = SharedMatches(donors, np.zeros(6, np.int64)), np.ones(6)
    found, alone = effect(same, same, shared), effect(same, same)
    assert (found.donors, alone.donors) == (5, 0)
    assert -1 < found.low < alone.low < 0 < alone.high < found.high < 1
    one = effect(same, same, SharedMatches(donors[:1] * 0, shared.labels))
    assert (one.low, one.high, one.donors) == (-1, 1, 1), "one donor says nothing of others"


def test_nothing_played_says_nothing() -> None:
    found = effect(np.empty(0), np.empty(0))
    assert (found.low, found.high, found.pairs) == (-1, 1, 0)
