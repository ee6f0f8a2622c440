"""Sessions of training: what they keep, and that going on is going on."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from arena.makers import BOTS, CONFIG, GAME, GAMES, NETWORK, SEGMENT

from understudy.arena.results import Iteration, Result
from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.core.errors import (
    ConfigError,
    FileFormatError,
    LearnerBusy,
    NotFinite,
    RunFolderError,
    UnderstudyError,
)
from understudy.core.opponents import steps_of
from understudy.core.ops import Array, Ops
from understudy.games import catalog
from understudy.games.moments import Moment
from understudy.league import state as league_files
from understudy.league.ratings import Rating
from understudy.league.state import LeagueState
from understudy.learner.trainer import Trainer
from understudy.match.series import plain
from understudy.policy.mlp import Mlp
from understudy.policy.strategist import Strategist
from understudy.registry.run_folder import RunFolder
from understudy.supervise.budget import Budget
from understudy.supervise.compile_cache import cache_folder, keep_compiled
from understudy.supervise.lock import learner_lock
from understudy.telemetry import events
from understudy.telemetry.journal import Journal, Reader
from understudy.telemetry.status_reader import StatusReader
from understudy.training import named_configs
from understudy.training.arena_learning import ArenaLearning, check_arena
from understudy.training.session import TrainProgress, TrainSession, TrainSummary
from understudy.training.snapshot_opponents import TRAINING, TrainingState
from understudy.training.train import check, train_agent

ROLLOUT = GAMES * SEGMENT
SETTINGS = {
    "train.opponents": "rest=1,pull=1,moody=1,self=2",
    "train.checkpoint_steps": 2 * ROLLOUT,
    "league.save_freq": 2 * ROLLOUT,
    "league.stint": 1,
    "monitor.csv": False,
    "train.entropy_schedule": "constant",  # a longer budget is not another run
}


def heaved(ops: Ops, moment: Moment) -> Array:
    """1 to the player who chose the third action."""
    return (moment.actions[:, 0] == 2).astype(ops.xp.float32)


def tug() -> catalog.Entry:
    return catalog.Entry(
        make=lambda: GAME,
        summary="Pull a rope.",
        options={},
        bots=lambda: BOTS,
        terms={"heaved": heaved},
    )


@pytest.fixture(autouse=True, scope="module")
def toy() -> Iterator[None]:
    """The toy of two players is a game that has a name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "_GAMES", {**catalog._GAMES, "tug": tug()})
        yield


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def settings(**changes: Any) -> Config:
    return with_values(CONFIG, SETTINGS | {k.replace("__", "."): v for k, v in changes.items()})


def session(run: Path, config: Config | None = None, **changes: Any) -> TrainSession:
    limits: dict[str, Any] = {} if "minutes" in changes else {"steps": 4 * ROLLOUT}
    limits |= {name: changes.pop(name) for name in ("steps", "minutes") if name in changes}
    return TrainSession(
        game="tug",
        game_options={},
        run=run,
        network=NETWORK,
        config=config or settings(),
        budget=Budget(**limits),
        **changes,
    )


def quietly(one: TrainSession) -> TrainSummary:
    return train_agent(one, show=lambda progress: None)


def folder_of(run: Path) -> RunFolder:
    return RunFolder.load(run, SystemClock())


def journal_of(run: Path) -> list[events.Event]:
    return [entry.e for entry in Reader(run / "journal").new()]


def kept(run: Path) -> dict[int, dict[str, int]]:
    """Counters of every version."""
    versions = folder_of(run).versions
    return {number: versions.verify(number).counters for number in versions.numbers()}


def league_of(run: Path, number: int) -> LeagueState:
    versions = folder_of(run).versions
    return league_files.decode(versions.read(versions.manifest(number), league_files.FILE))


def arena_state(run: Path, number: int) -> TrainingState:
    versions = folder_of(run).versions
    data = versions.read(versions.manifest(number), TRAINING)
    return msgspec.json.decode(data, type=TrainingState)


