"""A short league of a tiny network, end to end, as a person would train and judge it."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.calling import understudy

from understudy.core.clock import SystemClock
from understudy.league import state as league_files
from understudy.league.state import LeagueState
from understudy.policy import presets
from understudy.policy.strategist import Strategist
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Reader

GAMES, SEGMENT = 64, 64
ROLLOUT = GAMES * SEGMENT
TINY = Strategist(
    width=8, heads=2, layers=1, feed=8, window=5, latent=4, lstm=6, head_widths=(8,)
)  # fmt: skip
SETTINGS = f"""
extends = "small"

[train]
games = {GAMES}
segment = {SEGMENT}
groups = 2
checkpoint_steps = {8 * ROLLOUT}

[learner]
minibatches = 2
epochs = 1

[league]
save_freq = {4 * ROLLOUT}
max_saved = 4
stint = 1
sampler = "prioritised"

[monitor]
benchmark_steps = {32 * ROLLOUT}
benchmark_matches = 4

[[curriculum.stages]]
name = "random"
opponents = "random"
measure = "score:random"
threshold = 0.05
min_matches = 16
confidence = 0.5
window = 64
rewards = "dense"
rewards_end = "sparse"
anneal_steps = {4 * ROLLOUT}

[[curriculum.stages]]
name = "past"
opponents = "self=1,random=1"
measure = "score:random"
threshold = 0.02
min_matches = 8
confidence = 0.5
window = 64
rewards = "sparse"

[[curriculum.stages]]
name = "league"
opponents = "self=5,random=1,constant=1"
"""


@pytest.fixture(autouse=True, scope="module")
def tiny() -> Iterator[None]:
    """The network is a preset for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presets, "PRESETS", {**presets.PRESETS, "tiny": TINY})
        yield


