from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.arrays import NDArray
from understudy.core.statistics import STAKES, detect, detect_until, gains, one_sided, wilson


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


# --- the e-detector ----------------------------------------------------------------------------


def detected_slowly(results: list[float], above: float) -> float:
    """By definition: for each stake, a test that began with each result, all of them together."""
    values = []
    for stake in STAKES:
        tests = [1.0] * len(results)
        for place, result in enumerate(results):
            factor = 1.0 + stake * (result - above) / max(above, 1.0 - above)
            tests[: place + 1] = [one * factor for one in tests[: place + 1]]
        values.append(sum(tests))
    return sum(values) / len(values)


@given(st.lists(st.floats(0.0, 1.0), max_size=40), st.floats(0.05, 0.95), st.integers(0, 40))
def test_against_one_test_from_every_moment(results: list[float], above: float, cut: int) -> None:
    evidence = np.zeros(len(STAKES))
    for part in (results[:cut], results[cut:]):  # going on is as if nothing had stopped
        evidence = detect(evidence, gains(np.array(part), above=above))
    assert evidence.mean() == pytest.approx(detected_slowly(results, above), rel=1e-9)


@given(st.floats(0.01, 0.99), st.floats(0.0, 1.0))
def test_no_bet_can_lose_more_than_it_has_or_gain_where_the_mean_is_the_bar(
    above: float, result: float
) -> None:
    assert -1.0 <= gains(np.array(result), above=above) <= 1.0
    wins, losses = (float(gains(np.array(one), above=above)) for one in (1.0, 0.0))
    assert above * wins + (1.0 - above) * losses == pytest.approx(0.0, abs=1e-12)


def first_alarm(rates: NDArray, *, above: float, alarm: float, agents: int, seed: int) -> NDArray:
    """float [agents]: after how many matches each is let through, looked at after every match;
    `rates` [N] are their win rates."""
    random, evidence = np.random.default_rng(seed), np.zeros((len(STAKES), agents))
    first = np.full(agents, np.inf)
    for match, rate in enumerate(rates.tolist(), 1):
        won = random.random((1, agents)) < rate
        evidence = detect(evidence, gains(won, above=above))
        first[(evidence.mean(0) >= alarm) & np.isinf(first)] = match
    return first


@pytest.mark.parametrize(("alarm", "median", "last"), [(1_000, 1808, 2000), (10_000, 1920, 2150)])
def test_who_climbs_passes_soon_after_the_bar(alarm: float, median: float, last: float) -> None:
    """10 to 85% in 2,000 matches: 70% is reached after 1,600. What was lost before counts little:
    one test from the first match on passes it after 5,677."""
    rates = np.minimum(0.1 + 0.75 * np.arange(2500) / 2000, 0.85)
    passed = first_alarm(rates, above=0.7, alarm=alarm, agents=300, seed=2)
    assert np.median(passed) == pytest.approx(median, rel=0.03)
    assert np.quantile(passed, 0.95) < last


def test_who_is_short_of_the_bar_passes_rarely() -> None:
    """66% at a bar of 70%, looked at after every match. An alarm at 1,000, which promises 1,000
    matches on average, is not enough: of these a quarter passed within 2,000 matches."""
    few = first_alarm(np.full(4000, 0.66), above=0.7, alarm=10_000, agents=400, seed=1)
    assert np.mean(few <= 2000) <= 0.03 and np.mean(few <= 4000) <= 0.05
    many = first_alarm(np.full(2000, 0.66), above=0.7, alarm=1_000, agents=400, seed=1)
    assert 0.2 <= np.mean(many <= 2000) <= 0.35


def test_the_mean_time_to_a_false_alarm_is_what_was_asked_for() -> None:
    """At the bar itself, where it is shortest."""
    passed = first_alarm(np.full(4000, 0.7), above=0.7, alarm=300, agents=400, seed=3)
    assert np.minimum(passed, 4000).mean() >= 300


def test_endless_evidence_stays_a_number() -> None:
    evidence = detect(np.zeros(len(STAKES)), gains(np.ones(20_000), above=0.5))
    assert np.isfinite(evidence).all()


@given(st.lists(st.floats(0.0, 1.0), max_size=60), st.floats(0.05, 0.95), st.floats(2.0, 500.0))
def test_one_detector_stops_at_the_first_result_that_is_enough(
    results: list[float], above: float, bound: float
) -> None:
    gained = gains(np.array(results), above=above)
    evidence, place = detect_until([0.0] * len(STAKES), gained.tolist(), bound=bound)
    slow = np.zeros(len(STAKES))
    for at, gain in enumerate(gained):
        slow = detect(slow, np.array([gain]))
        if slow.mean() >= bound:
            assert place == at
            break
    else:
        assert place is None
    assert evidence == pytest.approx(slow.tolist())
