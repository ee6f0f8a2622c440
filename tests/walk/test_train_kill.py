"""Training is killed at any moment, again and again, and goes on from the last version."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cli.training import ROLLOUT, command

from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Reader

KILLS = 4
# A version with every iteration: most of the time is spent where a kill could hurt.
SETTINGS = ("checkpoint_steps=64", "snapshot_steps=128")
OFTEN = tuple(flag for one in SETTINGS for flag in ("--set", f"train.{one}"))


def start(run: Path, *args: object) -> subprocess.Popen[str]:
    line = command(*OFTEN, "--run", run, *args)
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def head(run: Path) -> int:
    """The version that a resume would go on from; it verifies, or it is not one."""
    if not (run / "run.json").exists():
        return 0
    return RunFolder.load(run, SystemClock()).versions.head() or 0


def newest(run: Path) -> int:
    """Its number alone, for waiting: verifying every file would take the machine from training."""
    folders = [path.name for path in (run / "versions").glob("[0-9]*")]
    return max(map(int, folders), default=0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_killed_training_goes_on_from_its_last_version(tmp_path: Path) -> None:
    run, chance, last = tmp_path / "run", random.Random(), 0
    reached = [0]
    for kill in range(KILLS):
        with start(run, "--minutes", 9, *(["--resume"] if kill else [])) as child:
            deadline = time.monotonic() + 120.0
            while newest(run) < last + 2:
                assert child.poll() is None, child.communicate()[1]
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(chance.uniform(0.0, 0.3))
            child.kill()
            child.communicate()
        assert child.returncode == -signal.SIGKILL
        after = head(run)
        assert after >= last + 2, "a version that was there is gone"
        counters = RunFolder.load(run, SystemClock()).versions.verify(after).counters
        assert counters["steps"] == ROLLOUT * counters["iterations"] > reached[-1]
        reached.append(counters["steps"])
        last = after
    goal = reached[-1] + 3 * ROLLOUT
    done = subprocess.run(
        command(*OFTEN, "--run", run, "--resume", "--steps", goal, "--json"),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["steps"], told["version"]) == (goal, last + 3)
    check_lineage(run)
    check_journal(run, reached)


def check_lineage(run: Path) -> None:
    """Every version that is kept follows from the one before, one iteration later."""
    folder = RunFolder.load(run, SystemClock())
    assert not list(folder.versions.root.glob(".tmp-*")), "what a kill left is swept"
    numbers = folder.versions.numbers()
    for number in numbers:
        manifest = folder.versions.verify(number)
        assert manifest.parent == (number - 1 or None)
        assert manifest.counters["steps"] == number * ROLLOUT
        assert np.isfinite(list(manifest.metrics.values())).all()
    champion = folder.pointers.read("champion")
    assert champion is not None and champion.version == numbers[-1]
    counters = folder.versions.manifest(numbers[-1]).counters
    assert counters["rival.0"] in numbers and counters["rival.1"] in numbers


def check_journal(run: Path, reached: list[int]) -> None:
    """Each session says where it began: with all that the one before had committed."""
    told = [entry.e for entry in Reader(run / "journal").new()]
    began = [one.version * ROLLOUT for one in told if isinstance(one, events.LearnerStarted)]
    assert began == reached
    ratios = [one.first_ratio for one in told if isinstance(one, events.BatchTrained)]
    np.testing.assert_allclose(ratios, 1.0, atol=1e-3)
