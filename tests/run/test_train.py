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

from understudy.arena.arena import Iteration, Result
from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.core.errors import ConfigError, LearnerBusy, NotFinite, RunFolderError
from understudy.games import catalog
from understudy.learner.trainer import Trainer
from understudy.policy.strategist import Strategist
from understudy.registry.run_folder import RunFolder
from understudy.run import named_configs
from understudy.run.arena_learning import ArenaLearning, check_arena
from understudy.run.budget import Budget
from understudy.run.compile_cache import cache_folder, keep_compiled
from understudy.run.lock import learner_lock
from understudy.run.train import train
from understudy.run.train_session import Progress, Session, Summary
from understudy.telemetry import events
from understudy.telemetry.fold import StatusReader
from understudy.telemetry.journal import Journal, Reader

ROLLOUT = GAMES * SEGMENT
SETTINGS = {
    "train.opponents": "rest=1,pull=1,moody=1,self=2",
    "train.checkpoint_steps": 2 * ROLLOUT,
    "train.snapshot_steps": 2 * ROLLOUT,
    "train.entropy_schedule": "constant",  # a longer budget is not another run
}


@pytest.fixture(autouse=True, scope="module")
def toy() -> Iterator[None]:
    """The toy of two players is a game that has a name."""
    entry = catalog._Entry(make=lambda: GAME, summary="Pull a rope.", options={}, bots=lambda: BOTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "_GAMES", {**catalog._GAMES, "tug": entry})
        yield


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def settings(**changes: Any) -> Config:
    return with_values(CONFIG, SETTINGS | {k.replace("__", "."): v for k, v in changes.items()})


def session(run: Path, config: Config | None = None, **changes: Any) -> Session:
    limits: dict[str, Any] = {} if "minutes" in changes else {"steps": 4 * ROLLOUT}
    limits |= {name: changes.pop(name) for name in ("steps", "minutes") if name in changes}
    return Session(
        game="tug",
        game_options={},
        run=run,
        network=NETWORK,
        config=config or settings(),
        budget=Budget(**limits),
        **changes,
    )


def quietly(one: Session) -> Summary:
    return train(one, show=lambda progress: None)


def folder_of(run: Path) -> RunFolder:
    return RunFolder.load(run, SystemClock())


def journal_of(run: Path) -> list[events.Event]:
    return [entry.e for entry in Reader(run / "journal").new()]


def kept(run: Path) -> dict[int, dict[str, int]]:
    """Counters of every version."""
    versions = folder_of(run).versions
    return {number: versions.verify(number).counters for number in versions.numbers()}


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
    for name in ("rest", "pull", "moody", "self"):
        assert counters[f"met.{name}"] == sum(one.results[name][0] for one in told) > 0
    ended = sum(sum(result[1:]) for one in told for result in one.results.values())
    assert counters["matches"] == ended == sum(one.matches for one in batches) > 50
    status = StatusReader(trained, SystemClock()).read()
    assert (status.steps, status.matches, status.version) == (16 * ROLLOUT, ended, 8)
    assert status.learner == "stopped" and status.versions == 8
    for name, record in status.opponents.items():
        columns = np.sum([one.results[name] for one in told], axis=0)
        assert [record.wins, record.draws, record.losses] == list(columns[1:])


def test_rivals_are_versions_of_the_run_and_newer_ones_take_their_place(trained: Path) -> None:
    counters = kept(trained)
    assert counters[1]["rival.0"] == counters[1]["rival.1"] == 0
    assert counters[1]["rival.0.waiting"] == 1, "the first version is the first to be met"
    assert counters[3]["rival.0"] == 1
    met = [max(one["rival.0"], one["rival.1"]) for one in counters.values()]
    assert met == sorted(met) and met[-1] >= 5
    assert all(one["snapshot_at"] == one["steps"] for one in counters.values())


def test_going_on_begins_with_the_bits_that_were_kept(trained: Path, tmp_path: Path) -> None:
    folder = folder_of(trained)
    learning = ArenaLearning(folder, Journal(tmp_path, "train", SystemClock()), "tug", {})
    arena = learning.arena
    manifest = folder.versions.manifest(8)
    assert (learning.version, learning.steps) == (8, 16 * ROLLOUT)
    assert learning.counters == manifest.counters and not learning.due
    assert arena.trainer.snapshot() == {
        name: folder.versions.read(manifest, name) for name in manifest.files
    }
    rivals = arena.rivals.counters()
    assert rivals == {k: v for k, v in manifest.counters.items() if k.startswith("rival.")}
    for group, number in enumerate(arena.rivals.met):
        params = folder.versions.policy(number).weights.params
        for name, value in arena.rivals.params.items():
            np.testing.assert_array_equal(np.asarray(value)[group], params[name])


def test_matches_in_flight_restart_with_other_seeds(trained: Path, tmp_path: Path) -> None:
    def seeds(number: int) -> set[int]:
        folder = folder_of(trained)
        if not number:
            folder.versions.head = lambda: None  # type: ignore[method-assign]
        learning = ArenaLearning(folder, Journal(tmp_path, "train", SystemClock()), "tug", {})
        return set(np.asarray(learning.arena._slots.seeds).tolist())

    assert not seeds(0) & seeds(8)


def test_two_runs_with_one_seed_are_one_run(trained: Path, tmp_path: Path) -> None:
    again = session(tmp_path / "run", steps=4 * ROLLOUT)
    quietly(again)
    one, other = folder_of(trained).versions, folder_of(tmp_path / "run").versions
    for number in (1, 2):
        mine, theirs = one.manifest(number), other.manifest(number)
        assert mine.files == theirs.files and mine.counters == theirs.counters