def resumed(run: Path, journal: Path) -> ArenaLearning:
    """What a session that goes on has before its first iteration."""
    noted = Journal(journal, "train", SystemClock())
    return ArenaLearning(session(run, resume=True), folder_of(run), noted)


def own(results: dict[str, Any]) -> list[str]:
    return [name for name in results if steps_of(name) is not None]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 16 iterations in two sessions, 8 versions. Only for looking at."""
    here = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        first = quietly(session(Path("run"), steps=10 * ROLLOUT))
        assert (first.steps, first.version) == (10 * ROLLOUT, 5)
        last = quietly(session(Path("run"), steps=16 * ROLLOUT, resume=True))
        assert (last.steps, last.version) == (16 * ROLLOUT, 8)
    return here / "run"


def test_versions_come_as_often_as_was_asked(trained: Path) -> None:
    counters = kept(trained)
    assert [one["steps"] for one in counters.values()] == [
        2 * number * ROLLOUT for number in range(1, 9)
    ]
    assert [one["iterations"] for one in counters.values()] == list(range(2, 17, 2))
    versions = folder_of(trained).versions
    assert [versions.manifest(n).parent for n in counters] == [None, 1, 2, 3, 4, 5, 6, 7]
    assert all(versions.manifest(n).metrics["gradient_steps"] == 4.0 for n in counters)
    champion = folder_of(trained).pointers.read("champion")
    assert champion is not None and champion.version == 8


def test_rounding_up_to_whole_iterations(tmp_path: Path) -> None:
    config = settings(train__checkpoint_steps=ROLLOUT + 1)
    done = quietly(session(tmp_path / "run", config, steps=2 * ROLLOUT + 1))
    assert done.steps == 3 * ROLLOUT
    assert [one["steps"] for one in kept(tmp_path / "run").values()] == [2 * ROLLOUT, 3 * ROLLOUT]


def test_the_journal_and_the_counters_tell_the_same(trained: Path) -> None:
    told = [one for one in journal_of(trained) if isinstance(one, events.MatchesTrained)]
    batches = [one for one in journal_of(trained) if isinstance(one, events.BatchTrained)]
    assert [one.steps for one in told] == [number * ROLLOUT for number in range(1, 17)]
    assert len(batches) == 16 and all(one.steps == ROLLOUT for one in batches)
    counters = kept(trained)[8]
    for name in ("rest", "pull", "moody"):
        assert counters[f"met.{name}"] == sum(one.results[name][0] for one in told) > 0
    started = sum(one.results[name][0] for one in told for name in own(one.results))
    assert counters["met.self"] == started > 0
    ended = sum(sum(result[1:]) for one in told for result in one.results.values())
    assert counters["matches"] == ended == sum(one.matches for one in batches) > 50
    assert ended == sum(len(one.ended) for one in told)
    assert all(one.residual == 0.0 for one in told)
    status = StatusReader(trained, SystemClock()).read()
    assert (status.steps, status.matches, status.version) == (16 * ROLLOUT, ended, 8)
    assert status.learner == "stopped" and status.versions == 8
    for name in ("rest", "pull", "moody"):
        record, columns = status.opponents[name], np.sum([e.results[name] for e in told], axis=0)
        assert [record.wins, record.draws, record.losses] == list(columns[1:])


def test_the_league_grows_with_the_run_and_older_versions_say_what_it_was(trained: Path) -> None:
    for number in range(1, 9):
        pool = league_of(trained, number).pool
        assert [one.steps for one in pool] == [2 * n * ROLLOUT for n in range(1, number + 1)]
    taken = [one for one in journal_of(trained) if isinstance(one, events.SnapshotTaken)]
    assert [one.name for one in taken] == [one.name for one in pool]
    assert [one.pool for one in taken] == list(range(1, 9)) and all(one.kept for one in taken)
    names = {path.name for path in (trained / "league").iterdir()}
    assert names == {f"step-{one.steps:09d}.npz" for one in pool}


def test_ratings_move_and_say_the_same_in_journal_and_version(trained: Path) -> None:
    rated = [one for one in journal_of(trained) if isinstance(one, events.LearnerRated)]
    assert len(rated) == 16 and len({one.mu for one in rated}) > 10
    learner = league_of(trained, 8).learner
    assert (rated[-1].mu, rated[-1].sigma) == (learner.mu, learner.sigma)
    assert learner.sigma < Rating().sigma
    assert league_of(trained, 1).anchors == league_of(trained, 8).anchors


def test_snapshots_are_met_and_others_take_their_place(trained: Path) -> None:
    seats = [arena_state(trained, number).opponents.assignment for number in range(1, 9)]
    assert seats[0].met == seats[0].waiting == ("", ""), "the first one was taken just then"
    assert all("" not in one.met for one in seats[1:])
    met = {name for one in seats for name in one.met} - {""}
    assert len(met) > 1, "the same one all the time"
    told = [one for one in journal_of(trained) if isinstance(one, events.MatchesTrained)]
    assert {name for one in told for name in own(one.results)} >= met


def test_the_share_of_snapshots_is_what_was_asked_for(trained: Path) -> None:
    """Counted from the first moment at which there was one to meet."""
    started, met = arena_state(trained, 8).opponents.started
    assert started > 100 and met / started == pytest.approx(0.4, abs=0.08)


def test_before_the_first_snapshot_the_log_says_who_is_met_instead(trained: Path) -> None:
    told = journal_of(trained)
    notes = [one.message for one in told if isinstance(one, events.Note)]
    assert notes == ["no snapshot yet: until there is one, scripted bots are met in its place"]
    first = next(one for one in told if isinstance(one, events.MatchesTrained))
    assert set(first.results) == {"rest", "pull", "moody"}


def test_going_on_begins_with_the_bits_that_were_kept(trained: Path, tmp_path: Path) -> None:
    folder, learning = folder_of(trained), resumed(trained, tmp_path)
    arena, manifest = learning.arena, folder.versions.manifest(8)
    assert (learning.version, learning.steps) == (8, 16 * ROLLOUT)
    assert learning.counters == manifest.counters
    files = {name: folder.versions.read(manifest, name) for name in manifest.files}
    assert learning.opponents.league.encode() == files.pop(league_files.FILE)
    state = TrainingState(learning.opponents.state(), learning.stages.state)
    assert msgspec.json.encode(state) == files.pop(TRAINING)
    assert arena.trainer.snapshot() == files
    for group, name in enumerate(arena.snapshots.met):
        params = learning.opponents.league.weights(name).params
        for key, value in arena.snapshots.params.items():
            np.testing.assert_array_equal(np.asarray(value)[group], params[key])


def test_matches_in_flight_restart_with_other_seeds(trained: Path, tmp_path: Path) -> None:
    def seeds(learning: ArenaLearning) -> set[int]:
        learning.iterate()
        return set(np.asarray(learning.arena.columns.seeds).tolist())

    older = folder_of(trained)
    older.versions.head_manifest = lambda: None  # type: ignore[method-assign]
    journal = Journal(tmp_path, "train", SystemClock())
    first = ArenaLearning(session(trained, resume=True), older, journal)
    assert not seeds(first) & seeds(resumed(trained, tmp_path))


def test_two_runs_with_one_seed_are_one_run(trained: Path, tmp_path: Path) -> None:
    again = session(tmp_path / "run", steps=4 * ROLLOUT)
    quietly(again)
    one, other = folder_of(trained).versions, folder_of(tmp_path / "run").versions
    for number in (1, 2):
        mine, theirs = one.manifest(number), other.manifest(number)
        assert mine.files == theirs.files and mine.counters == theirs.counters


def test_snapshots_outlive_versions_that_are_pruned(tmp_path: Path) -> None:
    config = settings(
        registry__keep_versions=1, registry__keep_bytes=0,
        train__checkpoint_steps=ROLLOUT, league__save_freq=ROLLOUT,
    )  # fmt: skip
    run = tmp_path / "run"
    quietly(session(run, config, steps=5 * ROLLOUT))
    assert 1 not in folder_of(run).versions.numbers()
    assert [one.steps for one in league_of(run, 5).pool] == [n * ROLLOUT for n in range(1, 6)]
    assert quietly(session(run, config, steps=6 * ROLLOUT, resume=True)).version == 6


def test_a_snapshot_is_due_even_where_no_version_is(tmp_path: Path) -> None:
    run = tmp_path / "run"
    config = settings(train__checkpoint_steps=10**6, league__save_freq=2 * ROLLOUT + 1)
    done = quietly(session(run, config, steps=8 * ROLLOUT))
    assert [one["steps"] for one in kept(run).values()] == [8 * ROLLOUT]
    assert [one.steps for one in league_of(run, 1).pool] == [3 * ROLLOUT, 6 * ROLLOUT]
    assert done.snapshots == 2


def test_a_pool_that_is_full_is_thinned_and_its_files_follow(tmp_path: Path) -> None:
    run = tmp_path / "run"
    config = settings(league__save_freq=ROLLOUT, league__max_saved=3)
    quietly(session(run, config, steps=6 * ROLLOUT))
    pool = league_of(run, 3).pool
    assert len(pool) == 3 and (pool[0].steps, pool[-1].steps) == (ROLLOUT, 6 * ROLLOUT)
    assert {path.name for path in (run / "league").iterdir()} == {
        f"step-{one.steps:09d}.npz" for one in pool
    }
    taken = [one for one in journal_of(run) if isinstance(one, events.SnapshotTaken)]
    assert sum("left" in one.reason for one in taken) == 3


def test_a_budget_that_is_spent_already_is_an_error(trained: Path) -> None:
    before = (trained / "config.toml").read_bytes()
    for steps in (16, 3):
        spent = session(trained, settings(learner__gamma=0.5), steps=steps * ROLLOUT, resume=True)
        with pytest.raises(ConfigError, match="--steps: this run has 4,096 steps already; name"):
            quietly(spent)
    assert (trained / "config.toml").read_bytes() == before
    check(session(trained, minutes=1.0, resume=True))


def test_however_little_time_there_is_something_is_learned(tmp_path: Path) -> None:
    done = quietly(session(tmp_path / "run", minutes=1e-9))
    assert (done.steps, done.version) == (ROLLOUT, 1)


def test_what_is_rewarded_is_done_more_and_what_is_punished_less(tmp_path: Path) -> None:
    """Nothing else is rewarded, so the results of the matches say nothing about it."""
    shares = {}
    for weight in (0.5, -0.5):
        config = settings(
            rewards__weights={"reward": 0.0, "heaved": weight},
            train__opponents="rest",
            train__schedule="constant",
            learner__learning_rate=2e-2,
            learner__learning_rate_max=2e-2,
            learner__gamma=0.5,
        )
        run = tmp_path / f"run{weight}"
        one = session(run, config, steps=24 * ROLLOUT)
        quietly(dataclasses.replace(one, network=Mlp((8,))))
        told = [each for each in journal_of(run) if isinstance(each, events.MatchesTrained)]
        summed = [each.terms["rest"]["heaved"] for each in told if each.terms]
        frames = [sum(end[2] for end in each.ended) for each in told if each.terms]
        shares[weight] = [
            sum(summed[part]) / sum(frames[part]) / weight for part in (slice(4), slice(-4, None))
        ]
    (first, more), (start, less) = shares[0.5], shares[-0.5]
    assert more > first + 0.2 and less < start - 0.1, shares


def test_what_cannot_be_is_refused_before_there_is_a_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(ConfigError, match=r"--steps: one rollout alone is 256 steps .*100 would"):
        session(run, steps=100)
    with pytest.raises(ConfigError, match="--steps or --minutes: give one"):
        session(run, steps=None)
    with pytest.raises(ConfigError, match="--steps or --minutes: give one"):
        session(run, steps=ROLLOUT, minutes=1.0)
    for minutes in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="--minutes: expected more than 0"):
            session(run, minutes=minutes)
    with pytest.raises(ConfigError, match=r"train\.opponents: .*'pul'.*Did you mean 'pull'"):
        quietly(session(run, settings(train__opponents="pul")))
    with pytest.raises(ConfigError, match=r"train\.games: expected a multiple"):
        quietly(session(run, settings(train__groups=5)))
    with pytest.raises(RunFolderError, match=r"--resume: .* holds no run to go on with"):
        quietly(session(run, resume=True))
    with pytest.raises(ConfigError, match=r"learner\.algorithm: train knows actor_critic alone"):
        quietly(session(run, settings(learner__algorithm="reinforce")))
    wide = msgspec.structs.replace(session(run).network, opponent=99)
    with pytest.raises(ConfigError, match=r"network\.opponent: expected at most"):
        quietly(dataclasses.replace(session(run), network=wide))
    assert not run.exists()


def test_a_rollback_is_followed_once(tmp_path: Path) -> None:
    run = tmp_path / "run"
    quietly(session(run, steps=6 * ROLLOUT))
    folder = folder_of(run)
    assert folder.versions.numbers() == [1, 2, 3]
    folder.pointers.pin("champion", 1, by="person")
    for steps, version, parent in ((4, 4, 1), (6, 5, 4)):  # version 3 has 6 already
        done = quietly(session(run, steps=steps * ROLLOUT, resume=True))
        assert (done.steps, done.version) == (steps * ROLLOUT, version)
        assert folder.versions.manifest(version).parent == parent


def test_what_is_not_finite_is_tried_again_with_smaller_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second update and, later, three in a row break."""
    calls, accept = [0], Trainer.accept
    broken = {2, 5, 6, 7}

    def sometimes(self: Trainer, state: Any, report: Any) -> Any:
        calls[0] += 1
        if calls[0] in broken:
            raise NotFinite("training gave numbers that are not finite")
        return accept(self, state, report)

    monkeypatch.setattr(Trainer, "accept", sometimes)
    run = tmp_path / "run"
    with pytest.raises(NotFinite):
        quietly(session(run, settings(train__schedule="constant"), steps=9 * ROLLOUT))
    told = journal_of(run)
    problems = [one for one in told if isinstance(one, events.Problem)]
    assert [one.where for one in problems] == ["training"] * 4
    rates = [one.learning_rate for one in told if isinstance(one, events.BatchTrained)]
    assert rates[1] == pytest.approx(rates[0] / 2)
    assert isinstance(told[-1], events.LearnerStopped), "nobody learns here any more"
    kept_steps = kept(run)[max(kept(run))]["steps"]
    assert kept_steps == 3 * ROLLOUT, "what had been learned was kept"


