from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.config import StageConfig
from understudy.core.statistics import STAKES, detect, gains
from understudy.league.stage_evidence import (
    WAITING,
    Counts,
    StageTrial,
    by_opponent,
    followed,
    newest,
    percent,
    shown,
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


def test_the_newest_matches_in_words() -> None:
    window: dict[str, list[Counts]] = {"based": [(0, 0, 1000), (7, 2, 1), (30, 5, 5)]}
    assert shown(stage("win_rate:based"), window) == "based: 37 of 50 won"
    assert shown(stage("score:based"), window) == "based: 40.5 points of 50"
    both: dict[str, list[Counts]] = {"a": [(40, 0, 0)], "b": [(5, 0, 5)]}
    assert shown(stage("win_rate:a+b"), both) == "a: 40 of 40 won; b: 5 of 10 won"
    assert shown(stage("win_rate:a+b"), both | {"b": [(5, 0, 4)]}) == ""  # too few
    assert shown(stage("win_rate:a+b"), {"a": [(40, 0, 0)]}) == ""
    assert shown(stage(""), {"": [(40, 0, 0)]}) == ""


def test_matches_one_by_one_are_the_detector_itself() -> None:
    random, trial, evidence = np.random.default_rng(0), StageTrial(0.7), np.zeros(len(STAKES))
    for worth in random.choice([0.0, 0.5, 1.0], 200).tolist():
        counts = (int(worth == 1.0), int(worth == 0.5), int(worth == 0.0))
        trial = followed(trial, stage("score:based"), {"based": counts, "other": (9, 0, 0)})
        evidence = detect(evidence, gains(np.array([worth]), above=0.7))
    assert trial.evidence == pytest.approx(tuple(evidence))
    assert trial.reached == pytest.approx(evidence.mean())
    assert (trial.counted, trial.waiting) == (200, {})


def test_draws_are_no_wins_or_half_of_one() -> None:
    drawn: dict[str, Counts] = {"based": (0, 20, 0)}
    assert followed(StageTrial(0.4), stage("score:based"), drawn).reached > 40
    assert followed(StageTrial(0.4), stage("win_rate:based"), drawn).reached < 20


def test_evidence_of_less_is_that_of_more_seen_from_the_other_side() -> None:
    less = followed(StageTrial(0.8), stage("win_rate:a"), {"a": (30, 0, 30)}, below=True)
    more = followed(StageTrial(0.2), stage("score:a"), {"a": (30, 0, 30)})
    assert less.reached > 100 and more.reached > 100
    even = followed(StageTrial(0.5), stage("score:a"), {"a": (0, 9, 0)})
    other = followed(StageTrial(0.5), stage("score:a"), {"a": (0, 9, 0)}, below=True)
    assert even.evidence == pytest.approx(other.evidence)


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_order_within_an_iteration_does_not_depend_on_the_results(wins: int, more: int) -> None:
    """So one more win instead of a loss is never less evidence."""
    matches = wins + more + 1
    one = followed(StageTrial(0.7), stage("win_rate:a"), {"a": (wins, 0, matches - wins)})
    other = followed(StageTrial(0.7), stage("win_rate:a"), {"a": (wins + 1, 0, matches - wins - 1)})
    assert other.reached >= one.reached


def test_several_opponents_are_a_mean_not_a_sum() -> None:
    """Of 440 matches 91% are won; of their mean, 70% is no more than the bar."""
    both, random, trial = stage("win_rate:a+b"), np.random.default_rng(1), StageTrial(0.7)
    for _ in range(40):
        wins = int(random.binomial(1, 0.4))
        trial = followed(trial, both, {"a": (10, 0, 0), "b": (wins, 0, 1 - wins)})
    assert trial.reached < 1000
    assert set(trial.waiting) == {"a"}  # more than its partner had; and no more than a few wait
    assert sum(trial.waiting["a"]) == WAITING
    assert msgspec.json.decode(msgspec.json.encode(trial), type=StageTrial) == trial
    alone = followed(StageTrial(0.7), both, {"a": (10, 0, 0)})
    assert (alone.reached, alone.waiting) == (0.0, {"a": (10, 0, 0)})
    paired = followed(alone, both, {"b": (10, 0, 0)})
    assert paired.reached > 10.0 and paired.waiting == {}


def test_shares_are_rounded_for_people() -> None:
    assert percent(0.7) == "70%" and percent(0.725) == "72.5%"