def test_what_rivals_need_is_not_pruned(tmp_path: Path) -> None:
    config = settings(
        registry__keep_versions=1, train__checkpoint_steps=ROLLOUT, train__snapshot_steps=ROLLOUT
    )
    run = tmp_path / "run"
    quietly(session(run, config, steps=7 * ROLLOUT))
    left = folder_of(run).versions.numbers()
    counters = kept(run)[7]
    needed = {v for k, v in counters.items() if k.startswith("rival.") and k != "rival.next"}
    assert 7 in left and len(left) < 6 and needed - {0} <= set(left)
    assert quietly(session(run, config, steps=8 * ROLLOUT, resume=True)).version == 8


def test_a_rival_is_due_even_where_no_version_is(tmp_path: Path) -> None:
    config = settings(train__checkpoint_steps=10**6, train__snapshot_steps=3 * ROLLOUT)
    quietly(session(tmp_path / "run", config, steps=8 * ROLLOUT))
    assert [one["steps"] for one in kept(tmp_path / "run").values()] == [
        3 * ROLLOUT, 6 * ROLLOUT, 8 * ROLLOUT
    ]  # fmt: skip


def test_nothing_is_left_to_do_when_the_steps_are_there(trained: Path) -> None:
    done = quietly(session(trained, steps=16 * ROLLOUT, resume=True))
    assert (done.steps, done.version, done.matches) == (16 * ROLLOUT, 8, 0)


def test_however_little_time_there_is_something_is_learned(tmp_path: Path) -> None:
    done = quietly(session(tmp_path / "run", minutes=1e-9))
    assert (done.steps, done.version) == (ROLLOUT, 1)


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
    for steps, version, parent in ((4, 4, 1), (6, 5, 4)):
        done = quietly(session(run, steps=steps * ROLLOUT, resume=True))
        assert (done.steps, done.version) == (steps * ROLLOUT, version)
        assert folder.versions.manifest(version).parent == parent


def test_what_is_not_finite_is_tried_again_with_smaller_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second update and, later, three in a row break."""
    calls, learn = [0], Trainer.learn
    broken = {2, 5, 6, 7}

    def sometimes(self: Trainer, step: Any) -> Any:
        calls[0] += 1
        if calls[0] in broken:
            raise NotFinite("training gave numbers that are not finite")
        return learn(self, step)

    monkeypatch.setattr(Trainer, "learn", sometimes)
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


def test_rivals_that_are_gone_are_nobody(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(trained, run)
    folder = folder_of(run)
    gone = {v for k, v in kept(run)[8].items() if k.startswith("rival.") and v in range(1, 8)}
    assert gone
    for number in gone:
        shutil.rmtree(folder.versions.folder(number))
    learning = ArenaLearning(folder, Journal(folder.journal, "train", SystemClock()), "tug", {})
    assert not gone & set(learning.arena.rivals.met)
    assert sum(isinstance(one, events.Problem) for one in journal_of(run)) >= len(gone)


def test_a_run_is_never_written_over_and_never_by_two(trained: Path) -> None:
    with pytest.raises(RunFolderError, match="holds a run already; --resume continues it"):
        quietly(session(trained))
    before = (trained / "config.toml").read_bytes()
    other = settings(train__checkpoint_steps=ROLLOUT)
    with learner_lock(trained), pytest.raises(LearnerBusy):
        quietly(session(trained, other, steps=20 * ROLLOUT, resume=True))
    assert (trained / "config.toml").read_bytes() == before, "settings changed under a learner"


@pytest.mark.parametrize("name", named_configs.names())
def test_settings_with_a_name_make_an_arena(name: str) -> None:
    assert check_arena("brawl", {}, Strategist(), named_configs.config(name)).scripted


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


@pytest.mark.parametrize(("schedule", "left"), [("linear", 0.0), ("constant", 1.0)])
def test_the_bonus_for_open_options_keeps_to_its_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedule: str, left: float
) -> None:
    seen: list[float] = []
    learn = Trainer.learn

    def noted(self: Trainer, step: Any) -> Any:
        seen.append(self.entropy_weight)
        return learn(self, step)

    monkeypatch.setattr(Trainer, "learn", noted)
    quietly(session(tmp_path / "run", settings(train__entropy_schedule=schedule)))
    first = CONFIG.learner.entropy_weight
    assert seen == pytest.approx([first * (1 - (1 - left) * n / 4) for n in range(4)])
    seen.clear()
    more = session(
        tmp_path / "run",
        settings(train__entropy_schedule=schedule),
        steps=8 * ROLLOUT,
        resume=True,
    )
    quietly(more)
    assert seen == pytest.approx([first * (1 - (1 - left) * n / 8) for n in range(4, 8)])


def test_progress_counts_the_last_matches_of_each_opponent(tmp_path: Path) -> None:
    progress = Progress(session(tmp_path / "run", steps=10 * ROLLOUT), earlier=2 * ROLLOUT)
    assert progress.left_s is None and progress.steps_s == 0.0
    for wins in (150, 90, 60, 0):
        result = Result(started=100, wins=wins, draws=0, losses=100 - min(wins, 100), frames=0,
                        returns=0.0)  # fmt: skip
        progress.note(Iteration({}, {"rest": result}), ROLLOUT)
    assert progress.matches == 150 + 100 + 100 + 100
    recent = progress.win_rates()["rest"]
    assert (recent.matches, recent.wins) == (200, 60), "the last 200, in whole iterations"
    assert progress.share == pytest.approx(0.6)
    assert progress.steps_s > 0 and progress.left_s is not None