@pytest.fixture(scope="module")
def league(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run of forty iterations, and what a person saw of it. Only for looking at."""
    here = tmp_path_factory.mktemp("league")
    config = here / "mine.toml"
    config.write_text(SETTINGS, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        call = ("train", "brawl", "--network", "tiny", "--config", config, "--run", "run")
        done = understudy(*call, "--steps", 40 * ROLLOUT)
    assert done.code == 0, done.err
    return here / "run", done.err


def told(run: Path) -> list[events.Event]:
    return [entry.e for entry in Reader(run / "journal").new()]


def rows(run: Path, name: str) -> list[dict[str, str]]:
    lines = (run / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def state_of(run: Path, number: int) -> LeagueState:
    versions = RunFolder.load(run, SystemClock()).versions
    return league_files.decode(versions.read(versions.manifest(number), league_files.FILE))


def test_stages_pass_by_their_criteria_and_the_journal_has_the_reason(
    league: tuple[Path, str],
) -> None:
    run, seen = league
    changes = [one for one in told(run) if isinstance(one, events.StageChanged)]
    assert [one.after for one in changes] == ["random", "past", "league"]
    assert changes[0].reason == "the start"
    assert "more than 5%: " in changes[1].reason and "more than 2%: " in changes[2].reason
    stages = [one.stage for one in told(run) if isinstance(one, events.MatchesTrained)]
    assert list(dict.fromkeys(stages)) == ["random", "past", "league"] and len(stages) == 40
    assert f"stage random -> past: {changes[1].reason}" in seen
    assert "Stage           league" in seen


def test_snapshots_are_kept_thinned_and_met(league: tuple[Path, str]) -> None:
    run, seen = league
    taken = [one for one in told(run) if isinstance(one, events.SnapshotTaken)]
    assert [one.steps for one in taken] == list(range(4 * ROLLOUT, 41 * ROLLOUT, 4 * ROLLOUT))
    pool = state_of(run, 5).pool
    assert len(pool) == 4 and (pool[0].steps, pool[-1].steps) == (4 * ROLLOUT, 40 * ROLLOUT)
    trained = [one for one in told(run) if isinstance(one, events.MatchesTrained)]
    met = {name for one in trained for name in one.results if name.startswith("step-")}
    assert met, "nobody met a snapshot"
    assert f"first snapshot: step-{4 * ROLLOUT}" in seen and "Snapshots       4" in seen


def test_ratings_move_while_scripted_bots_hold_the_scale(league: tuple[Path, str]) -> None:
    run, _ = league
    rated = [one for one in told(run) if isinstance(one, events.LearnerRated)]
    assert len({one.mu for one in rated}) > 5 and rated[-1].sigma < rated[0].sigma
    assert state_of(run, 1).anchors == state_of(run, 5).anchors
    state = state_of(run, 5)
    assert (state.learner.mu, state.learner.sigma) == (rated[-1].mu, rated[-1].sigma)


def test_every_table_is_written_and_rewards_add_up(league: tuple[Path, str]) -> None:
    run, _ = league
    matches = rows(run, "monitor")
    counted = [int(row["matches"]) for row in rows(run, "behavior_metrics")]
    assert len(matches) == sum(counted) > 20
    rewards = rows(run, "reward_breakdown")
    assert rewards and all(float(row["residual"]) == 0.0 for row in rewards)
    assert {"term_win", "term_closing"} <= rewards[0].keys()
    for name in ("strategy_analysis", "checkpoint_benchmarks", "training_metrics", "league"):
        assert rows(run, name), name
    judged = rows(run, "checkpoint_benchmarks")
    assert {int(row["steps"]) for row in judged} == {32 * ROLLOUT, 40 * ROLLOUT}
    assert {row["stage"] for row in rewards} == {"random", "past", "league"}
    assert (run / "training_curves.png").read_bytes().startswith(b"\x89PNG")


def test_it_is_judged_against_bots_and_its_own_past(league: tuple[Path, str]) -> None:
    run, _ = league
    called = understudy(
        "eval", "brawl", "--agent", run, "--opponents", "all,league", "--matches", 4, "--json"
    )
    assert called.code == 0, called.err
    found = called.json["opponents"]
    assert called.json["version"] == 5
    assert all(one["matches"] == 4 for one in found.values())
    assert found["league"]["snapshots"][0] == f"step-{4 * ROLLOUT}"
    ends = {f"step-{4 * ROLLOUT}", f"step-{40 * ROLLOUT}"}
    assert {"random", "kiting", "league"} | ends <= found.keys()


def test_its_ratings_can_be_read_without_playing(league: tuple[Path, str]) -> None:
    run, _ = league
    found = understudy("ratings", "--run", run, "--no-play", "--json").json
    assert found["version"] == 5 and found["steps"] == 40 * ROLLOUT
    assert [name for name in found["opponents"] if name.startswith("step-")][
        -1
    ] == f"step-{40 * ROLLOUT}"
    assert found["opponents"]["random"]["matches"] > 16


def test_a_rollback_goes_on_without_snapshots_that_were_thinned_out(
    league: tuple[Path, str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(league[0], run)
    before, there = state_of(run, 2), {one.steps for one in state_of(run, 5).pool}
    gone = [one.name for one in before.pool if one.steps not in there]
    assert gone, "everything that version 2 lists is still there"
    assert understudy("models", "rollback", 2, "--run", run).code == 0
    call = ("train", "brawl", "--run", run, "--resume", "--steps", 18 * ROLLOUT)
    done = understudy(*call)
    assert done.code == 0, done.err
    assert f"left since version 2: {', '.join(gone)}" in done.err
    after = RunFolder.load(run, SystemClock()).versions.manifest(6)
    assert after.parent == 2 and after.counters["steps"] == 18 * ROLLOUT
    pool = state_of(run, 6).pool
    assert [one.name for one in pool] == [
        one.name for one in before.pool if one.name not in gone
    ]  # fmt: skip
    names = {path.name for path in (run / "league").iterdir()}
    assert names == {f"step-{one.steps:09d}.npz" for one in pool}
