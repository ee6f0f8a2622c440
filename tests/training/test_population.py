"""Populations: the worst give way, a run goes on as it was, and every folder is a run."""

from __future__ import annotations

import csv
import json
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from arena.makers import BOTS, CONFIG, GAME

from understudy.core.clock import SystemClock
from understudy.core.config import Config, RewardsConfig, with_values
from understudy.core.errors import (
    ConfigError,
    FileFormatError,
    LearnerBusy,
    RunFolderError,
    UnderstudyError,
)
from understudy.games import catalog
from understudy.games.rewards import weights_of
from understudy.league import lineage as lineages
from understudy.league.lineage import Lineage, Settings
from understudy.policy.mlp import Mlp
from understudy.registry.run_folder import RunFolder
from understudy.supervise.budget import Budget
from understudy.supervise.lock import learner_lock
from understudy.telemetry import events
from understudy.telemetry.journal import Reader
from understudy.training.population.agent import seed_of, shaped
from understudy.training.population.learning import PopulationLearning
from understudy.training.population.session import PopulationProgress, PopulationSummary
from understudy.training.session import TrainSession
from understudy.training.stage_plan import StagePlan
from understudy.training.train import check, train_population

GAMES, SEGMENT = 32, 24
ROLLOUT = GAMES * SEGMENT
INTERVAL = 6 * ROLLOUT
NETWORK = Mlp(widths=(16,))
HOPELESS, GOOD = 1e-9, 1e-2
FIRST = tuple(Settings(rate, 0.005) for rate in (HOPELESS, 4e-3, GOOD))
SETTINGS = {
    "train.games": GAMES,
    "train.segment": SEGMENT,
    "train.opponents": "pull=1,moody=1",
    "train.checkpoint_steps": 100 * ROLLOUT,
    "learner.minibatches": 2,
    "learner.epochs": 3,
    "learner.learning_rate": 1e-3,
    "learner.learning_rate_min": HOPELESS,
    "learner.learning_rate_max": 0.1,
    "learner.gamma": 0.95,
    "population.agents": len(FIRST),
    "population.interval_steps": INTERVAL,
    "population.replaced": 0.34,
    "monitor.csv": False,
}


@pytest.fixture(autouse=True, scope="module")
def toy() -> Iterator[None]:
    """The toy of two players is a game that has a name."""
    entry = catalog.Entry(make=lambda: GAME, summary="Pull a rope.", options={}, bots=lambda: BOTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "_GAMES", {**catalog._GAMES, "tug": entry})
        yield


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def settings(**changes: Any) -> Config:
    return with_values(CONFIG, SETTINGS | {k.replace("__", "."): v for k, v in changes.items()})


def session(
    run: Path, rounds: float = 2.5, *, resume: bool = False, **changes: Any
) -> TrainSession:
    return TrainSession(
        game="tug",
        game_options={},
        run=run,
        network=NETWORK,
        config=settings(**changes),
        budget=Budget(steps=int(rounds * INTERVAL)),
        resume=resume,
    )


def quietly(one: TrainSession, first: Sequence[Settings] | None = FIRST) -> PopulationSummary:
    return train_population(one, show=lambda progress: None, first=first)


def folder_of(run: Path) -> RunFolder:
    return RunFolder.load(run, SystemClock())


def journal_of(run: Path) -> list[events.Event]:
    return [entry.e for entry in Reader(run / "journal").new()]


def lineage_of(run: Path) -> Lineage:
    return lineages.decode((run / lineages.FILE).read_bytes(), what=lineages.FILE)


def forget(run: Path, numbers: Sequence[int]) -> None:
    for number in numbers:
        shutil.rmtree(folder_of(run).versions.folder(number))


def configs(run: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in run.rglob("config.toml")}


def resumed(run: Path, **changes: Any) -> tuple[TrainSession, StagePlan]:
    one = session(run, 4.0, resume=True, **changes)
    return one, check(one, population=True)


