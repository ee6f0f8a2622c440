from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.match.tally import Tally, wilson


def test_draws_are_not_wins() -> None:
    tally = Tally(wins=3, draws=5, losses=2)
    assert (tally.matches, tally.win_rate) == (10, 0.3)
    assert tally.as_dict() == {
        "matches": 10,
        "wins": 3,
        "draws": 5,
        "losses": 2,
        "win_rate": 0.3,
        "interval": [0.1078, 0.6032],
    }


def test_nothing_played_says_nothing() -> None:
    tally = Tally(wins=0, draws=0, losses=0)
    assert tally.win_rate == 0.0
    assert tally.interval == (0.0, 1.0)


@given(st.integers(1, 5000), st.data())
def test_the_bounds_are_where_the_share_is_just_believable(
    matches: int, data: st.DataObject
) -> None:
    """The definition: shares p with |share - p| = z * sqrt(p (1 - p) / n)."""
    wins = data.draw(st.integers(0, matches))
    low, high = wilson(wins, matches)
    share = wins / matches
    assert 0.0 <= low <= share + 1e-12 and share - 1e-12 <= high <= 1.0
    for bound in (low, high):
        if 0.0 < bound < 1.0:
            spread = 1.959964**2 * bound * (1 - bound) / matches
            assert (share - bound) ** 2 == pytest.approx(spread, rel=1e-6, abs=1e-12)
