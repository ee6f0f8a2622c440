from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.telemetry.history import SNAPSHOTS, Curve, History
from understudy.telemetry.table import Value
from understudy.telemetry.training_rows import BEHAVIOUR, LEAGUE, REWARDS, TRAINING


def slow_rolling(rows: list[tuple[float, float]], over: float) -> list[float]:
    """The mean over the last rows that weigh `over` at least, written out."""
    means = []
    for end in range(1, len(rows) + 1):
        begin = end - 1
        while begin > 0 and sum(weight for _, weight in rows[begin:end]) < over:
            begin -= 1
        weight = sum(weight for _, weight in rows[begin:end])
        means.append(sum(value * weight for value, weight in rows[begin:end]) / weight)
    return means


@settings(max_examples=80)
@given(
    rows=st.lists(st.tuples(st.integers(0, 1), st.integers(1, 50)), min_size=1, max_size=40),
    over=st.integers(0, 200),
)
def test_a_rolling_mean_is_over_enough_matches(rows: list[tuple[int, int]], over: int) -> None:
    curve = Curve()
    for index, (value, weight) in enumerate(rows):
        curve.add(index, float(value), float(weight))
    expected = slow_rolling([(float(v), float(w)) for v, w in rows], float(over))
    np.testing.assert_allclose(curve.values(over=float(over)), expected)


def test_a_long_run_takes_no_more_room_and_keeps_its_mean() -> None:
    curve, rng = Curve(), np.random.default_rng(0)
    values, weights = rng.random(20_000), rng.integers(1, 9, 20_000)
    for index in range(20_000):
        curve.add(index, float(values[index]), float(weights[index]))
    assert 300 <= len(curve) <= 600
    widths = np.diff(curve.steps())[:-1]  # the last bin may still have room
    assert widths.min() == widths.max(), "old rows are shown as finely as new ones"
    assert curve.steps()[-1] == 19_999
    assert np.all(np.diff(curve.steps()) > 0)
    assert curve.values(over=1e9)[-1] == pytest.approx(np.average(values, weights=weights))


def test_what_is_not_finite_is_left_out() -> None:
    curve = Curve()
    curve.add(1, float("nan"))
    curve.add(2, 1.0, float("nan"))
    curve.add(3, 1.0, 0.0)
    assert len(curve) == 0
    assert curve.values().shape == curve.steps().shape == (0,)


def test_rows_from_a_file_and_rows_as_made_give_the_same_history() -> None:
    row: dict[str, Value] = {
        "steps": 64,
        "opponent": "all",
        "matches": 2,
        "return": 0.5,
        "term_win": 0.25,
    }
    made, read = History(), History()
    made.add(REWARDS, row)
    read.add(REWARDS, {name: str(value) for name, value in row.items()})
    for history in (made, read):
        assert history.returns.values().tolist() == [0.5]
        assert history.terms["win"].values().tolist() == [0.25]


def test_all_snapshots_are_one_curve() -> None:
    history = History()
    for index in range(300):
        name = "based" if index == 0 else f"step-{index}"
        history.add(
            BEHAVIOUR, {"steps": index, "opponent": name, "matches": 1, "win_rate": index % 2}
        )
    assert set(history.win_rates) == {"based", SNAPSHOTS}


def test_league_rows_become_marks_and_points() -> None:
    history = History()
    for kept in (1, 0):
        history.add(LEAGUE, {"steps": 10 + kept, "event": "snapshot", "name": "x", "kept": kept})
    history.add(LEAGUE, {"steps": 30, "event": "rating", "mu": "25", "sigma": "2"})
    assert history.snapshots == [11]
    assert history.rating.values().tolist() == [1000.0]
    assert history.doubt.values().tolist() == [pytest.approx(118.0, abs=1.0)]
    assert history.steps == 30


def test_a_stage_begins_where_the_row_before_it_ended() -> None:
    history = History()
    for steps, stage in ((64, "one"), (128, "one"), (192, "two"), (256, "one")):
        row: dict[str, Value] = {"steps": steps, "time_s": 1.0, "stage": stage, "iterations": 3}
        history.add(TRAINING, {**row, "kl": 0.1})
    assert history.stages == [(0, "one"), (128, "two"), (192, "one")]
    assert history.training["kl"].values() == pytest.approx([0.1] * 4)