def test_a_snapshot_that_the_newest_version_lists_must_be_there(
    trained: Path, tmp_path: Path
) -> None:
    run = tmp_path / "copy"
    shutil.copytree(trained, run)
    (run / "league" / "step-000001024.npz").unlink()
    with pytest.raises(FileFormatError, match=r"step-000001024\.npz: this snapshot is missing"):
        resumed(run, tmp_path)


def test_a_snapshot_that_was_changed_is_told_at_once(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(trained, run)
    path = run / "league" / "step-000001024.npz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(FileFormatError, match=r"step-000001024\.npz: does not match the checksum"):
        resumed(run, tmp_path)


def stages_of(*names: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "opponents": "pull", "measure": "win_rate:pull", "threshold": 0.5}
        for name in names
    ]


def test_a_resume_that_is_refused_leaves_the_settings_alone(tmp_path: Path) -> None:
    stages = stages_of("one", "two")
    run = tmp_path / "run"
    quietly(session(run, settings(curriculum__stages=stages), steps=ROLLOUT))
    before = (run / "config.toml").read_bytes()
    renamed = [{**stage, "name": f"other {stage['name']}"} for stage in stages]
    again = settings(curriculum__stages=renamed)
    with pytest.raises(ConfigError, match="the run was in stage 'one', which is not among"):
        quietly(session(run, again, steps=2 * ROLLOUT, resume=True))
    assert (run / "config.toml").read_bytes() == before