def rates(run: Path, name: str) -> list[float]:
    """The share of wins against one bot, iteration by iteration."""
    told = [one.results[name] for one in journal_of(run) if isinstance(one, events.MatchesTrained)]
    return [wins / max(wins + draws + losses, 1) for _, wins, draws, losses in told]


def test_shaping_leaves_the_result_alone() -> None:
    weights = np.array([0.01, 1.0, -1.0, 0.5], np.float32)
    after = shaped(("damage_dealt", "win", "loss", "combo"), weights, 2.0)
    np.testing.assert_allclose(after, [0.02, 1.0, -1.0, 1.0])
    assert after.dtype == np.float32


@pytest.mark.parametrize("shaping", [0.1, 10.0])
def test_shaping_leads_to_no_weight_that_an_agent_alone_would_refuse(shaping: float) -> None:
    names = ("damage", "combo", "closing", "stun")
    weights = np.array([200.0, -200.0, 2**-16, -(2**-16)], np.float32)
    after = shaped(names, weights, shaping)
    rewards = RewardsConfig(weights=dict(zip(names, map(float, after), strict=True)))
    assert weights_of("brawl", rewards).items() >= rewards.weights.items()
    np.testing.assert_array_equal(np.sign(after), np.sign(weights))
    assert not shaped(names, np.zeros(4, np.float32), shaping).any(), "what is off stays off"


def test_an_agent_is_itself_in_a_population_of_any_size() -> None:
    seeds = [seed_of(seed, 0, agent) for seed in range(20) for agent in range(1, 20)]
    assert len(set(seeds)) == len(seeds) and min(seeds) >= 0, "no two agents of any two runs"


class Told:
    """A population with a hopeless agent, trained for two rounds and a half."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.shown: list[tuple[str, tuple[str, ...]]] = []
        self.summary = train_population(session(run), show=self._note, first=FIRST)

    def _note(self, progress: PopulationProgress) -> None:
        self.shown.append((progress.standing(), tuple(progress.news)))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Only for looking at."""
    here = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        return Told(here / "run")


def test_a_hopeless_agent_gives_way_and_the_best_one_learns(trained: Told) -> None:
    summary = trained.summary
    first_round = summary.lineage.of_round(1)
    assert first_round[0].replaced, [row.fitness for row in first_round]
    assert all(one.learning_rate > 1e-3 for one in summary.settings), "hopeless to the end"
    best = trained.run / f"agent-{summary.best}"
    won = rates(best, "moody")
    assert np.mean(won[-4:]) > np.mean(won[:3]) + 0.2, won
    fitness = [one for one in summary.fitness if one is not None]
    assert summary.fitness[summary.best - 1] == max(fitness) > 0.7


def test_the_lineage_is_told_everywhere(trained: Told) -> None:
    run, lineage = trained.run, trained.summary.lineage
    assert lineage == lineage_of(run) and lineage.rounds == 2
    assert [row.steps for row in lineage.rows] == [INTERVAL] * 3 + [2 * INTERVAL] * 3
    with (run / lineages.TABLE).open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [(int(row["round"]), int(row["agent"]), int(row["parent"])) for row in table] == [
        (row.round, row.agent, row.parent) for row in lineage.rows
    ]
    assert float(table[0]["learning_rate_before"]) == pytest.approx(HOPELESS)
    assert (run / lineages.PICTURE).read_bytes().startswith(b"\x89PNG")
    replaced = [row for row in lineage.rows if row.replaced]
    told = [one for one in journal_of(run) if isinstance(one, events.AgentReplaced)]
    assert [(one.agent, one.parent, one.steps) for one in told] == [
        (row.agent, row.parent, row.steps) for row in replaced
    ]
    assert any(isinstance(one, events.AgentReplaced) for one in journal_of(run / "agent-1"))
    news = {line for _, lines in trained.shown for line in lines}
    assert any(line.startswith("agent 1 (") and "copy of agent" in line for line in news)
    assert trained.shown[-1][0].startswith("agents ") and "*" in trained.shown[-1][0]
    said = json.loads(json.dumps(trained.summary.as_dict()))
    assert said["agents"] == 3 and said["best"] == trained.summary.best
    assert any("gent" in line for line in trained.summary.descent())


