"""Training in environments of others, from their first step to a run folder that plays."""

from __future__ import annotations

import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from training.environments.toys import LENGTH
from understudy.adapters.environments.factory import maker
from understudy.adapters.environments.matches import EnvironmentMatches, by_rounds, play_matches
from understudy.adapters.environments.parallel import Finished
from understudy.adapters.environments.sides import PolicySide
from understudy.core.clock import SystemClock
from understudy.core.config import Config, with_values
from understudy.core.errors import ConfigError, InputError, LearnerBusy, RunFolderError
from understudy.core.spaces import Discrete
from understudy.experience.episode import returns_of
from understudy.learner.maths.segments import Segments
from understudy.learner.trainer import Trainer
from understudy.policy.mlp import Mlp
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.registry import run_folder
from understudy.registry.run_folder import RunFolder, remember
from understudy.supervise.budget import Budget
from understudy.supervise.lock import learner_lock
from understudy.telemetry import events as ev
from understudy.telemetry.fold import StatusFold
from understudy.telemetry.journal import Entry, Reader
from understudy.telemetry.status import Folders
from understudy.telemetry.status_reader import StatusReader
from understudy.training.environments.learning import Endings, do_not_pay, fit_first_segment
from understudy.training.environments.session import (
    EnvironmentProgress,
    EnvironmentSession,
    EvaluationProgress,
    environment_config,
)
from understudy.training.train import train_environment
from understudy.workers.players import WorkersReport

MIRROR = "gymnasium:training.environments.toys:Mirror-v0"
FAULTY = "gymnasium:training.environments.toys:Faulty-v0"
ECHO = "pettingzoo:training.environments.toys"
COUNTDOWN = "gymnasium:training.environments.toys:Countdown-v0"
BATCH = 8 * 32
RUN = Path("runs/one")
GUIDE = Path(__file__).parents[3] / "docs" / "environments.md"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def small(**changes: Any) -> Config:
    quick = {
        "train.games": 8,
        "train.segment": 32,
        "learner.gamma": 0.5,  # nothing here reaches far
        "learner.epochs": 4,
        "learner.learning_rate": 3e-3,
        "learner.learning_rate_max": 1e-2,
        "learner.kl_target": 0.03,
        "train.checkpoint_steps": 10 * BATCH,
    }
    return with_values(environment_config(), quick | changes)


def session(**changes: Any) -> EnvironmentSession:
    kept: dict[str, Any] = {
        "environment": MIRROR,
        "options": {"kind": "multi_binary"},
        "run": RUN,
        "evaluate": 40,
        "network": Mlp((32,)),
        "config": small(),
    }
    limits = {"steps": 40 * BATCH} | {
        name: changes.pop(name) for name in ("steps", "minutes") if name in changes
    }
    return EnvironmentSession(**{**kept, "budget": Budget(**limits), **changes})


def newest(run: Path = RUN) -> Policy:
    folder = RunFolder.load(run, SystemClock())
    champion = folder.pointers.read("champion")
    assert champion is not None
    return folder.versions.policy(champion.version)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("curriculum.step_back", False),
        ("rewards.set", "sparse"),
        ("rewards.weights", {"win": 2.0}),
        ("league.sampler", "latest"),
        ("population.agents", 4),
    ],
)
def test_settings_that_only_the_arena_reads_are_refused(key: str, value: object) -> None:
    section = key.partition(".")[0]
    with pytest.raises(ConfigError, match=rf"\[{section}\].*{key}"):
        session(config=small(**{key: value}))


def test_declared_bounds_reach_the_normaliser() -> None:
    bounds = {"features.bounds.observation": [0.0, 1.0]}
    train_environment(
        session(environment=COUNTDOWN, options={}, steps=4 * BATCH, config=small(**bounds))
    )
    assert newest().spec.features == ("observation",)
    assert 0.0 < newest().weights.obs_mean[0] <= 1.0, "without bounds it is the mean of 0 to 4"


def test_matches_of_an_environment_cannot_be_recorded() -> None:
    with pytest.raises(ConfigError, match=r"train\.record: .* cannot be replayed.* got 3"):
        session(config=small(**{"train.record": 3}))


def test_the_guide_balances_cartpole() -> None:
    """Runs what docs/environments.md prints under "From Python", as it stands."""
    text = GUIDE.read_text(encoding="utf-8").partition("### From Python")[2]
    guide: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(code, str(GUIDE), "exec"), guide)
    summary = guide["summary"]
    told = summary.as_dict()["eval"]
    assert (told["matches"], told["reward_max"]) == (100, 500.0)
    assert told["reward"] == told["mean_steps"] == summary.reward
    assert summary.reward >= 475.0
    assert guide["terminated"] is False, "a version played on"


