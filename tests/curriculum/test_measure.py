from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.config import StageConfig
from understudy.core.statistics import one_sided, wilson
from understudy.curriculum.measure import (
    Counts,
    bounds_of_mean,
    by_opponent,
    evidence,
    newest,
    percent,
    total,
)

counts = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
windows = st.lists(counts, max_size=20)


def stage(measure: str, **values: object) -> StageConfig:
    return StageConfig(name="a", measure=measure, min_matches=10, window=50, **values)  # type: ignore[arg-type]


def newest_by_counting(window: list[Counts], matches: int) -> list[Counts]:
    for start in range(len(window), -1, -1):
        if sum(sum(each) for each in window[start:]) >= matches:
            return window[start:]
    return window


@given(windows, st.integers(1, 100))
def test_the_newest_matches_are_those_at_the_end(window: list[Counts], matches: int) -> None:
    assert newest(window, matches) == newest_by_counting(window, matches)


@given(windows)
def test_totals(window: list[Counts]) -> None:
    assert total(window) == tuple(sum(each[i] for each in window) for i in range(3))


def test_snapshots_are_one_opponent_and_who_was_not_met_is_none() -> None:
    results = {"step-100": (1, 2, 3), "based": (4, 0, 0), "step-200": (1, 0, 0), "idle": (0, 0, 0)}
    assert by_opponent(results) == {"self": (2, 2, 3), "based": (4, 0, 0)}


def test_a_win_rate_has_the_bounds_of_its_matches() -> None:
    found = evidence(
        stage("win_rate:based"), {"based": [(7, 2, 1), (30, 5, 5)], "other": [(9, 9, 9)]}
    )
    assert found and found.share == 37 / 50
    assert (found.lower, found.upper) == pytest.approx(wilson(37, 50, one_sided(0.95)))
    assert found.words == "based: 37 of 50 won"
    assert found.at_least == "based: 37 of 50 won, at least 62.7% with 95% confidence"
    assert found.at_most == "based: 37 of 50 won, at most 82.8% with 95% confidence"


def test_a_score_counts_draws_by_half() -> None:
    found = evidence(stage("score:based"), {"based": [(7, 3, 0)]})
    assert found and found.share == 0.85
    assert found.words == "based: 8.5 points of 10"


def test_old_matches_count_no_more() -> None:
    found = evidence(stage("win_rate:based"), {"based": [(0, 0, 1000), (25, 0, 0), (25, 0, 0)]})
    assert found and found.share == 1.0


def test_several_opponents_are_a_mean_not_a_sum() -> None:
    found = evidence(stage("win_rate:a+b"), {"a": [(40, 0, 0)], "b": [(5, 0, 5)]})
    assert found and found.share == 0.75  # of all matches, 90% were won
    assert found.words == "a: 40 of 40 won; b: 5 of 10 won"
    assert evidence(stage("win_rate:a+b"), {"a": [(40, 0, 0)], "b": [(5, 0, 4)]}) is None
    assert evidence(stage("win_rate:a+b"), {"a": [(40, 0, 0)]}) is None


def test_a_stage_without_a_measure_has_no_evidence() -> None:
    assert evidence(stage(""), {"": [(40, 0, 0)]}) is None


@given(st.integers(0, 60), st.integers(1, 60))
def test_the_bounds_of_one_share_are_its_own(wins: int, more: int) -> None:
    share, bounds = wins / (wins + more), wilson(wins, wins + more)
    assert bounds_of_mean([share], [bounds]) == pytest.approx(bounds)


@pytest.mark.parametrize("rates", [(0.9, 0.5), (0.7, 0.7, 0.7), (0.97, 0.3, 0.6, 0.8)])
def test_the_bounds_of_a_mean_hold_as_often_as_they_say(rates: tuple[float, ...]) -> None:
    random, times, matches, z = np.random.default_rng(1), 2000, 60, one_sided(0.95)
    wins = random.binomial(matches, rates, size=(times, len(rates)))
    bounds = [
        bounds_of_mean([won / matches for won in row], [wilson(won, matches, z) for won in row])
        for row in wins.tolist()
    ]
    truth = sum(rates) / len(rates)
    below = np.mean([low <= truth for low, _ in bounds])
    above = np.mean([truth <= high for _, high in bounds])
    assert 0.935 <= below <= 0.975 and 0.935 <= above <= 0.975


def test_a_bound_is_rounded_to_where_it_still_holds() -> None:
    assert percent(0.7) == "70%" and percent(0.725) == "72.5%"
    assert percent(0.69999, down=True) == "69.9%"  # not the 70% that it misses
    assert percent(0.60001, down=False) == "60.1%"