def test_the_run_itself_offers_the_best_agent(trained: Told) -> None:
    summary, folder = trained.summary, folder_of(trained.run)
    best = folder_of(trained.run / f"agent-{summary.best}").versions
    head = folder.versions.head()
    assert head == summary.version == folder.pointers.read("champion").version  # type: ignore[union-attr]
    assert folder.versions.manifest(head).counters["agent"] == summary.best
    ours = folder.versions.policy(head).weights.params
    theirs = best.policy(best.head() or 0).weights.params
    assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_every_agent_is_a_run_with_its_own_settings(trained: Told) -> None:
    for number, expected in enumerate(trained.summary.settings, start=1):
        folder = folder_of(trained.run / f"agent-{number}")
        assert folder.config.learner.learning_rate == pytest.approx(expected.learning_rate)
        assert folder.config.learner.entropy_weight == pytest.approx(expected.entropy_weight)
        assert folder.config.population.agents == 1
        head = folder.versions.head() or 0
        assert folder.versions.manifest(head).counters["steps"] == int(2.5 * INTERVAL)
    seeds = {folder_of(trained.run / f"agent-{n}").config.learner.seed for n in (1, 2, 3)}
    assert len(seeds) == 3


def test_the_same_seed_gives_the_same_lineage_and_another_one_does_not(
    trained: Told, tmp_path: Path
) -> None:
    again = quietly(session(tmp_path / "again"))
    assert again.lineage == trained.summary.lineage and again.fitness == trained.summary.fitness
    other = quietly(session(tmp_path / "other", 1.2, learner__seed=5))
    assert other.lineage.of_round(1) != again.lineage.of_round(1)


def test_going_on_after_a_crash_between_two_commits(trained: Told, tmp_path: Path) -> None:
    """Agent 2 and the run itself lost what they committed last; the others are ahead."""
    run = tmp_path / "run"
    shutil.copytree(trained.run, run)
    versions = folder_of(run / "agent-2").versions
    shutil.rmtree(versions.folder(versions.head() or 0))
    assert versions.head() == 2
    shutil.rmtree(folder_of(run).versions.folder(trained.summary.version))
    done = quietly(session(run, 3.2, resume=True))
    assert done.steps == 20 * ROLLOUT and done.lineage.rounds == 3
    assert done.lineage.until(2 * INTERVAL) == trained.summary.lineage, "rounds that all had stay"
    assert [row.steps for row in done.lineage.of_round(3)] == [3 * INTERVAL] * 3
    for number in (1, 2, 3):
        kept = folder_of(run / f"agent-{number}").versions
        steps = [kept.verify(one).counters["steps"] for one in kept.numbers()]
        assert steps == [INTERVAL, 2 * INTERVAL, 3 * INTERVAL, 20 * ROLLOUT]
    assert folder_of(run).versions.head() == done.version


def test_a_round_that_no_version_followed_is_held_again(trained: Told, tmp_path: Path) -> None:
    """Killed after the lineage was written and before everyone was committed."""
    run = tmp_path / "run"
    shutil.copytree(trained.run, run)
    for number, gone in ((1, [3]), (2, [3, 2]), (3, [3, 2])):
        forget(run / f"agent-{number}", gone)
    done = quietly(session(run, 2.2, resume=True))
    assert [(row.round, row.agent) for row in done.lineage.rows] == [
        (number, agent) for number in (1, 2) for agent in (1, 2, 3)
    ]
    assert done.lineage.of_round(1) == trained.summary.lineage.of_round(1)
    assert done.lineage.of_round(2)[0].before == done.lineage.of_round(1)[0].after