@pytest.mark.parametrize(
    ("kind", "untrained", "goal"),
    [("continuous", 0.8, 0.97), ("multi_binary", 0.6, 0.95), ("multi_discrete", 0.55, 0.93)],
)
def test_every_kind_of_action_is_learned(kind: str, untrained: float, goal: float) -> None:
    """Of what can be earned: `untrained` at most by a policy that learned nothing."""
    asked = session(options={"kind": kind})
    environments = EnvironmentMatches(maker(MIRROR, kind=kind), range(8))
    summary = train_environment(asked)
    assert summary.reward is not None
    assert summary.reward / LENGTH >= goal
    policy = newest()
    nought = {name: np.zeros_like(value) for name, value in policy.weights.params.items()}
    fresh = Policy(policy.spec, replace(policy.weights, params=nought), 0)
    player = PolicySide(fresh, environments.spaces, rows=8, seed=0, sampled=False)
    seeds = np.arange(8, dtype=np.uint32)
    matches = by_rounds(play_matches(environments, player, player, 5, seeds=seeds))
    assert np.mean([match.finished.reward for match in matches]) / LENGTH <= untrained


def test_agents_of_a_parallel_environment_share_what_they_learn() -> None:
    summary = train_environment(session(environment=ECHO, options={}, steps=40 * 16 * 32))
    # Four signs to the left one, two to the right one: three a match on average.
    assert summary.reward == pytest.approx(3.0, abs=0.1)
    # An agent that is out makes no decisions: 6 of 8 in a match of four steps.
    assert summary.steps == pytest.approx(summary.matches * 6, rel=0.02)


def test_a_run_folder_holds_versions_that_play_and_tells_how_it_went() -> None:
    seen: list[tuple[int, int]] = []
    summary = train_environment(
        session(), show=lambda progress: seen.append((progress.steps, progress.version))
    )
    assert [steps for steps, _ in seen] == [BATCH * (n + 1) for n in range(40)]
    assert summary.version == 4
    assert summary.updates == 39  # the first segment shows what numbers look like here
    assert not summary.interrupted
    assert run_folder.latest() == RUN
    folder = RunFolder.load(RUN, SystemClock())
    assert folder.identity.game == MIRROR
    manifest = folder.versions.manifest(4)
    assert manifest.counters == {
        "steps": 40 * BATCH,
        "matches": summary.matches,
        "updates": 39,
        "rollbacks_followed": 0,
    }
    assert manifest.parent == 3
    told = [entry.e for entry in Reader(folder.journal).new()]
    assert sum(isinstance(e, ev.BatchTrained) for e in told) == 39
    assert [e.version for e in told if isinstance(e, ev.VersionPublished)] == [1, 2, 3, 4]
    trained = next(e for e in told if isinstance(e, ev.BatchTrained))
    assert trained.behaviour_kl_max is not None
    assert trained.behaviour_kl_max < 5e-9, "every ratio is 1 within 1e-4"
    policy = newest()
    obs = np.array([[0.9, -0.9], [-0.9, 0.9]], np.float32)
    assert policy.act(obs, policy.begin(2)).actions.tolist() == [[1, 0], [0, 1]]


def test_the_critic_begins_by_saying_the_same_of_everything() -> None:
    config = small()
    spec = PolicySpec(("a", "b"), Discrete(("x", "y")), Mlp((32,)))
    trainer = Trainer(spec, config.learner)
    rng = np.random.default_rng(0)
    shape = (32, 8)
    ongoing = np.ones(shape, np.float32)
    ongoing[9::10] = 0.0
    segments = Segments(
        obs=rng.normal(40.0, 9.0, (*shape, 2)).astype(np.float32),
        legal=np.ones((*shape, 2), bool),
        actions=np.zeros((*shape, 1), np.int32),
        log_probs=np.zeros(shape, np.float32),
        values=np.zeros(shape, np.float32),
        rewards=np.full(shape, -3.0, np.float32),
        ongoing=ongoing,
        first=np.zeros(shape, bool),
        valid=np.ones(shape, np.float32),
        opponent_actions=np.zeros((*shape, 1), np.int32),
        opponent_kinds=np.full(shape, -1, np.int32),
        foretold=np.zeros(shape, np.float32),
        memory=(),
        bootstrap=np.zeros(8, np.float32),
    )
    fit_first_segment(trainer, segments, 0.9)
    level = -3.0 / (1.0 - 0.9 * float(ongoing.mean()))
    policy = Policy(spec, trainer.weights(), 0)
    obs = rng.normal(40.0, 30.0, (50, 2)).astype(np.float32)
    np.testing.assert_allclose(policy.act(obs, ()).values, level, rtol=1e-5)
    np.testing.assert_allclose(policy.weights.obs_mean, segments.obs.mean((0, 1)), rtol=1e-4)
    # Nine steps from an end a return is nearly the whole sum, at an end it is one reward.
    slow = [-3.0 * sum(0.9**k for k in range(10 - t)) for t in range(10)]
    returns = returns_of(segments.rewards, np.float32(0.9) * segments.ongoing, later=level)
    np.testing.assert_allclose(returns[:10, 0], slow, rtol=1e-5)
    np.testing.assert_allclose(returns[-1], -3.0 + 0.9 * level, rtol=1e-5)


