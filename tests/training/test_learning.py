"""What the journal is told of an iteration is what happened."""

from __future__ import annotations

import math

import pytest

from understudy.arena.results import EndedMatch, Iteration, OpponentLatents, Result
from understudy.match.tally import EvaluationReport, Tally
from understudy.training.learning import (
    checkpoint_judged,
    drift,
    matches_trained,
    strategy_measured,
)


def result(wins: int, losses: int, **sums: float) -> Result:
    return Result(
        started=9,
        wins=wins,
        draws=0,
        losses=losses,
        frames=30,
        returns=6.0,
        terms={"win": 4.0, "closing": 2.0},
        measures=sums,
    )


def insight(**latents: tuple[float, ...]) -> OpponentLatents:
    return OpponentLatents(latents=latents, mean=0.1, spread=0.2, attention_entropy=1.5)


def test_matches_by_opponent_and_one_by_one() -> None:
    iteration = Iteration(
        metrics={},
        results={"based": result(2, 1, knockouts=5.0), "step-64": result(0, 0)},
        ended=[EndedMatch("based", 1, 12, 2.5)],
        residual=0.0,
        opponent_latents=None,
    )
    told = matches_trained(iteration, steps=128, stage="first")
    assert (told.steps, told.stage) == (128, "first")
    assert told.results == {"based": (9, 2, 0, 1), "step-64": (9, 0, 0, 0)}
    assert told.returns == {"based": 2.0}, "a mean, of those that ended"
    assert told.terms == {"based": {"win": 4.0, "closing": 2.0}}
    assert told.measures == {"based": {"knockouts": 5.0}}
    assert told.ended == [("based", 1, 12, 2.5)]


def test_drift_is_the_mean_distance_of_those_met_both_times() -> None:
    before = insight(based=(0.0, 0.0), random=(1.0, 1.0), gone=(9.0, 9.0))
    now = insight(based=(3.0, 4.0), random=(1.0, 1.0), new=(5.0, 5.0))
    assert drift(now, before) == pytest.approx(2.5)
    assert drift(now, None) == drift(now, insight(gone=(9.0, 9.0))) == 0.0


def test_a_strategy_is_told_with_the_first_numbers_of_its_latents() -> None:
    told = strategy_measured(insight(based=(1.0, 2.0, 3.0, 4.0)), None, steps=64)
    assert told.by_opponent == {"based": (1.0, 2.0, 3.0)}
    assert (told.latent_mean, told.latent_spread, told.attention_entropy) == (0.1, 0.2, 1.5)


def test_judged_checkpoints_are_sums_but_for_the_mean_return() -> None:
    report = EvaluationReport(
        tally=Tally(3, 0, 1), mean_return=1.5, mean_frames=40.0, distinct=4,
        measures={"damage_dealt": 10.0, "knockouts": 0.75},
    )  # fmt: skip
    told = checkpoint_judged({"based": report}, steps=640, version=2, seconds=0.5)
    one = told.opponents["based"]
    assert (one.wins, one.draws, one.losses, one.mean_return) == (3, 0, 1, 1.5)
    assert (one.damage_dealt, one.knockouts, one.falls) == (40.0, 3.0, 0.0)
    assert math.isclose(told.seconds, 0.5) and told.version == 2
