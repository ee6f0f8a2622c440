"""The simulator's process: a kill costs nothing, and it takes its share of a core."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from judging.swarm_versions import OPTIONS, WORST, commit, run_of_swarm, settings

from understudy.gates.promotion.records import Paired
from understudy.judging.simulator import Simulator
from understudy.promotion.log import PromotionLog
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder
from understudy.run.simulator import main, rest_after, simulate_until_stopped
from understudy.supervise.lock import simulator_lock
from understudy.supervise.process import REFUSED
from understudy.supervise.simulator import start_simulator
from understudy.telemetry import events
from understudy.telemetry.journal import Journal, Reader

CONFIG = settings(alpha=1e-3, simulator_share=1.0)


def run_to_test(root: Path) -> RunFolder:
    folder = run_of_swarm(root, config=CONFIG)
    commit(folder, 1, "DEFENSIVE")
    Promotion(folder).declare(rules=WORST, score=None)
    return folder


def pairs(folder: RunFolder) -> list[tuple[object, ...]]:
    return [
        (record.canary, record.incumbent, record.seed)
        for _, record in PromotionLog(folder.promotion).new()
        if isinstance(record, Paired)
    ]


def wait_for(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def champion(folder: RunFolder) -> int:
    pointer = folder.pointers.read("champion")
    return pointer.version if pointer else 0


def test_killed_after_its_first_pairs_it_goes_on_with_the_same_evidence(tmp_path: Path) -> None:
    alone = run_to_test(tmp_path / "alone")
    one = Simulator(alone, Promotion(alone), rules=WORST, options=OPTIONS, problem=print)
    while one.step():
        pass
    expected = pairs(alone)
    assert len(expected) > 1 and champion(alone) == 1

    killed = run_to_test(tmp_path / "killed")
    journal = Journal(killed.journal, "test", killed.clock)
    process = start_simulator(killed, journal, rules=WORST, options=OPTIONS)
    try:
        wait_for(lambda: pairs(killed))
        os.kill(process.pid, signal.SIGKILL)
        wait_for(lambda: champion(killed) == 1)
    finally:
        assert process.stop(30.0)
    assert pairs(killed) == expected
    written = [entry.e for entry in Reader(killed.journal).new()]
    assert [one.kind for one in written if isinstance(one, events.RoleChanged)] == ["promoted"]


def test_a_second_one_on_the_same_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = run_to_test(tmp_path)
    monkeypatch.setattr("understudy.run.simulator.step_back", lambda niceness: None)
    stopped = threading.Event(), threading.Event()
    monkeypatch.setattr("understudy.run.simulator.end_when_told", lambda *, supervised: stopped)
    with simulator_lock(folder.root):
        assert main([str(folder.root), "--rules", WORST, "--option", "difficulty=hard"]) == REFUSED
    assert "another simulator works on this run folder" in capsys.readouterr().err
    assert pairs(folder) == []


def test_told_to_stop_it_plays_nothing(tmp_path: Path) -> None:
    folder, stop = run_to_test(tmp_path), threading.Event()
    stop.set()
    simulate_until_stopped(folder.root, rules=WORST, options=OPTIONS, stop=stop)
    assert pairs(folder) == []


@pytest.mark.parametrize("share", [0.05, 0.25, 1.0])
def test_it_rests_so_that_work_is_its_share(share: float) -> None:
    worked = 0.8
    assert worked / (worked + rest_after(worked, share=share)) == pytest.approx(share)
