from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.telemetry.history import SNAPSHOTS, Curve, History, HistoryFiles
from understudy.telemetry.table import Table, Value
from understudy.telemetry.training_rows import ALL, BEHAVIOUR, LEAGUE, REWARDS, TRAINING


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


def test_tables_are_read_as_they_grow(tmp_path: Path) -> None:
    table = Table(tmp_path / f"{REWARDS}.csv", ["steps", "opponent", "matches", "return"])
    table.begin(0)
    files = HistoryFiles(tmp_path, (REWARDS,))
    assert files.read() is None
    for steps in (10, 20):
        table.add({"steps": steps, "opponent": ALL, "matches": 4, "return": 1.0, "term_win": 0.5})
        before = files.stamp()
        table.flush()
        assert files.stamp() != before
        history = files.read()
        assert history is not None and history.returns.steps().tolist()[-1] == steps
    assert history is not None and history.returns.weight == 8.0, "each row once"
    table.add({"steps": 30, "opponent": ALL, "matches": 4, "return": 1.0, "term_hit": 0.25})
    table.flush()  # a new column: the file is another one
    history = files.read()
    assert history is not None and history.returns.weight == 12.0
    assert set(history.terms) == {"win", "hit"}


def test_a_session_that_goes_on_from_an_earlier_version_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / f"{REWARDS}.csv"
    first = Table(path, ["steps", "opponent", "matches", "return"])
    first.begin(0)
    for steps in (10, 20, 30):
        first.add({"steps": steps, "opponent": ALL, "matches": 1, "return": 1.0})
    first.flush()
    files = HistoryFiles(tmp_path, (REWARDS,))
    assert files.read() is not None
    again = Table(path, ["steps", "opponent", "matches", "return"])
    again.begin(10)
    for steps in (15, 25, 35, 45):
        again.add({"steps": steps, "opponent": ALL, "matches": 1, "return": 2.0})
    again.flush()
    history = files.read()
    assert history is not None and history.returns.steps().tolist() == [10, 15, 25, 35, 45]


def test_a_row_that_is_being_written_waits(tmp_path: Path) -> None:
    path = tmp_path / f"{REWARDS}.csv"
    files = HistoryFiles(tmp_path, (REWARDS,))
    whole = f"steps,opponent,matches,return\n10,{ALL},1,1.0\n20,{ALL},1,1.0\n".encode()
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        history = files.read()
    assert history is not None and history.returns.steps().tolist() == [10, 20]


def test_stages_begin_when_their_events_came() -> None:
    history = History()
    history.add(LEAGUE, {"steps": 0, "time_s": 1.5, "event": "stage", "name": "first"})
    history.add(LEAGUE, {"steps": 9, "time_s": 60.0, "event": "stage", "name": "second"})
    assert history.stage_times == [(1.5, "first"), (60.0, "second")]


def test_reward_terms_come_with_the_largest_first_and_add_up() -> None:
    history = History()
    for steps in (10, 20, 30):
        history.add(
            REWARDS,
            {
                "steps": steps, "opponent": ALL, "matches": 2, "return": 1.0, "term_hit": -1.0,
                "term_win": 2.0, "term_never": 0.0,
            },
        )  # fmt: skip
    steps_, terms, returned = history.reward_terms(over=1.0)
    assert list(terms) == ["win", "hit"] and steps_.tolist() == [10, 20, 30]
    np.testing.assert_allclose(terms["win"] + terms["hit"], returned)