def test_a_resume_is_judged_by_the_version_that_it_goes_on_from(tmp_path: Path) -> None:
    """Version 2 is in stage two, but a person went back to version 1, in stage one."""
    run = tmp_path / "run"
    for count, pin in ((1, "one"), (2, "two")):
        config = settings(curriculum__stages=stages_of("one", "two"), curriculum__pin=pin)
        quietly(session(run, config, steps=count * ROLLOUT, resume=count > 1))
    folder_of(run).pointers.pin("champion", 1, by="rollback")
    before = (run / "config.toml").read_bytes()
    without_one = settings(curriculum__stages=stages_of("two", "three"))
    with pytest.raises(ConfigError, match="the run was in stage 'one', which is not among"):
        quietly(session(run, without_one, steps=3 * ROLLOUT, resume=True))
    assert (run / "config.toml").read_bytes() == before
    without_two = settings(curriculum__stages=stages_of("one", "three"))
    done = quietly(session(run, without_two, steps=2 * ROLLOUT, resume=True))
    assert (done.version, folder_of(run).versions.manifest(3).parent) == (3, 1)


def benchmarked(run: Path) -> list[tuple[int, int]]:
    """Steps and version of every benchmark."""
    told = [one for one in journal_of(run) if isinstance(one, events.CheckpointJudged)]
    return [(one.steps, one.version) for one in told]


