from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from understudy.core.clock import SystemClock
from understudy.core.errors import LearnerBusy, MissingDependency, RunFolderError
from understudy.core.spaces import Discrete
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.run import learner
from understudy.run.lock import learner_lock
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Reader


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
    with pytest.raises(MissingDependency, match=r'filelock: pip install "understudy\[learn\]"'):
        learner.work_until_stopped(run, wake=threading.Event(), stop=stopped())


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="not a run folder"):
        learner.serve(tmp_path / "nowhere", supervised=False)


def test_it_steps_back_for_the_game(monkeypatch: pytest.MonkeyPatch) -> None:
    stepped: list[int] = []
    monkeypatch.setattr(os, "nice", stepped.append, raising=False)
    monkeypatch.setenv("NPROC", "8")
    learner.step_back(10)
    assert os.environ["NPROC"] == "1"
    assert stepped == [10]