def test_a_run_is_gone_on_from_only_when_asked() -> None:
    train_environment(session(steps=10 * BATCH, evaluate=0))
    settings = (RUN / "config.toml").read_bytes()
    with pytest.raises(RunFolderError, match="--resume"):
        train_environment(session(config=small(**{"learner.gamma": 0.5})))
    assert (RUN / "config.toml").read_bytes() == settings, "a refusal changed the run"
    before = newest()
    started: list[EnvironmentProgress] = []

    def show(progress: EnvironmentProgress) -> None:
        started.append(progress)

    summary = train_environment(session(steps=20 * BATCH, resume=True, evaluate=0), show=show)
    assert len(started) == 10
    assert started[0].earlier == 10 * BATCH
    assert (summary.steps, summary.updates, summary.version) == (20 * BATCH, 19, 2)
    assert summary.matches > 20 * BATCH // LENGTH - 40
    folder = RunFolder.load(RUN, SystemClock())
    assert folder.versions.manifest(2).parent == before.version == 1


def test_a_run_that_is_complete_changes_nothing_when_resumed() -> None:
    train_environment(session(steps=10 * BATCH, evaluate=0))
    summary = train_environment(session(steps=10 * BATCH, resume=True, evaluate=8))
    assert (summary.version, summary.steps) == (1, 10 * BATCH)
    assert summary.evaluation and len(summary.evaluation.matches) == 8


def test_the_frozen_matches_are_shown_and_not_in_the_steps_a_second() -> None:
    trained: list[EnvironmentProgress] = []
    shares: list[float] = []
    speeds: list[float] = []

    def evaluating(progress: EvaluationProgress) -> None:
        assert (progress.version, progress.opponent, progress.matches) == (1, "", 20)
        shares.append(progress.share)
        speeds.append(trained[-1].steps_s)

    asked = session(steps=2 * BATCH, evaluate=20)
    summary = train_environment(asked, show=trained.append, show_evaluation=evaluating)
    assert len(trained) == 2
    assert shares[0] == 0.0 and shares[-1] == 1.0 and shares == sorted(shares)
    assert len(set(shares)) > 2
    assert summary.steps_s >= speeds[0] > speeds[-1]


def test_a_start_that_fails_leaves_nothing_that_a_retry_would_refuse() -> None:
    remember(Path("runs/before"))
    Path("runs/mine").mkdir(parents=True)
    Path("runs/mine/notes.txt").write_text("a file of the user", encoding="utf-8")
    for run in (RUN, Path("runs/mine")):
        with pytest.raises(InputError, match="a reward of nan"):
            train_environment(session(environment=FAULTY, run=run))
        run_folder.check_resume(run, resume=False)
        assert Path("runs/LATEST").read_text(encoding="utf-8") == "runs/before\n"
    assert not RUN.exists()
    assert Path("runs/mine/notes.txt").exists()


def test_ctrl_c_keeps_everything() -> None:
    def show(progress: EnvironmentProgress) -> None:
        if progress.updates == 5:
            signal.raise_signal(signal.SIGINT)

    summary = train_environment(session(), show=show)
    assert summary.interrupted
    assert summary.evaluation is None
    assert (summary.updates, summary.version) == (5, 1)
    assert newest().version == 1


@pytest.mark.parametrize(
    ("noise_steps", "advice"), [(1, "--set train.noise_steps=16"), (16, "another --seed")]
)
def test_a_run_that_no_match_of_reaches_a_goal_is_told_so_at_once(
    noise_steps: int, advice: str
) -> None:
    news: list[str] = []

    def show(progress: EnvironmentProgress) -> None:
        news.extend(progress.news)
        signal.raise_signal(signal.SIGINT)  # after the first segment, before anything is learned

    config = small(**{"train.noise_steps": noise_steps})
    dull = session(environment=COUNTDOWN, options={"after": 2}, config=config)
    summary = train_environment(dull, show=show)
    (problem,) = StatusReader(RUN, SystemClock()).read().problems
    assert problem.message.startswith(
        f"no match ended by a goal: the time limit ended all {summary.matches} of this session, "
        "each with the reward 2, so nothing can be learned yet; "
    )
    assert advice in problem.message
    assert news == [problem.message] and summary.as_dict()["problem"] == problem.message


