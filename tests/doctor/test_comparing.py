"""Stretches of a trend, compared with chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from understudy.doctor.comparing import deviations, fallen, first, mean_of, swings, windows
from understudy.telemetry.trends import Trend


def rates(*values: float, matches: int = 100) -> Trend:
    trend = Trend()
    for number, value in enumerate(values):
        trend.add(float(number), value, version=number, weight=matches)
    return trend


def test_the_error_of_a_share_is_that_of_wins_and_losses() -> None:
    window = mean_of(rates(0.4, 0.6).bins, share=True)
    assert (window.mean, window.weight) == (0.5, 200)
    assert window.error == pytest.approx((0.25 / 200) ** 0.5, rel=0.01)
    assert mean_of(rates(0.0).bins, share=True).error > 0.0, "none of a hundred is not surely 0"


def test_one_bin_of_other_values_has_no_known_error() -> None:
    assert deviations(mean_of(rates(9.0).bins), mean_of(rates(0.0, 0.1).bins)) == 0.0


def test_values_without_spread_are_equal_or_apart_beyond_doubt() -> None:
    same, more = mean_of(rates(0.1, 0.1).bins), mean_of(rates(0.2, 0.2).bins)
    assert deviations(same, same) == deviations(same, mean_of(rates(*[0.1] * 3).bins)) == 0.0
    assert deviations(more, same) == math.inf == -deviations(same, more)


def test_the_first_bins_weigh_what_was_asked_for() -> None:
    trend = rates(0.1, 0.2, 0.3)
    assert len(first(trend, 150)) == 2
    assert len(first(trend, 1e9)) == 3
    assert len(windows(trend, count=16, least=150, share=True)) == 1, "what is left over is none"


def test_swings_are_turns_that_chance_does_not_explain() -> None:
    wild = windows(rates(*[0.1, 0.9] * 5), count=16, least=100, share=True)
    assert [one.mean for one in swings(wild, least=0.25)] == [0.1, 0.9] * 5
    rising = windows(rates(*np.linspace(0.1, 0.9, 10)), count=16, least=100, share=True)
    assert [round(one.mean, 3) for one in swings(rising, least=0.25)] == [0.1, 0.9]
    assert swings([], least=0.25) == []


def test_chance_alone_hardly_ever_swings() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.binomial(50, 0.5, size=16) / 50
        found = swings(
            windows(rates(*values, matches=50), count=16, least=50, share=True), least=0.25
        )
        assert len(found) - 2 < 2


def accused(chances: list[float], rng: np.random.Generator, *, matches: int = 60) -> bool:
    """Whether any look, one after each benchmark, says that a policy of these chances has fallen:
    as `training-went-backwards` looks."""
    bins = rates(*(rng.binomial(matches, chances) / matches), matches=matches).bins
    looks = (bins[: count + 1] for count in range(len(bins)))
    return any(fallen(look, least=0.15, errors=3.0) for look in looks)


@pytest.mark.parametrize("chance", [0.2, 0.5, 0.9])
def test_a_policy_that_stays_the_same_has_hardly_ever_fallen(chance: float) -> None:
    rng = np.random.default_rng(0)
    assert sum(accused([chance] * 100, rng) for _ in range(300)) <= 6


@pytest.mark.parametrize("best", [0.5, 0.65, 0.8, 0.95])
def test_a_policy_that_falls_by_thirty_points_has_fallen(best: float) -> None:
    rng = np.random.default_rng(1)
    assert sum(accused([best] * 50 + [best - 0.3] * 50, rng) for _ in range(40)) == 40


def test_a_fall_is_known_after_four_benchmarks() -> None:
    assert fallen([], least=0.15, errors=3.0) is None
    assert fallen(rates(0.9, *[0.1] * 3).bins, least=0.15, errors=3.0) is None
    then, now = fallen(rates(0.9, *[0.1] * 4).bins, least=0.15, errors=3.0) or (None, None)
    assert then is not None and now is not None
    assert (then.version, now.weight) == (0, 400) and now.mean == pytest.approx(0.1)
