from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.games import catalog
from understudy.match.series import Results
from understudy.match.tally import EvaluationReport, Tally, wilson


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


def test_a_report_has_means_over_matches() -> None:
    end = Results(
        score=np.array([1, -1, 0, 1], np.float32),
        frames=np.array([10, 20, 30, 40], np.int32),
        path=np.array([7, 7, 8, 9], np.uint32),
        returned=np.array([1.5, -0.5, 0.0, 1.0], np.float32),
        measured=np.array([[60, 20, 30, 10], [0, 30, 10, 0], [3, 0, 1, 3]], np.float32),
    )
    report = EvaluationReport.of(end, ("damage_dealt", "damage_taken", "knockouts"))
    assert (report.mean_frames, report.mean_return, report.distinct) == (25.0, 0.5, 3)
    assert report.measures == {"damage_dealt": 30.0, "damage_taken": 10.0, "knockouts": 1.75}
    assert report.ratios == {"damage_ratio": 3.0}
    columns = {column.name: column for column in catalog.measure_columns("brawl")}
    assert columns["knockouts"].value(report.measures) == 1.75
    assert columns["falls"].value(report.measures) is None
    assert report.as_dict() == {
        **Tally(wins=2, draws=1, losses=1).as_dict(),
        "distinct": 3,
        "mean_frames": 25.0,
        "mean_return": 0.5,
        "damage_ratio": 3.0,
        "measures": report.measures,
    }


def test_no_damage_taken_is_no_ratio() -> None:
    tally = Tally(wins=1, draws=0, losses=0)
    unhurt = {"damage_dealt": 9.0, "damage_taken": 0.0}
    for measures in (unhurt, {}):
        report = EvaluationReport(tally=tally, distinct=1, mean_frames=1.0, measures=measures)
        assert report.ratios["damage_ratio"] is None and report.as_dict()["damage_ratio"] is None