def test_a_benchmark_is_in_the_version_that_it_judged(tmp_path: Path) -> None:
    run = tmp_path / "run"
    config = settings(monitor__benchmark_steps=2 * ROLLOUT, monitor__benchmark_matches=2)
    quietly(session(run, config, steps=4 * ROLLOUT))
    assert benchmarked(run) == [(2 * ROLLOUT, 1), (4 * ROLLOUT, 2)]
    assert [one["benchmarked_at"] for one in kept(run).values()] == [2 * ROLLOUT, 4 * ROLLOUT]


def test_a_benchmark_after_the_last_version_is_kept_as_well(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(trained, run)
    learning = resumed(run, run / "journal")
    learning.benchmark(plain)
    learning.commit()
    assert benchmarked(run) == [(16 * ROLLOUT, 9)]
    assert max(kept(run)) == 9 and kept(run)[9]["benchmarked_at"] == 16 * ROLLOUT
    assert not resumed(run, tmp_path).benchmark_due(last=True)


def test_a_rollback_goes_on_without_snapshots_that_left_since(
    trained: Path, tmp_path: Path
) -> None:
    run = tmp_path / "copy"
    shutil.copytree(trained, run)
    folder_of(run).pointers.pin("champion", 4, by="person")
    (run / "league" / "step-000001024.npz").unlink()  # thinned out after version 4
    heard: list[str] = []
    config = settings()
    more = session(run, config, steps=10 * ROLLOUT, resume=True)
    train_agent(more, show=lambda progress: heard.extend(progress.news))
    assert "left since version 4: step-1024" in heard
    notes = [one.message for one in journal_of(run) if isinstance(one, events.Note)]
    assert notes[-1] == "left since version 4: step-1024"
    after = folder_of(run).versions.manifest(9)
    assert after.parent == 4 and after.counters["steps"] == 10 * ROLLOUT
    names = [one.name for one in league_of(run, 9).pool]
    assert names == ["step-512", "step-1536", "step-2048", "step-2560"]
    assert {path.stem for path in (run / "league").iterdir()} == {
        f"step-{int(name[5:]):09d}" for name in names
    }, "what the newer versions had is swept with the first version after the rollback"


def test_selective_leagues_take_only_what_is_surely_better(tmp_path: Path) -> None:
    run = tmp_path / "run"
    config = settings(league__mode="selective", league__save_freq=ROLLOUT)
    done = quietly(session(run, config, steps=8 * ROLLOUT))
    taken = [one for one in journal_of(run) if isinstance(one, events.SnapshotTaken)]
    assert len(taken) == 8 and taken[0].kept, "the first is better than nobody"
    refused = [one for one in taken if not one.kept]
    assert refused and all("not surely above step-" in one.reason for one in refused)
    assert done.snapshots == 8 - len(refused) == len(league_of(run, done.version).pool)


def test_a_run_is_never_written_over_and_never_by_two(trained: Path) -> None:
    with pytest.raises(RunFolderError, match="holds a run already; --resume continues it"):
        quietly(session(trained))
    before = (trained / "config.toml").read_bytes()
    other = settings(train__checkpoint_steps=ROLLOUT)
    with learner_lock(trained), pytest.raises(LearnerBusy):
        quietly(session(trained, other, steps=20 * ROLLOUT, resume=True))
    assert (trained / "config.toml").read_bytes() == before, "settings changed under a learner"


@pytest.mark.parametrize("name", sorted({*named_configs.names()} - {"tournament"}))
def test_settings_with_a_name_make_an_arena(name: str) -> None:
    assert check_arena("brawl", {}, Strategist(), named_configs.config(name)).bots


def test_the_arena_refuses_settings_that_only_environments_read() -> None:
    with pytest.raises(ConfigError, match=r"train\.noise_steps: the arena draws every action anew"):
        check_arena("brawl", {}, Strategist(), named_configs.config("tournament"))


def test_settings_of_ones_own_are_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[train]\ngames = 32\n", encoding="utf-8")
    assert named_configs.config(str(path)).train.games == 32
    with pytest.raises(ConfigError, match=r"--config: there is no file .*other\.toml"):
        named_configs.config(str(tmp_path / "other.toml"))


def test_compiled_programs_are_kept_where_a_person_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "mine")
    keep_compiled()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == "mine"
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    keep_compiled()
    assert Path(os.environ["JAX_COMPILATION_CACHE_DIR"]) == cache_folder()
    assert tmp_path in cache_folder().parents


