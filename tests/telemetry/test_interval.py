from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.telemetry import events as ev
from understudy.telemetry.training_rows import ALL, TrainingInterval

from .entries import batch, iteration, unit

Match = tuple[str, int, int, dict[str, int]]

matches = st.tuples(
    st.sampled_from(["based", "random", "step-65536"]),
    st.sampled_from([1, 0, -1]),
    st.integers(1, 2700),
    st.fixed_dictionaries({"win": st.integers(-(2**23), 2**23), "hit": st.integers(-999, 999)}),
)


@settings(max_examples=80)
@given(played=st.lists(matches, min_size=1, max_size=30), size=st.integers(1, 7))
def test_rows_are_the_plain_means_however_iterations_were_cut(
    played: list[Match], size: int
) -> None:
    interval = TrainingInterval({"damage_ratio": ("damage_dealt", "damage_taken")})
    for begin in range(0, len(played), size):
        interval.add_matches(iteration(begin + 1, *played[begin : begin + size]))
    behaviour = {row["opponent"]: row for row in interval.behaviour()}
    rewards = {row["opponent"]: row for row in interval.rewards()}
    for name in {match[0] for match in played} | {ALL}:
        mine = [match for match in played if name in {match[0], ALL}]
        row = rewards[name]
        assert row["matches"] == len(mine)
        assert row["return"] == sum(unit(sum(m[3].values())) for m in mine) / len(mine)
        assert row["term_win"] == sum(unit(m[3]["win"]) for m in mine) / len(mine)
        assert row["residual"] == 0.0
        if name != ALL:
            row = behaviour[name]
            assert row["win_rate"] == sum(m[1] > 0 for m in mine) / len(mine)
            assert (row["wins"], row["draws"], row["losses"]) == tuple(
                sum(m[1] == score for m in mine) for score in (1, 0, -1)
            )
            assert row["mean_frames"] == pytest.approx(sum(m[2] for m in mine) / len(mine))
            assert row["damage_ratio"] == pytest.approx(1.5)


def test_a_return_that_its_terms_do_not_explain_shows() -> None:
    told = iteration(1, ("based", 1, 100, {"win": 65536}))
    wrong: Any = [("based", 1, 100, 1.5)]
    interval = TrainingInterval()
    interval.add_matches(
        ev.MatchesTrained(steps=1, results=told.results, terms=told.terms, ended=wrong)
    )
    assert interval.rewards()[0]["residual"] == 0.5


def test_a_game_without_terms_has_a_return_and_no_residual() -> None:
    interval = TrainingInterval()
    interval.add_matches(
        ev.MatchesTrained(steps=1, results={"based": (4, 2, 0, 2)}, returns={"based": 0.25})
    )
    assert interval.rewards() == [
        {"opponent": ALL, "matches": 4, "return": 0.25},
        {"opponent": "based", "matches": 4, "return": 0.25},
    ]


def test_environments_of_others_have_matches_without_a_winner() -> None:
    interval = TrainingInterval()
    interval.add_matches(
        ev.MatchesTrained(steps=1, results={}, returns={"environment": 9.5}, matches=3)
    )
    (row,) = interval.behaviour()
    assert (row["matches"], row["win_rate"], row["mean_return"]) == (3, None, 9.5)


def test_updates_are_averaged_and_speed_is_steps_over_seconds() -> None:
    interval = TrainingInterval()
    apart: dict[str, Any] = {"behaviour_kl": 0.1, "behaviour_kl_max": 0.5}
    interval.add_batch(batch(steps=1000, seconds=2.0, kl=0.01, learning_rate=1e-3, **apart))
    interval.add_batch(
        batch(steps=1000, seconds=3.0, kl=0.03, learning_rate=5e-4, recognition_loss=1.5)
    )
    row = interval.training()
    assert row["recognition_loss"] == pytest.approx(0.75)
    assert row["iterations"] == 2
    assert row["kl"] == pytest.approx(0.02)
    assert row["learning_rate"] == 5e-4
    assert row["behaviour_kl"] == pytest.approx((0.1 + 0.002) / 2)
    assert row["behaviour_kl_max"] == 0.5, "the largest, not a mean of those"
    assert row["steps_s"] == pytest.approx(400.0)


def test_matches_that_go_on_are_in_no_row() -> None:
    interval = TrainingInterval()
    interval.add_matches(ev.MatchesTrained(steps=1, results={"based": (5, 0, 0, 0)}))
    assert interval.behaviour() == interval.rewards() == []
