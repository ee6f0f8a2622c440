from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.league.curriculum import blend


@pytest.mark.parametrize(
    ("stage_steps", "anneal_steps", "share"),
    [(0, 100, 0.0), (25, 100, 0.25), (100, 100, 1.0), (10**9, 100, 1.0), (0, 0, 0.0), (50, 0, 0.0)],
)
def test_a_straight_line_and_then_the_last_set(
    stage_steps: int, anneal_steps: int, share: float
) -> None:
    assert blend(stage_steps, anneal_steps) == share


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
def test_it_never_turns_back(a: int, b: int, anneal_steps: int) -> None:
    early, late = sorted((a, b))
    assert 0.0 <= blend(early, anneal_steps) <= blend(late, anneal_steps) <= 1.0
