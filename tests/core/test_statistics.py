from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.statistics import one_sided, wilson


def by_definition(wins: float, matches: int, z: float, *, low: bool) -> float:
    """The bound is the p at which the observed share lies z standard errors of p away: bisected."""
    share = wins / matches
    left, right = (0.0, share) if low else (share, 1.0)
    for _ in range(200):
        middle = (left + right) / 2
        away = abs(share - middle) > z * math.sqrt(middle * (1 - middle) / matches)
        left, right = (middle, right) if away == low else (left, middle)
    return (left + right) / 2


@given(st.data())
def test_a_bound_is_where_the_share_is_z_errors_away(data: st.DataObject) -> None:
    matches = data.draw(st.integers(1, 2000))
    wins = data.draw(st.integers(0, 2 * matches)) / 2  # draws by half
    z = data.draw(st.floats(0.1, 4.0))
    low, high = wilson(wins, matches, z)
    assert low == pytest.approx(by_definition(wins, matches, z, low=True), abs=1e-6)
    assert high == pytest.approx(by_definition(wins, matches, z, low=False), abs=1e-6)
    assert 0 <= low <= wins / matches + 1e-12 and wins / matches - 1e-12 <= high <= 1


def test_no_matches_say_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize(("confidence", "z"), [(0.5, 0.0), (0.95, 1.6449), (0.975, 1.9600)])
def test_one_side_needs_less_than_two(confidence: float, z: float) -> None:
    assert one_sided(confidence) == pytest.approx(z, abs=1e-4)
