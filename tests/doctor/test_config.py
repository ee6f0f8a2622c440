"""Settings that cancel one another or can never act, and the same run with the defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from walk.toys import SetClock, open_run, spool_of

from understudy.core.config import Config, with_values
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Journal

from .written_runs import WrittenTraining, found


def ring(
    root: Path,
    settings: dict[str, Any],
    *,
    mode: str = "learn",
    match_s: float = 1.0,
    decisions: int = 100,
    versions: int = 1,
) -> RunFolder:
    """A bot with 40 matches, and these settings."""
    clock = SetClock()
    folder = open_run(root, with_values(Config(), settings), clock)
    spool_of(folder)
    if mode == "auto":
        (root / "promotion").mkdir()
    journal = Journal(folder.journal, "bot", clock)
    journal.write(ev.BotStarted(pid=1, mode=mode, learner="process", version=0))
    for number in range(40):
        clock.advance(match_s)
        journal.write(
            ev.MatchFinished(
                id=str(number), outcome="victory" if number % 3 else "defeat", decisions=decisions,
                reward=1.0 if number % 3 else -1.0, version=0, seconds=match_s, saved=True,
                decision_us=(50.0, 90.0), mode=mode,
            )
        )  # fmt: skip
        for turn in range(versions):
            version = 1 + versions * number + turn
            journal.write(
                ev.VersionPublished(version=version, parent=None, matches=1, promoted=True)
            )
    return folder


def served(root: Path, settings: dict[str, Any]) -> RunFolder:
    clock = SetClock()
    folder = open_run(root, with_values(Config(), settings), clock)
    spool_of(folder)
    (root / "ledger").mkdir()
    Journal(folder.journal, "server", clock).write(
        ev.BotStarted(pid=1, mode="serve", learner="process", version=0)
    )
    return folder


@pytest.mark.parametrize("mode", ["learn", "shadow", "auto", "play"])
def test_the_defaults_agree_with_each_other_in_every_mode(tmp_path: Path, mode: str) -> None:
    assert found(ring(tmp_path / "run", {}, mode=mode)) == {}


def test_the_defaults_of_a_server_and_of_training_agree(tmp_path: Path) -> None:
    assert found(served(tmp_path / "served", {})) == {}
    assert WrittenTraining(tmp_path / "training").found() == {}


@pytest.mark.parametrize(
    ("settings", "mode", "weight", "words"),
    [
        ({"learner.epochs": 8}, "learn", "note", "ever replayed"),
        ({"learner.replay_capacity": 2}, "learn", "note", "holds fewer matches"),
        ({"learner.kl_stop": 0.001}, "learn", "warning", "can only rise"),
        ({"learner.imitation_weight": 0.0}, "shadow", "problem", "Nothing is imitated"),
        ({"promotion.alpha": 0.01}, "learn", "note", "nothing is promoted in this run"),
        (
            {"promotion.practice_share": 0.0, "promotion.cameo_share": 0.0},
            "auto", "warning", "only copy the rules",
        ),
        ({"promotion.first_canaries": 500}, "auto", "warning", "never comes to its full share"),
        (
            {"promotion.long": 10, "promotion.longest": 10, "promotion.first_canaries": 1},
            "auto", "problem", "tests are too short",
        ),
    ],
)  # fmt: skip
def test_settings_of_the_ring(
    tmp_path: Path, settings: dict[str, Any], mode: str, weight: str, words: str
) -> None:
    checks = found(ring(tmp_path / "run", settings, mode=mode))
    assert checks.keys() == {"config-disagrees"}
    finding = checks["config-disagrees"]
    assert words in finding.title and finding.weight == weight
    assert any(key in " ".join((*finding.evidence, finding.next_step)) for key in settings)


@pytest.mark.parametrize(
    ("settings", "pace", "words"),
    [
        ({"learner.publish_interval_s": 9e9}, {"match_s": 60.0, "versions": 0}, "more rarely"),
        ({"learner.max_age_s": 30.0}, {"match_s": 60.0}, "longer than experience may be old"),
        ({"learner.max_version_lag": 2}, {"match_s": 60.0, "versions": 4}, "too old before it"),
        ({"promotion.match_timeout_s": 30.0}, {"match_s": 60.0, "mode": "auto"}, "count as lost"),
    ],
)
def test_settings_against_the_length_of_matches(
    tmp_path: Path, settings: dict[str, Any], pace: dict[str, Any], words: str
) -> None:
    assert words in found(ring(tmp_path / "sick", settings, **pace))["config-disagrees"].title
    assert found(ring(tmp_path / "healthy", {}, **pace)) == {}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"live.threshold": 1.0}, "can send nothing"),
        ({"live.threshold": -1.5}, "lets everything through"),
        (
            {"continuous.actual_weight": 0.0, "continuous.simulated_weight": 0.0},
            "learned from is 0",
        ),
        ({"continuous.capacity": 16}, "fewer items than a batch"),
        ({"continuous.max_age_s": 5.0}, "too old before the learner"),
        ({"continuous.entropy_floor": 0.5}, "counts as collapsed"),
        ({"live.score": [-50.0, 50.0]}, "a small part of their scale"),
        ({"promotion.alpha": 0.01}, "nothing is promoted"),
    ],
)
def test_settings_of_a_server(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    assert words in found(served(tmp_path / "run", settings))["config-disagrees"].title


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"train.steps": 1_000_000, "train.opponents": "self=1,based=1"},
            "never meets itself",
        ),
        ({"league.sampler": "latest"}, "no snapshot is ever met"),
        ({"train.steps": 100_000}, "No benchmark"),
        ({"population.replaced": 0.5}, "there is one agent"),
        ({"learner.kl_stop": 0.001}, "can only rise"),
    ],
)
def test_settings_of_training(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    run = WrittenTraining(tmp_path / "run", settings)
    run.iterate({"based": 0.5}, count=2)
    assert words in run.found()["config-disagrees"].title


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"learner.learning_rate": 1.0, "learner.learning_rate_max": 1.0}, "learning rate is 1"),
        ({"learner.entropy_weight": 5.0}, "entropy bonus"),
        ({"learner.clip": 3.0}, "near the policy that played"),
        ({"learner.value_weight": 0.0}, "value is never trained"),
        ({"learner.gamma": 0.5}, "discounted to nothing"),
    ],
)
def test_values_that_are_absurd(tmp_path: Path, settings: dict[str, Any], words: str) -> None:
    assert words in found(ring(tmp_path / "run", settings))["config-absurd"].title
