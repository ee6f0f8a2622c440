"""Trends: bounded bins whose means are exact."""

from __future__ import annotations

import pytest

from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry
from understudy.telemetry.trends import Trend, TrendFold


def test_a_long_trend_keeps_its_mean_in_bounded_room() -> None:
    trend = Trend()
    for value in range(100_000):
        trend.add(float(value), float(value), version=value // 1000)
    assert len(trend.bins) <= 512
    assert trend.weight == 100_000
    assert trend.mean() == pytest.approx(49_999.5)
    assert trend.bins[-1].most == 99_999.0
    assert trend.bins[-1].version == 99


def test_the_last_bins_weigh_what_was_asked_for() -> None:
    trend = Trend()
    for value in (0.0, 0.0, 1.0, 1.0):
        trend.add(0.0, value, version=1)
    assert trend.mean(of=trend.last(2)) == 1.0
    assert trend.mean(of=trend.last(100)) == 0.5
    assert Trend().mean() is None


def test_matches_of_the_rules_are_told_apart() -> None:
    fold = TrendFold()
    for role, outcome in (("rules", "defeat"), ("champion", "victory"), ("champion", "aborted")):
        match = ev.MatchFinished(
            id=role, outcome=outcome, decisions=4, reward=1.0, version=1, seconds=1.0,
            saved=True, role=role,
        )  # fmt: skip
        fold.add(Entry(t=1.0, by="bot", e=match))
    assert fold.trends["win_rate"].means() == [1.0]
    assert fold.trends["rules_win_rate"].means() == [0.0]
