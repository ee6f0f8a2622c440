"""The training page: curves with their targets, marks of stages, and where the time goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from doctor.ring_runs import WrittenRing
from doctor.written_runs import WrittenTraining
from run.dashboards import unpacked

from screens.dashboard.page_outline import PageOutline
from screens.dashboard.readings import reading_of
from understudy.screens.dashboard.pages import training
from understudy.telemetry import events as ev


def test_a_run_that_has_not_trained_says_so(tmp_path: Path) -> None:
    WrittenRing(tmp_path / "run")
    page = PageOutline(training.parts(reading_of(tmp_path / "run")))
    assert page.keys == ["learning"] and "Nothing was trained yet" in page.text


def test_the_curves_of_a_bot_have_their_target_and_limit(tmp_path: Path) -> None:
    ring = WrittenRing(tmp_path / "run", {"learner.kl_target": 0.03})
    ring.matches(20, won=0.5)
    ring.batches(30, samples_per_insert=7.0)
    page = PageOutline(training.parts(reading_of(tmp_path / "run")))
    assert "target 0.03" in page.chart("KL divergence of an update")
    assert "at most 8" in page.chart("Samples per insert")
    assert page.chart("Entropy").endswith("entropy from 0.8 to 0.8.")
    assert "matches" in page.text and "batches" in page.text  # where the time goes
    assert "does not record what the learner does between batches" in page.text


def test_a_limit_far_above_all_values_does_not_flatten_them(tmp_path: Path) -> None:
    ring = WrittenRing(tmp_path / "run", {"learner.max_gradient_norm": 40.0})
    ring.batches(10)
    page = PageOutline(training.parts(reading_of(tmp_path / "run")))
    assert "limit" not in page.chart("Gradient norm")


def test_training_on_a_schedule_has_no_kl_target(tmp_path: Path) -> None:
    for schedule, shown in (("linear", False), ("adaptive", True)):
        run = WrittenTraining(tmp_path / schedule, {"train.schedule": schedule})
        run.iterate({"based": 0.5}, count=10)
        page = PageOutline(training.parts(reading_of(tmp_path / schedule)))
        assert ("target" in page.chart("KL divergence of an update")) is shown


def test_benchmarks_and_iterations_share_the_time_of_training(tmp_path: Path) -> None:
    run = WrittenTraining(tmp_path / "run")
    run.iterate({"based": 0.5}, count=30, seconds=1.0)
    run.judge({"based": 0.5}, seconds=10.0)
    page = PageOutline(training.parts(reading_of(tmp_path / "run")))
    assert "iterations 30s 75%" in page.text
    assert "benchmarks 10s 25%" in page.text
    assert "does not record these two apart" in page.text


def test_stages_are_marked_in_every_curve(tmp_path: Path) -> None:
    runs = unpacked(tmp_path, "arena")
    page = PageOutline(training.parts(reading_of(runs / "arena")))
    names = [name for name, have in page.tags if have.get("class") == "mark"]
    assert len(names) == 2 * len(page.charts), "two stages in each chart"


@pytest.mark.parametrize("kind", ["ring", "served", "host", "memory", "population", "shadow"])
def test_runs_of_every_kind_have_the_page(tmp_path: Path, kind: str) -> None:
    page = PageOutline(training.parts(reading_of(unpacked(tmp_path, kind) / kind)))
    assert page.keys and page.text


def test_the_speed_of_a_servers_learner_is_that_of_its_last_batches(tmp_path: Path) -> None:
    ring = WrittenRing(tmp_path / "run")
    (tmp_path / "run" / "ledger").mkdir()
    ring.learner.write(
        ev.ContinuousTrained(
            batches=2, episodes=3, items=64, steps=500, skipped=0, seconds=0.5, utilisation=0.25,
            buffer=9, samples_per_insert=7.5, agreement=None, entropy_share=0.8, loss=0.2,
            policy_loss=0.1, value_loss=0.1, entropy=1.0, kl=0.01, explained_variance=0.4,
            clip_share=0.1, gradient_norm=0.3, learning_rate=1e-3,
        )
    )  # fmt: skip
    page = PageOutline(training.parts(reading_of(tmp_path / "run")))
    assert "Speed 1,000" in page.text
