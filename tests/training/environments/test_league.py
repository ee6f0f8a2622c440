"""The league in environments: past versions, bots, curriculum and ratings, kept and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from training.environments.test_training import elsewhere  # noqa: F401  a fixture
from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.core.errors import ConfigError
from understudy.judging.ratings import read_league_history
from understudy.policy.mlp import Mlp
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Versions
from understudy.supervise.budget import Budget
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Reader
from understudy.training import named_configs
from understudy.training.environments.league import stages_of
from understudy.training.environments.session import (
    EnvironmentProgress,
    EnvironmentSession,
    environment_config,
)
from understudy.training.train import train_environment

CONTEST = "pettingzoo:training.environments.contest"
TICTACTOE = "pettingzoo:pettingzoo.classic.tictactoe_v3"
RUN = Path("runs/league")
BATCH = 16 * 32

BOTS = """
def wrong(observation, legal, rng):
    return 2 if legal[2] else int(observation["observation"][0] < 0)

BOTS = {"wrong": wrong}
"""


def small(**changes: Any) -> Config:
    quick = {
        "train.games": 16,
        "train.segment": 32,
        "learner.gamma": 0.9,
        "learner.epochs": 4,
        "learner.learning_rate": 3e-3,
        "learner.learning_rate_max": 1e-2,
        "learner.kl_target": 0.03,
        "train.checkpoint_steps": 4 * BATCH,
        "train.opponents": "random=1,self=1",
        "league.save_freq": 4 * BATCH,
        "monitor.csv": False,  # drawing curves takes longer than most of these trainings
    }
    return with_values(environment_config(), quick | changes)


def session(**changes: Any) -> EnvironmentSession:
    steps = changes.pop("steps", 12 * BATCH)
    kept: dict[str, Any] = {
        "environment": CONTEST,
        "run": RUN,
        "evaluate": 0,
        "network": Mlp((32,)),
        "config": small(),
        "budget": Budget(steps=steps),
    }
    return EnvironmentSession(**{**kept, **changes})


def told(kind: type[Any]) -> list[Any]:
    entries = Reader(RUN / "journal").new()
    return [entry.e for entry in entries if isinstance(entry.e, kind)]


def test_it_learns_against_its_past_and_is_rated() -> None:
    news: list[str] = []
    summary = train_environment(
        session(evaluate=60, config=small(**{"monitor.csv": True})),
        show=lambda progress: news.extend(progress.news),
    )
    assert summary.evaluation is not None
    met = summary.evaluation.opponents
    assert met["random"].win_rate > 0.7
    assert {name for name in met if name.startswith("step-")}
    assert summary.rating is not None and summary.rating.points > 1050.0
    assert summary.anchor == "random"
    told_as = summary.as_dict()
    assert told_as["snapshots"] == summary.snapshots == 3
    assert set(summary.win_rates) == {"random", "self"}
    history = read_league_history(RUN)
    assert [one.name for one in history.state.pool] == [f"step-{n * BATCH}" for n in (4, 8, 12)]
    assert set(history.state.anchors) == {"random"}
    matches = told(ev.MatchesTrained)
    assert sum(sum(one[1:]) for m in matches for one in m.results.values()) == summary.matches
    assert any("step-" in name for m in matches for name in m.results)
    assert any("first snapshot" in line for line in news)
    for table in ("monitor.csv", "league.csv", "training_metrics.csv", "training_curves.png"):
        assert (RUN / table).stat().st_size > 0, table
    assert (RUN / "monitor.csv").read_text(encoding="utf-8").count("\n") > summary.matches - 20


def test_a_resumed_run_goes_on_with_its_league_and_loses_nothing() -> None:
    train_environment(session(steps=8 * BATCH))
    before = read_league_history(RUN)
    files = {path.name: path.read_bytes() for path in (RUN / "league").iterdir()}
    summary = train_environment(session(steps=16 * BATCH, resume=True))
    after = read_league_history(RUN)
    assert before.version < after.version == summary.version
    assert before.names() == after.names()[: len(before.names())]
    assert after.state.iterations == before.state.iterations + 8
    assert {name: (RUN / "league" / name).read_bytes() for name in files} == files
    played = sum(sum(one.counts) for one in after.state.records.values())
    assert played == summary.matches


def test_stages_are_passed_by_evidence() -> None:
    stages = [
        {"name": "easy", "opponents": "random", "measure": "score:random", "threshold": 0.6,
         "min_matches": 32, "window": 64},
        {"name": "past", "opponents": "self=3,random=1"},
    ]  # fmt: skip
    config = small(**{"train.opponents": "all", "curriculum.stages": stages})
    summary = train_environment(session(steps=24 * BATCH, config=config))
    changes = [(e.before, e.after) for e in told(ev.StageChanged)]
    assert changes == [("", "easy"), ("easy", "past")]
    assert summary.stage == "past"
    state = train_environment(session(steps=25 * BATCH, config=config, resume=True))
    assert state.stage == "past", "a resume goes on where it was"
    assert [(e.before, e.after) for e in told(ev.StageChanged)] == changes


def test_bots_of_a_user_are_met_and_judged(tmp_path: Path) -> None:
    Path("my_bots.py").write_text(BOTS, encoding="utf-8")
    summary = train_environment(
        session(bots=("my_bots.py",), evaluate=20, config=small(**{"train.opponents": "wrong"}))
    )
    assert summary.anchor == "wrong", "the first opponent, where random is not met"
    assert set(summary.win_rates) == {"wrong"}
    assert summary.evaluation is not None
    assert {"random", "wrong"} <= set(summary.evaluation.opponents)
    assert summary.evaluation.opponents["wrong"].win_rate > 0.8
    (kept,) = RunFolder.load(RUN, SystemClock()).identity.bot_code
    assert Path(kept.find(RUN)).samefile("my_bots.py"), "a resume finds them"


def test_with_workers_the_same_is_learned() -> None:
    judged = []
    for name, workers in (("none", 0), ("two", 2)):
        run = Path(f"runs/{name}")
        summary = train_environment(session(run=run, steps=6 * BATCH, workers=workers, evaluate=20))
        assert summary.evaluation is not None
        judged.append(dict(summary.evaluation.opponents))
        assert (summary.workers.count if summary.workers else 0) == workers
    assert judged[0] == judged[1], "the frozen matches at the end are the same, too"
    one, two = (
        RunFolder.load(Path(f"runs/{name}"), SystemClock()).versions for name in ("none", "two")
    )
    assert one.head() == two.head() == 2
    for number in (1, 2):
        weights, other = one.policy(number).weights, two.policy(number).weights
        for name, value in weights.params.items():
            np.testing.assert_array_equal(value, other.params[name])


def test_workers_that_play_ahead_learn_from_what_is_at_most_one_update_old() -> None:
    config = small(**{"train.opponents": "random", "train.asynchronous": True})
    with pytest.raises(ConfigError, match=r"train\.asynchronous: needs workers"):
        session(config=config)
    summary = train_environment(session(config=config, workers=2, steps=30 * BATCH, evaluate=40))
    batches = told(ev.BatchTrained)
    assert {lag for one in batches for lag in one.version_lag} == {"0", "1"}
    assert all(sum(one.version_lag.values()) == one.steps for one in batches)
    older = [one for one in batches if one.version_lag.get("1")]
    assert len(older) > len(batches) // 2, "workers play while the learner learns"
    # An update moves the policy by about kl_target, 0.03; less where everything is learned.
    apart = [one.behaviour_kl for one in older]
    assert max(apart[:10]) > 1e-3, f"the correction is for another policy: {apart}"
    same = [one.behaviour_kl for one in batches if not one.version_lag.get("1")]
    assert max(same) < 1e-5
    assert summary.evaluation is not None
    assert summary.evaluation.opponents["random"].win_rate > 0.8, "and it learns"


def test_a_board_game_is_learned_against_a_random_player() -> None:
    """Of random matches 44 % are won."""
    config = small(**{"train.opponents": "random", "learner.gamma": 0.95})
    summary = train_environment(
        session(environment=TICTACTOE, steps=12_000, evaluate=200, config=config)
    )
    assert summary.evaluation is not None
    assert summary.evaluation.opponents["random"].win_rate > 0.58


@pytest.mark.parametrize(
    ("environment", "options", "expected"),
    [
        ("pettingzoo:training.environments.lone", {}, "ended with rewards of 4 and 4.*declared"),
        ("gymnasium:CartPole-v1", {}, r"has 1 \(agent\)"),
    ],
)
def test_a_league_needs_a_zero_sum_game_of_two(
    environment: str, options: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=f"--opponents: a league needs.*{expected}"):
        train_environment(session(environment=environment, options=options))
    assert not RUN.exists()


def test_more_reward_than_the_other_may_be_declared_a_win() -> None:
    config = small(**{"train.zero_sum": "declared"})
    shared = "pettingzoo:training.environments.lone"
    summary = train_environment(session(environment=shared, config=config, steps=4 * BATCH))
    assert summary.win_rates["random"].draws == summary.win_rates["random"].matches > 0


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"train.opponents": "based=1"}, "expected some of random, self, all; got 'based'"),
        ({"train.opponents": "self"}, "at least one scripted"),
        ({"rewards.set": "sparse"}, r"\[rewards\].*rewards\.set"),
        ({"league.exploits": "runs/x"}, r"league\.exploits: exploiters train in the arena"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        train_environment(session(config=small(**changes)))


def test_the_curriculum_for_environments_fits_them() -> None:
    config = named_configs.config("environment_curriculum")
    stages = stages_of(session(environment=TICTACTOE, config=config).config, ())
    assert (stages.stage, stages.bots, stages.meets_itself) == ("random", ("random",), True)


def test_a_trainer_that_is_killed_is_resumed_with_all_that_its_versions_list() -> None:
    command = [
        sys.executable, "-m", "understudy", "train", CONTEST, "--run", str(RUN), "--workers", "2",
        "--opponents", "random=1,self=1", "--set", "train.games=16", "--set", "train.segment=32",
        "--set", f"train.checkpoint_steps={BATCH}", "--set", f"league.save_freq={BATCH}",
        "--steps", "10M", "--eval", "0",
    ]  # fmt: skip
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120.0
        while (Versions(RUN / "versions").head() or 0) < 3:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    history = read_league_history(RUN)
    assert history.version >= 3 and history.state.pool
    steps = history.steps
    seen: list[EnvironmentProgress] = []
    folder = RunFolder.load(RUN, SystemClock())
    resumed = session(
        config=folder.config, network=folder.spec.network, steps=steps + 2 * BATCH, resume=True
    )
    summary = train_environment(resumed, show=seen.append)
    assert seen[0].earlier == steps and summary.version > history.version
    assert set(history.names()) <= {*read_league_history(RUN).names(), *history.state.left}