def test_a_crash_in_the_very_first_commit_begins_anew(trained: Told, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained.run, run)
    for number, gone in ((1, [3, 2]), (2, [3, 2, 1]), (3, [3, 2, 1])):
        forget(run / f"agent-{number}", gone)
    with PopulationLearning(*resumed(run), SystemClock(), None) as learning:
        assert learning.steps == 0 and learning.lineage.rounds == 0
    assert not folder_of(run / "agent-1").versions.numbers()


def test_what_an_agent_learned_alone_is_never_removed(trained: Told, tmp_path: Path) -> None:
    """In one version more, in several, and where no steps are common any more."""
    run = tmp_path / "run"
    shutil.copytree(trained.run, run)
    before = configs(run)
    agent = folder_of(run / "agent-2").versions
    last = agent.manifest(3)
    for number in (4, 5):
        counters = {**last.counters, "steps": last.counters["steps"] + number * ROLLOUT}
        contents = {name: agent.read(last, name) for name in ("weights.npz", "learner.npz")}
        agent.commit(msgspec.structs.replace(last, number=number, counters=counters), contents)
        with pytest.raises(RunFolderError, match=r"agent-2: .* 11,520 .*\(4.*trained alone.*move"):
            quietly(session(run, 4.0, resume=True, learner__gamma=0.9))
        assert agent.head() == number
    forget(run / "agent-2", [1, 2, 3])
    with pytest.raises(RunFolderError, match=r"agent-2: .* 0 steps.*\(4, 5\).*another folder"):
        quietly(session(run, 4.0, resume=True, learner__gamma=0.9))
    assert agent.numbers() == [4, 5]
    assert folder_of(run / "agent-1").versions.numbers() == [1, 2, 3]
    assert configs(run) == before, "what is refused leaves the settings alone"


def test_more_than_a_crash_leaves_behind_is_never_removed(trained: Told, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained.run, run)
    forget(run / "agent-1", [2, 3])
    with pytest.raises(RunFolderError, match=r"agent-2: .*\(2, 3\)"):
        quietly(session(run, 4.0, resume=True))
    assert folder_of(run / "agent-2").versions.numbers() == [1, 2, 3]


def test_a_resume_that_is_refused_leaves_the_settings_alone(trained: Told, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained.run, run)
    before = configs(run)

    def refused(match: str, error: type[UnderstudyError] = RunFolderError, **changes: Any) -> None:
        with pytest.raises(error, match=match):
            quietly(session(run, 4.0, resume=True, learner__gamma=0.9, **changes))
        assert configs(run) == before

    refused("has 3 agents, not 4", population__agents=4)
    with learner_lock(run / "agent-3"):
        refused("agent-3: another learner", LearnerBusy)
    folder_of(run / "agent-3").pointers.pin("champion", 1, by="a person")
    refused("agent-3: .*rolled back")
    (run / lineages.FILE).unlink()
    refused("holds the run of a single agent")


def test_a_run_that_goes_on_within_a_round_meets_the_agents_of_that_round(tmp_path: Path) -> None:
    run = tmp_path / "run"
    mix: dict[str, Any] = {"train__opponents": "pull=1,moody=1,self=2"}
    quietly(session(run, 1.5, **mix))

    def check_seats(version: int) -> None:
        with PopulationLearning(*resumed(run, **mix), SystemClock(), None) as learning:
            snapshots = [one.member.snapshots for one in learning.agents]
        for one in snapshots:
            for group, name in enumerate(one.met):
                agent, _, number = name.partition("@")
                assert number == "1"
                expected = folder_of(run / agent).versions.policy(version).weights.params
                for key, value in expected.items():
                    np.testing.assert_array_equal(np.asarray(one.params[key])[group], value)

    check_seats(version=1)
    for agent in (1, 2, 3):
        forget(run / f"agent-{agent}", [1])
    check_seats(version=2)


