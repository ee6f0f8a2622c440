"""Samplers: honest probabilities, and those we lose to are met more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.arrays import NDArray
from understudy.league.sampling import Sampler, draw, expected_win_rate, probabilities

RATES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30)
SAMPLERS: tuple[Sampler, ...] = ("random", "recent", "latest", "prioritised")


def shares(
    sampler: Sampler, rates: Sequence[float], *, recent: int = 3, power: float = 2.0
) -> NDArray:
    return probabilities(sampler, rates, recent=recent, recent_share=0.99, power=power)


@pytest.mark.parametrize("sampler", SAMPLERS)
@given(rates=RATES, recent=st.integers(1, 40), power=st.floats(0.0, 6.0))
def test_probabilities(sampler: Sampler, rates: list[float], recent: int, power: float) -> None:
    found = shares(sampler, rates, recent=recent, power=power)
    assert found.shape == (len(rates),)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0.0).all()
    if sampler == "latest":
        assert found[-1] == 1.0
    else:
        assert (found > 0.0).all()  # nobody is out of reach


@given(rates=RATES)
def test_who_beats_us_more_is_met_more(rates: list[float]) -> None:
    found = shares("prioritised", rates)
    for i, one in enumerate(rates):
        for j, other in enumerate(rates):
            if one < other - 1e-6:
                assert found[i] > found[j]
            if one == other:
                assert found[i] == found[j]


def test_prioritised_in_numbers() -> None:
    """Lost all, half, none: 1, 1/4 and 0 of a weight, with a twentieth for all alike."""
    found = shares("prioritised", [0.0, 0.5, 1.0])
    assert found == pytest.approx([0.95 * 0.8 + 0.05 / 3, 0.95 * 0.2 + 0.05 / 3, 0.05 / 3])
    assert shares("prioritised", [1.0, 1.0]) == pytest.approx([0.5, 0.5])  # nobody left to fear
    assert shares("prioritised", [0.2, 0.9], power=0.0) == pytest.approx([0.5, 0.5])


def test_recent_ones_have_nearly_all() -> None:
    found = shares("recent", [0.5] * 10, recent=2)
    assert found[-2:] == pytest.approx([0.495, 0.495])
    assert found[:-2] == pytest.approx([0.01 / 8] * 8)
    assert shares("recent", [0.5] * 2, recent=2) == pytest.approx([0.5, 0.5])


def test_who_was_never_met_is_met_before_who_is_beaten() -> None:
    never, always_beaten = expected_win_rate(0, 0), expected_win_rate(20, 20)
    found = shares("prioritised", [always_beaten] * 9 + [never])
    assert found[-1] > 0.8
    assert 0.5 < expected_win_rate(1, 1) < 0.9  # one win is no proof


@given(
    rates=RATES, uniform=st.floats(0.0, 1.0, exclude_max=True), sampler=st.sampled_from(SAMPLERS)
)
def test_a_draw_is_one_that_can_be_drawn(
    rates: list[float], uniform: float, sampler: Sampler
) -> None:
    found = shares(sampler, rates)
    index = draw(found, uniform)
    assert found[index] > 0.0
    before = sum(float(share) for share in found[:index])  # slow and obvious
    assert before - 1e-9 <= uniform
    assert uniform <= before + found[index] + 1e-9


def test_draws_follow_the_probabilities() -> None:
    found = shares("prioritised", [0.1, 0.5, 0.9])
    uniforms = (np.arange(10_000) + 0.5) / 10_000
    counts = np.bincount([draw(found, one) for one in uniforms], minlength=3)
    assert counts / 10_000 == pytest.approx(found, abs=2e-4)


def test_an_empty_pool_cannot_be_drawn_from() -> None:
    with pytest.raises(ValueError, match="no snapshot"):
        shares("random", [])