def test_a_run_in_which_matches_end_by_themselves_has_no_such_problem() -> None:
    def show(progress: EnvironmentProgress) -> None:
        signal.raise_signal(signal.SIGINT)

    summary = train_environment(session(environment=COUNTDOWN, options={"after": 5}), show=show)
    assert summary.matches > 32 and "problem" not in summary.as_dict()
    assert StatusReader(RUN, SystemClock()).read().problems == ()


def test_a_problem_of_a_run_is_over_with_the_first_match_that_differs() -> None:
    alike, goal = Finished(-200.0, 200, alike=True), Finished(-90.0, 90)
    endings = Endings(differed=False, noise_steps=1)
    assert endings.add([alike] * 31, steps=6_200) is None
    assert isinstance(endings.add([alike], steps=6_400), ev.Problem)
    assert endings.add([alike] * 99, steps=9_000) is None, "it is said once"
    note = endings.add([alike, goal], steps=9_500)
    assert isinstance(note, ev.Note) and "after 9,500 steps" in note.message
    assert endings.add([alike] * 99, steps=20_000) is None
    # A policy that balances CartPole to the time limit every time may be trained on.
    past = [ev.MatchesTrained(steps=99, results={}, matches=9, alike=alike) for alike in (9, 8)]
    fold = StatusFold()
    for event, differs in zip(past, (False, True), strict=True):
        fold.add(Entry(t=1.0, by="train", e=event))
        assert fold.status(Folders()).matches_differ is differs
    assert Endings(differed=True, noise_steps=1).add([alike] * 99, steps=20_000) is None


def test_it_is_said_where_workers_do_not_pay() -> None:
    report = WorkersReport(
        count=4, ready=4, lost=0, slowest="worker 2", slowdown=1.1, busy=0.9, wait_s=1.0
    )
    assert do_not_pay(report, 0.5) == "", "playing takes two thirds"
    words = do_not_pay(report, 3.0)
    assert "playing takes 25% of an iteration (1.00 of 4.00 s), the learner the rest" in words
    assert "play 20% of the time that a segment takes" in do_not_pay(replace(report, busy=0.2), 0.5)


def test_the_same_seed_learns_the_same() -> None:
    for name in ("one", "two"):
        train_environment(session(run=Path(f"runs/{name}"), steps=6 * BATCH, evaluate=0))
    one, two = newest(Path("runs/one")), newest(Path("runs/two"))
    for name, value in one.weights.params.items():
        np.testing.assert_array_equal(value, two.weights.params[name])


def test_one_learner_at_a_time() -> None:
    train_environment(session(steps=2 * BATCH, evaluate=0))
    settings = (RUN / "config.toml").read_bytes()
    with learner_lock(RUN), pytest.raises(LearnerBusy):
        train_environment(session(resume=True, config=small(**{"learner.gamma": 0.5})))
    assert (RUN / "config.toml").read_bytes() == settings
    with pytest.raises(RunFolderError, match="holds no run to go on with"):
        train_environment(session(resume=True, run=Path("runs/none")))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"minutes": 1.0}, "give one of them"),
        ({"steps": None}, "give one of them"),
        ({"steps": None, "minutes": 0.0}, "--minutes"),
        ({"evaluate": -1}, "--eval"),
        ({"steps": BATCH}, f"--steps: expected {2 * BATCH} or more"),
    ],
)
def test_an_impossible_session_is_an_error(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        train_environment(session(**changes))
    assert not RUN.exists()


def test_more_minutes_do_not_pay_the_entropy_bonus_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[float] = []
    accept = Trainer.accept

    def noted(self: Trainer, state: Any, report: Any) -> Any:
        seen.append(self.entropy_weight)
        return accept(self, state, report)

    monkeypatch.setattr(Trainer, "accept", noted)
    train_environment(session(steps=4 * BATCH, evaluate=0))
    assert seen[0] > seen[-1] > 0.0
    seen.clear()
    train_environment(session(steps=None, minutes=0.05, evaluate=0, resume=True))
    assert seen and set(seen) == {0.0}, "the session before spent all of it"


def test_minutes_bound_a_session() -> None:
    summary = train_environment(session(steps=None, minutes=1e-9, evaluate=0))
    assert (summary.updates, summary.version) == (1, 1), "room for one update, and no more"