def test_ctrl_c_keeps_everything(tmp_path: Path) -> None:
    def stop(progress: PopulationProgress) -> None:
        if progress.updates == 2:
            signal.raise_signal(signal.SIGINT)

    asked = session(tmp_path / "run", monitor__csv=True)
    done = train_population(asked, show=stop, first=FIRST)
    assert done.interrupted and done.steps == 2 * ROLLOUT
    for number in (1, 2, 3):
        with (tmp_path / f"run/agent-{number}/training_metrics.csv").open(encoding="utf-8") as file:
            rates_told = [float(row["learning_rate"]) for row in csv.DictReader(file)]
        assert rates_told == pytest.approx([FIRST[number - 1].learning_rate] * len(rates_told))
        assert rates_told
    assert {folder_of(tmp_path / "run" / f"agent-{n}").versions.head() for n in (1, 2, 3)} == {1}
    went_on = quietly(session(tmp_path / "run", 1.2, resume=True), first=None)
    assert went_on.lineage.first == FIRST and went_on.lineage.rounds == 1
    assert went_on.lineage.of_round(1)[0].steps == INTERVAL, "evidence of both sessions counts"


def test_an_agent_whose_numbers_break_does_not_end_the_others(tmp_path: Path) -> None:
    run, absurd = tmp_path / "run", Settings(1e38, 0.005)
    done = quietly(session(run, 1.2, learner__learning_rate_max=1e38), (absurd, *FIRST[1:]))
    problems = [one for one in journal_of(run / "agent-1") if isinstance(one, events.Problem)]
    assert problems and "not finite" in problems[0].message
    row = done.lineage.of_round(1)[0]
    assert row.replaced or "not finite" in row.why
    assert row.after.learning_rate < absurd.learning_rate
    kept = [folder_of(run / f"agent-{number}").versions for number in (1, 2, 3)]
    assert {one.manifest(one.head() or 0).counters["steps"] for one in kept} == {done.steps}


def test_agents_meet_each_other_from_the_first_round_on(tmp_path: Path) -> None:
    quietly(session(tmp_path / "run", 2.2, train__opponents="pull=1,moody=1,self=2"))
    told = [
        one
        for one in journal_of(tmp_path / "run/agent-2")
        if isinstance(one, events.MatchesTrained)
    ]
    names = {name for one in told for name in one.results}
    assert names > {"pull", "moody"} and names <= {"pull", "moody", "agent-1", "agent-2", "agent-3"}
    assert all(len(one.results) == 2 for one in told[:6]), "before the first round there is nobody"


def test_what_cannot_be_a_population_says_why(tmp_path: Path, trained: Told) -> None:
    stage = {"name": "one", "opponents": "pull"}
    with pytest.raises(ConfigError, match="curriculum"):
        quietly(session(tmp_path / "run", curriculum__stages=[stage]))
    with pytest.raises(ConfigError, match=r"--population.*--exploit"):
        quietly(session(tmp_path / "run", league__exploits="runs/other@3"))
    with pytest.raises(ConfigError, match="2 agents or more, got 1"):
        quietly(session(tmp_path / "run", population__agents=1))
    with pytest.raises(ConfigError, match=r"population\.interval_steps"):
        quietly(session(tmp_path / "run", 0.9))
    assert not (tmp_path / "run").exists()
    with pytest.raises(RunFolderError, match="has 3 agents, not 4"):
        quietly(session(trained.run, resume=True, population__agents=4))
    damaged = tmp_path / "damaged"
    shutil.copytree(trained.run, damaged)
    (damaged / lineages.FILE).write_bytes(b"{")
    with pytest.raises(FileFormatError, match=r"lineage\.json"):
        quietly(session(damaged, 4.0, resume=True))
    with pytest.raises(ConfigError, match="--steps: this run has 11,520 steps already"):
        quietly(session(trained.run, resume=True))
