"""Runs of `train` that are sick, and healthy ones beside them."""

from __future__ import annotations

import math
import signal
from pathlib import Path

import pytest
from training.environments.test_training import COUNTDOWN, RUN, elsewhere, session
from walk.toys import SPEC

from understudy.policy.presets import network
from understudy.policy.spec import PolicySpec
from understudy.telemetry import events as ev
from understudy.training.environments.session import EnvironmentProgress
from understudy.training.train import train_environment

from .written_runs import ITERATION, WrittenTraining, found

__all__ = ["elsewhere"]
STRATEGIST = PolicySpec(SPEC.features, SPEC.actions, network("small"))
pytestmark = pytest.mark.usefixtures("elsewhere")


def test_a_run_that_learns_has_no_finding(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    for turn in range(10):
        run.iterate({"based": turn / 10, "random": 0.5 + turn / 20}, count=10, returned=turn)
        run.judge({"based": turn / 10, "random": 0.5 + turn / 20})
    assert run.found() == {}


def test_a_run_that_wins_nothing_after_ten_million_steps_does_not_learn(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    run.iterate({"based": 0.02, "random": 0.1}, count=100)
    finding = run.found()["training-not-learning"]
    assert finding.weight == "problem"
    assert "Against based: 2% of late." in finding.evidence


def test_a_run_whose_returns_are_all_equal_does_not_learn(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    run.iterate({"based": 0.0}, count=100, returned=-0.1, varied=0.0)
    assert run.found().keys() == {"training-not-learning"}


def test_a_young_run_that_wins_nothing_may_yet_learn(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    run.iterate({"based": 0.0}, count=9, matches=300)
    assert run.steps == 9 * ITERATION and run.found() == {}


def test_returns_that_rise_are_learning_though_nothing_is_won_yet(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    for turn in range(10):
        run.iterate({"based": 0.0}, count=10, returned=turn / 10)
    assert run.found() == {}


def test_one_opponent_that_is_never_beaten_is_named(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    for turn in range(10):
        run.iterate({"based": 0.0, "random": 0.5 + turn / 20}, count=10, returned=turn / 10)
    finding = run.found()["opponent-never-beaten"]
    assert "never against based" in finding.title and "random" in finding.evidence[0]


def test_a_best_benchmark_that_is_long_past_is_found(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    for rate in (0.2, 0.9, 0.5, 0.4, 0.4, 0.4):
        run.iterate({"based": rate}, count=5, returned=run.steps)
        run.judge({"based": rate, "random": rate})
    finding = run.found()["training-went-backwards"]
    assert "version 2 was better" in finding.title
    assert "understudy models rollback 2" in finding.next_step


def test_benchmarks_that_vary_by_chance_are_no_way_back(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    for rate in (0.2, 0.85, 0.75, 0.8, 0.7, 0.8):
        run.iterate({"based": rate}, count=5, returned=run.steps)
        run.judge({"based": rate, "random": rate})
    assert run.found() == {}


def test_a_policy_that_beats_only_its_own_past_is_found(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run", {"train.opponents": "self=9,based=1"})
    for _ in range(3):
        run.iterate({"step-100000": 0.95, "step-200000": 0.9}, count=10)
        run.judge({"based": 0.2, "random": 0.3})
    finding = run.found()["overfits-self-play"]
    assert "92%" in finding.evidence[0] and "based 20%" in finding.evidence[1]


def test_a_league_that_also_beats_bots_is_healthy(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run", {"train.opponents": "self=9,based=1"})
    for _ in range(3):
        run.iterate({"step-100000": 0.95, "step-200000": 0.9}, count=10)
        run.judge({"based": 0.8, "random": 0.95})
    assert run.found() == {}


def test_win_rates_that_swing_are_found(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    for turn in range(12):
        run.iterate({"based": 0.9 if turn % 2 else 0.1}, count=10, returned=turn)
    finding = run.found()["oscillates"]
    assert "against based" in finding.title and "10 turns of 25 points" in finding.evidence[0]


def test_win_rates_that_rise_with_small_setbacks_do_not_swing(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    for turn in range(12):
        rate = 0.2 + turn / 20 - (0.15 if turn % 2 else 0.0)
        run.iterate({"based": rate}, count=10, returned=turn)
    assert run.found() == {}


def measure(run: WrittenTraining, *, apart: float, entropy: float, count: int = 80) -> None:
    """Latents of two opponents with means this far apart, and attention of this entropy."""
    for turn in range(count):
        means: dict[str, tuple[float, ...]] = {"based": (apart, 0.0), "random": (-apart, 0.0)}
        run.iterate({"based": turn / count}, returned=turn)
        run.journal.write(
            ev.StrategyMeasured(
                steps=run.steps, latent_mean=0.0, latent_spread=1.0, attention_entropy=entropy,
                drift=0.0, by_opponent=means,
            )
        )  # fmt: skip


def test_a_latent_that_is_the_same_for_all_and_uniform_attention_are_found(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run", spec=STRATEGIST)
    measure(run, apart=0.01, entropy=math.log(33))
    checks = run.found()
    assert checks.keys() == {"latent-ignores-opponent", "uniform-attention"}
    assert "ln 33" in checks["uniform-attention"].evidence[0]


def test_a_latent_that_differs_and_attention_that_chooses_are_healthy(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run", spec=STRATEGIST)
    measure(run, apart=1.0, entropy=0.96 * math.log(33))
    assert run.found() == {}


def test_matches_that_all_end_at_the_time_limit_are_found(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    run.iterate({"constant": 0.0}, count=20, draws=True, frames=900)
    finding = run.found()["never-by-goal"]
    assert "100% were draws, and each took 900 frames" in finding.evidence[0]


def test_an_environment_without_a_goal_in_reach_and_without_an_update_is_found() -> None:
    def show(progress: EnvironmentProgress) -> None:
        signal.raise_signal(signal.SIGINT)  # after the first segment, which only fits

    train_environment(session(environment=COUNTDOWN, options={"after": 2}), show=show)
    checks = found(RUN)
    assert checks.keys() == {"never-by-goal", "no-update"}
    assert "--set train.noise_steps=16" in checks["never-by-goal"].next_step


CURRICULUM = {
    "curriculum.stages": [
        {
            "name": "easy", "opponents": "based=1", "measure": "win_rate:based", "threshold": 0.9,
            "min_matches": 20, "window": 40,
        },
        {"name": "hard", "opponents": "based=1"},
    ]
}  # fmt: skip


@pytest.mark.parametrize(("rate", "passed"), [(0.6, False), (0.95, True)])
def test_a_stage_that_is_never_passed_is_found(
    tmp_path: Path, rate: float, *, passed: bool
) -> None:
    run = WrittenTraining(tmp_path / "run", CURRICULUM)
    run.journal.write(ev.StageChanged(steps=0, before="", after="easy", reason="the start"))
    run.iterate({"based": rate}, count=40, stage="easy")
    assert ("stage-not-passed" in run.found()) is not passed


def test_a_run_that_becomes_slow_is_found_with_where_its_time_goes(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    for turn in range(8):
        seconds = 1.0 if turn < 4 else 9.0
        run.iterate({"based": turn / 8}, count=10, seconds=seconds, returned=turn)
    finding = run.found()["slower-steps"]
    assert "updates 100%" in finding.evidence[1]


def test_benchmarks_that_take_most_of_the_time_are_found(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    for turn in range(5):
        run.iterate({"based": turn / 5}, count=4, returned=turn)
        run.judge({"based": turn / 5}, seconds=20.0)
    finding = run.found()["much-benchmarking"]
    assert "83%" in finding.title and "monitor.benchmark_steps" in finding.next_step


def rewarded(run: WrittenTraining, *returns: float, varied: float = 1.0) -> None:
    """Matches of an environment, a hundred iterations for each of these mean returns."""
    for mean in returns:
        for turn in range(20):
            run.iterate({}, seconds=0.1)
            run.journal.write(
                ev.MatchesTrained(
                    steps=run.steps, results={}, matches=4, total_matches=4,
                    returns={"environment": mean + varied * (turn % 3)},
                )
            )  # fmt: skip


def test_an_environment_in_which_the_return_does_not_rise_is_found(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    rewarded(run, *[20.0] * 6)
    assert run.found().keys() == {"training-not-learning"}


def test_a_return_that_is_lost_again_is_found(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    rewarded(run, 20, 100, 300, 400, 380, 150, 60, 40)
    finding = run.found()["training-went-backwards"]
    assert finding.certainty == "possible" and "at its best" in finding.evidence[0]


@pytest.mark.parametrize("value", [0.1, 1.0])  # one whose sums are rounded, one whose are exact
def test_a_return_that_is_always_the_same_has_not_gone_backwards(
    tmp_path: Path, value: float
) -> None:
    run = WrittenTraining(tmp_path / "run")
    rewarded(run, *[value] * 8, varied=0.0)
    assert run.found().keys() == {"training-not-learning"}


def test_a_return_that_rises_with_setbacks_is_healthy(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    rewarded(run, 20, 100, 300, 250, 400, 320, 480, 420)
    assert run.found() == {}


@pytest.mark.parametrize(("times", "sick"), [(1, False), (2, True)])
def test_numbers_that_are_not_finite_again_and_again_are_found(
    tmp_path: Path, times: int, *, sick: bool
) -> None:
    run = WrittenTraining(tmp_path / "run")
    run.iterate({"based": 0.5}, count=3)
    run.judge({"based": 0.5})
    for _ in range(times):
        message = "training gave numbers that are not finite: {'loss': nan}"
        run.journal.write(ev.Problem(where="training", message=message))
    checks = run.found()
    assert checks.keys() == ({"training-not-finite"} if sick else set())
    if sick:
        assert "{'loss': nan}" in checks["training-not-finite"].evidence[1]


@pytest.mark.parametrize(
    ("batches", "weight"), [(150, "warning"), (250, "note")], ids=["often", "seldom"]
)
def test_numbers_that_were_seldom_not_finite_are_a_note(
    tmp_path: Path, batches: int, weight: str
) -> None:
    run = WrittenTraining(tmp_path / "run")
    run.judge({"based": 0.5})
    run.journal.write(ev.RolledBack(version=1, to=1, reason="not finite"))
    run.journal.write(ev.RolledBack(version=1, to=1, reason="not finite"))
    assert run.found()["training-not-finite"].weight == "problem", "no version has come since"
    run.judge({"based": 0.5})
    run.iterate({"based": 0.5}, count=batches)
    assert run.found()["training-not-finite"].weight == weight