@pytest.mark.parametrize("schedule", ["adaptive", "linear", "constant"])
def test_the_learning_rate_keeps_to_its_schedule(tmp_path: Path, schedule: str) -> None:
    run = tmp_path / "run"
    quietly(session(run, settings(train__schedule=schedule)))
    batches = [one for one in journal_of(run) if isinstance(one, events.BatchTrained)]
    rates = [one.learning_rate for one in batches]
    learner = CONFIG.learner
    first, least = learner.learning_rate, learner.learning_rate_min
    assert rates[0] == pytest.approx(first) and len(rates) == 4
    if schedule == "linear":
        expected = [first + (least - first) * share for share in (0.0, 0.25, 0.5, 0.75)]
        assert rates == pytest.approx(expected)
    elif schedule == "constant":
        assert rates == pytest.approx([first] * 4)
    else:
        assert batches[0].kl < 0.5 * learner.kl_target
        assert rates[1] == pytest.approx(min(1.5 * first, learner.learning_rate_max))


@pytest.fixture
def bonuses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The weight of the entropy bonus in every update."""
    seen: list[float] = []
    accept = Trainer.accept

    def noted(self: Trainer, state: Any, report: Any) -> Any:
        seen.append(self.entropy_weight)
        return accept(self, state, report)

    monkeypatch.setattr(Trainer, "accept", noted)
    return seen


@pytest.mark.parametrize("spent", [1, 3, 4])
def test_more_minutes_do_not_pay_the_entropy_bonus_once_more(
    tmp_path: Path, bonuses: list[float], spent: int
) -> None:
    """It goes on falling from what the session before left of it."""
    config = settings(train__entropy_schedule="linear")

    def until_spent(progress: TrainProgress) -> None:
        if progress.updates == spent:
            raise UnderstudyError("enough")  # what was learned is kept

    with pytest.raises(UnderstudyError, match="enough"):
        train_agent(session(tmp_path / "run", config), show=until_spent)
    first, before = CONFIG.learner.entropy_weight, bonuses[-1]
    bonuses.clear()
    quietly(session(tmp_path / "run", config, minutes=1e-9, resume=True))
    assert bonuses == pytest.approx([first * (1 - spent / 4)]) and bonuses[0] < before
    bonuses.clear()
    quietly(session(tmp_path / "run", config, minutes=1e-9, resume=True))
    assert bonuses == [0.0], "that session spent the rest"


def test_a_run_that_does_not_say_what_is_left_of_the_bonus_begins_with_all_of_it(
    tmp_path: Path, bonuses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version from before that was noted."""
    config, rest = settings(train__entropy_schedule="linear"), Trainer._rest
    with monkeypatch.context() as older:
        older.setattr(
            Trainer,
            "_rest",
            lambda self: {k: v for k, v in rest(self).items() if k != "entropy_left"},
        )
        quietly(session(tmp_path / "run", config, minutes=1e-9))
    bonuses.clear()
    quietly(session(tmp_path / "run", config, minutes=1e-9, resume=True))
    assert bonuses == [CONFIG.learner.entropy_weight]


