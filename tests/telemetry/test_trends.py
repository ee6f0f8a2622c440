"""Trends: bounded bins whose means are exact."""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry
from understudy.telemetry.trends import Trend, TrendFold

from .entries import batch, continuous, match, served


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


def test_training_is_told_apart_by_opponent_and_snapshots_are_one() -> None:
    fold = TrendFold()
    fold.add(
        Entry(
            t=1.0,
            by="train",
            e=ev.MatchesTrained(
                steps=1,
                results={
                    "based": (4, 1, 1, 2),
                    "step-8": (2, 2, 0, 0),
                    "step-9": (2, 0, 0, 2),
                    "random": (3, 0, 0, 0),
                },
                ended=[("based", 1, 100, 0.0), ("based", -1, 300, 0.0)],
                returns={"based": 0.5, "step-8": 2.0, "random": 9.0},
            ),
        )
    )
    assert fold.trends["win_rate.based"].mean() == 0.25
    assert fold.trends["win_rate.self"].mean() == 0.5
    assert "win_rate.random" not in fold.trends, "no match against it has ended"
    assert fold.trends["draw_rate"].mean() == 0.125
    (frames,) = fold.trends["frames"].bins
    assert (frames.mean, frames.least, frames.most, frames.weight) == (200.0, 100.0, 300.0, 2)
    (returned,) = fold.trends["return"].bins
    assert (returned.mean, returned.weight) == (1.0, 6), "one value for all that ended together"


def test_a_benchmark_is_told_by_opponent_and_together() -> None:
    fold = TrendFold()
    opponents = {"based": ev.OpponentTally(5, 0, 15), "random": ev.OpponentTally(20, 0, 0)}
    judged = ev.CheckpointJudged(steps=1, version=1, seconds=3.0, opponents=opponents)
    fold.add(Entry(t=1.0, by="train", e=judged))
    assert fold.trends["benchmark.based"].mean() == 0.25
    assert fold.trends["benchmark"].mean() == 0.625 and fold.trends["benchmark"].weight == 40
    assert fold.trends["benchmark_s"].mean() == 3.0


def test_the_latents_of_opponents_lie_apart_by_the_root_of_their_mean_square() -> None:
    fold = TrendFold()
    measured = ev.StrategyMeasured(
        steps=1, latent_mean=0.0, latent_spread=2.0, attention_entropy=3.0, drift=0.0,
        by_opponent={"based": (1.0, 0.0), "random": (-1.0, 0.0)},
    )  # fmt: skip
    fold.add(Entry(t=1.0, by="train", e=measured))
    assert fold.trends["latent_apart"].mean() == pytest.approx(0.5**0.5)


def documented_trends() -> set[str]:
    rows = re.findall(r"^ *\| (`[^|]+)", TrendFold.__doc__ or "", re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}


def test_every_trend_of_the_table_is_made_and_no_other() -> None:
    tally = ev.OpponentTally(1, 0, 0, 0.5)
    told: list[ev.Event] = [
        *(match(outcome) for outcome in ("victory", "defeat")),
        match("victory", role="rules"),
        batch(version_lag={"4-7": 3}),
        continuous(),
        served(),
        ev.MatchesTrained(
            steps=1, results={"a": (1, 1, 0, 0)}, ended=[("a", 1, 100, 0.0)], matches=1
        ),
        ev.CheckpointJudged(steps=1, version=1, seconds=1.0, opponents={"a": tally}, matches=1),
        ev.StrategyMeasured(
            steps=1,
            latent_mean=0.0,
            latent_spread=0.1,
            attention_entropy=0.1,
            drift=0.0,
            by_opponent={"a": (0.0,), "b": (1.0,)},
        ),
        ev.VersionPublished(version=1, parent=0, matches=1, promoted=True, memory_mb=10.0),
    ]
    fold = TrendFold()
    for one in told:
        fold.add(Entry(t=1.0, by="bot", e=one))
    assert {re.sub(r"\.a$", ".OPPONENT", name) for name in fold.trends} == documented_trends()


def test_there_are_never_more_trends_than_a_run_may_have() -> None:
    fold = TrendFold()
    for number in range(1000):
        results = {f"bot {number}": (1, 1, 0, 0)}
        trained = ev.MatchesTrained(steps=1, results=results)
        fold.add(Entry(t=1.0, by="train", e=trained))
    assert len(fold.trends) == 128
    assert fold.trends["win_rate"].weight == 1000


def test_the_memory_of_a_learner_is_a_trend_where_it_is_known() -> None:
    fold = TrendFold()
    for number, memory in enumerate([0.0, 512.0], 1):
        published = ev.VersionPublished(
            version=number, parent=None, matches=1, promoted=True, memory_mb=memory
        )
        fold.add(Entry(t=1.0, by="learner", e=published))
    assert fold.trends["memory_mb"].means() == [512.0]


@given(
    values=st.lists(
        st.tuples(
            st.floats(allow_nan=True, allow_infinity=True) | st.integers(-9, 9),
            st.integers(-1, 5) | st.floats(0.0, 2.0),
        ),
        max_size=60,
    ),
    cuts=st.lists(st.integers(0, 60), max_size=4),
    weighted=st.booleans(),
)
def test_values_in_any_pieces_give_the_same_bits(
    values: list[tuple[float, float]], cuts: list[int], weighted: bool
) -> None:
    one, pieces = Trend(values_a_bin=4), Trend(values_a_bin=4)
    for place, (value, weight) in enumerate(values):
        one.add(float(place), value, place // 7, weight if weighted else 1.0)
    bounds = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    for begin, end in pairwise(bounds):
        some = values[begin:end]
        pieces.extend(
            [(float(place), place // 7) for place in range(begin, end)],
            [value for value, _ in some],
            [weight for _, weight in some] if weighted else None,
        )
    assert msgspec.json.encode(pieces) == msgspec.json.encode(one)
