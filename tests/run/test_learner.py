from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from walk import toys

from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError, LearnerBusy, MissingDependency, RunFolderError
from understudy.core.spaces import Discrete
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.experience.spool import Spool
from understudy.learner.ring import RingLearner
from understudy.policy.mlp import Mlp
from understudy.policy.policy import untrained
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.run import learner
from understudy.supervise.child import step_back
from understudy.supervise.lock import learner_lock
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry, Journal, Reader


@pytest.fixture
def run(tmp_path: Path) -> Path:
    spec = PolicySpec(("a",), Discrete(("x", "y")), Mlp((2,)))
    RunFolder.open(tmp_path, spec=spec, config=None, clock=SystemClock())
    return tmp_path


def stopped() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def test_told_to_stop_it_says_that_it_started_and_stopped(run: Path) -> None:
    learner.work_until_stopped(run, wake=threading.Event(), stop=stopped())
    started, ended = (entry.e for entry in Reader(run / "journal").new())
    assert started == ev.LearnerStarted(pid=os.getpid(), version=0, pending=0)
    assert isinstance(ended, ev.LearnerStopped)
    assert (ended.reason, ended.pending) == ("stopped", 0)
    learner.work_until_stopped(run, wake=threading.Event(), stop=stopped())  # the lock is free


def test_declared_bounds_reach_the_normaliser(tmp_path: Path) -> None:
    config = toys.settings(features__bounds__a=[0, 1], learner__max_age_s=1e12)
    folder = toys.open_run(tmp_path / "run", config)
    toys.spool_of(folder).put(toys.episode("one", length=40))  # both features climb, to 78 and 79
    background = learner._made(folder, Journal(folder.journal, "learner", folder.clock), None)
    assert isinstance(background, RingLearner)
    toys.work_to_the_end(background)
    weights = folder.versions.policy(folder.versions.head() or 0).weights
    assert 0.0 < weights.obs_mean[0] <= 1.0
    assert weights.obs_mean[1] > 30.0


def test_a_second_one_is_refused(run: Path) -> None:
    with (
        learner_lock(run),
        pytest.raises(LearnerBusy, match="another learner works on this run folder"),
    ):
        learner.work_until_stopped(run, wake=threading.Event(), stop=stopped())
    assert Reader(run / "journal").new() == []


def test_what_is_missing_is_named_with_the_install_line(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "filelock", None)
    with pytest.raises(MissingDependency, match=r'filelock: pip install "\.\[learn\]"'):
        learner.work_until_stopped(run, wake=threading.Event(), stop=stopped())


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="not a run folder"):
        learner.serve(tmp_path / "nowhere", supervised=False)


def test_it_steps_back_for_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    stepped: list[int] = []
    monkeypatch.setattr(os, "nice", stepped.append, raising=False)
    monkeypatch.setenv("NPROC", "8")
    step_back(10)
    assert os.environ["NPROC"] == "1"
    assert stepped == [10]


def served(root: Path) -> Path:
    """The run of a server: what tells it apart is its ledger."""
    (root / "ledger").mkdir()
    return root


def played_behind_a_server(root: Path, count: int) -> None:
    folder = RunFolder.load(root, SystemClock())
    policy, rng = untrained(folder.spec, 0), np.random.default_rng(0)
    for number in range(count):
        seen = rng.random((8, 1), dtype=np.float32)
        choice = policy.act(seen, policy.begin(8), uniforms=rng.random((8, 1), dtype=np.float32))
        meta = Meta(id=f"live-{number}", outcome=Outcome.ABORTED, finished_at=folder.clock.time())
        episode = Episode(
            meta=meta,
            observations=seen,
            actions=choice.actions,
            log_probs=choice.log_probs,
            values=choice.values,
            rewards=choice.actions[:, 0].astype(np.float32),
            sampled=np.ones(8, bool),
            versions=np.zeros(8, np.int64),
            bootstrap=seen[0],
            sent=np.ones(8, bool),
            explored=np.zeros(8, bool),
            expected=np.zeros(8, np.float32),
        )
        Spool(root, folder.spec, folder.clock).put(episode)


GATE = """
from understudy.gates.decision import Verdict

class Careful:
    name = "careful"

    def __init__(self, threshold):
        self.threshold = threshold

    def evaluate(self, observation, action):
        return Verdict.of(float(action[0]), threshold=self.threshold)
"""


def test_behind_a_server_it_learns_by_the_gate_that_it_is_told(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "careful_gate.py").write_text(GATE, encoding="utf-8")
    monkeypatch.chdir(run)
    monkeypatch.syspath_prepend(str(run))
    played_behind_a_server(served(run), 12)
    wake, stop = threading.Event(), threading.Event()

    def enough(entry: Entry) -> None:
        if isinstance(entry.e, ev.VersionPublished):
            stop.set()

    behind = learner.ContinuousOptions(gate="careful_gate:Careful", threshold=0.5)
    learner.work_until_stopped(run, wake=wake, stop=stop, show=enough, continuous=behind)
    told = [entry.e for entry in Reader(run / "journal").new()]
    (trained,) = (one for one in told if isinstance(one, ev.ContinuousTrained))
    assert trained.agreement is not None and 0.0 < trained.agreement < 1.0
    assert trained.skipped > 0 and trained.episodes == 12
    assert isinstance(told[-1], ev.LearnerStopped) and told[-1].reason == "stopped"
    assert len(list((run / "archive").glob("*.npz"))) == 12


def test_a_gate_that_does_not_exist_is_named_before_anything_is_loaded(run: Path) -> None:
    with pytest.raises(ConfigError, match="--gate: expected open, cost, rollout"):
        learner.work_until_stopped(
            served(run),
            wake=threading.Event(),
            stop=stopped(),
            continuous=learner.ContinuousOptions(gate="csot"),
        )


def test_each_kind_of_run_has_its_own_learner(run: Path) -> None:
    wake, stop = threading.Event(), stopped()
    with pytest.raises(ConfigError, match=r"--continuous: .* is not the run of a server"):
        learner.work_until_stopped(
            run, wake=wake, stop=stop, continuous=learner.ContinuousOptions()
        )
    with pytest.raises(ConfigError, match=r"is the run of a server: learn there with --continuous"):
        learner.work_until_stopped(served(run), wake=wake, stop=stop)
    assert Reader(run / "journal").new() == [], "nothing was begun"
    assert not (run / "learner.lock").exists()