@pytest.mark.parametrize(("schedule", "left"), [("linear", 0.0), ("constant", 1.0)])
def test_the_bonus_for_open_options_keeps_to_its_schedule(
    tmp_path: Path, bonuses: list[float], schedule: str, left: float
) -> None:
    quietly(session(tmp_path / "run", settings(train__entropy_schedule=schedule)))
    first = CONFIG.learner.entropy_weight
    assert bonuses == pytest.approx([first * (1 - (1 - left) * n / 4) for n in range(4)])
    bonuses.clear()
    more = session(
        tmp_path / "run",
        settings(train__entropy_schedule=schedule),
        steps=8 * ROLLOUT,
        resume=True,
    )
    quietly(more)
    assert bonuses == pytest.approx([first * (1 - (1 - left) * n / 8) for n in range(4, 8)])


def test_progress_counts_the_last_matches_of_each_opponent(tmp_path: Path) -> None:
    earlier = 2 * ROLLOUT
    progress = TrainProgress(
        session(tmp_path / "run", steps=10 * ROLLOUT), steps=earlier, earlier=earlier
    )
    assert progress.left_s is None and progress.steps_s == 0.0
    for wins in (150, 90, 60, 0):
        result = Result(started=100, wins=wins, draws=0, losses=100 - min(wins, 100), frames=0,
                        returns=0.0, terms={}, measures={})  # fmt: skip
        results = {"rest": result, "step-256": result, "step-512": result}
        progress.note(Iteration({}, results, [], 0.0, None), ROLLOUT)
    assert progress.matches == 3 * (150 + 100 + 100 + 100)
    recent = progress.win_rates()["rest"]
    assert (recent.matches, recent.wins) == (200, 60), "the last 200, in whole iterations"
    together = progress.win_rates()["self"]
    assert (together.matches, together.wins) == (200, 0), "all snapshots are one opponent"
    assert progress.share == pytest.approx(0.6)
    assert progress.steps_s > 0 and progress.left_s is not None
