"""From rules to champion and back, with real processes: two versions with scripted habits, one
worse than the rules and one better, which then breaks down."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.core.clock import SystemClock
from understudy.policy.weights import encode, fresh
from understudy.registry.pointers import LATEST
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest

ROOT = Path(__file__).parents[2]


def bot(run: Path, *, matches: int, seed: int, wins: str = "push") -> None:
    command = [sys.executable, "-m", "tests.walk.promotion_child", run, matches, seed, wins]
    subprocess.run([str(part) for part in command], cwd=ROOT, check=True, timeout=120)


def understudy(*arguments: object) -> Any:
    command = [sys.executable, "-m", "understudy", *map(str, arguments), "--json"]
    made = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return json.loads(made.stdout)


def publish(run: Path, number: int, *, pushes: float, matches: int) -> None:
    """A version that has learned from so many matches, and pushes with this probability."""
    folder = RunFolder.load(run, SystemClock())
    weights = fresh(folder.spec, None)
    weights.params["policy.b"] = np.log(np.array([1.0 - pushes, pushes], np.float32))
    manifest = Manifest(
        number=number,
        parent=None,
        created_at=0.0,
        spec=folder.spec,
        counters={"ingested": matches},
    )
    folder.versions.commit(manifest, {WEIGHTS: encode(weights)})
    folder.pointers.move("candidate", number, by=LATEST)


def kinds(run: Path, version: int) -> list[str]:
    told = understudy("promotion", "explain", version, "--run", run)
    return [one["kind"] for one in told["verdicts"]]


def champion(run: Path) -> int:
    record = RunFolder.load(run, SystemClock()).pointers.read("champion")
    assert record is not None
    return record.version


@pytest.mark.timeout(180)
def test_from_rules_to_champion_and_back(tmp_path: Path) -> None:
    run = tmp_path / "run"
    bot(run, matches=40, seed=1)
    assert champion(run) == 0

    publish(run, 1, pushes=0.05, matches=40)
    bot(run, matches=80, seed=2)
    assert kinds(run, 1) == ["nominated", "harmful"]
    assert champion(run) == 0

    publish(run, 2, pushes=0.95, matches=120)
    bot(run, matches=150, seed=3)
    assert kinds(run, 2) == ["nominated", "promoted"]
    assert champion(run) == 2
    status = understudy("promotion", "status", "--run", run)
    assert status["champion"] == 2

    bot(run, matches=150, seed=4, wins="hold")
    assert kinds(run, 2) == ["nominated", "promoted", "alarm", "rolled back"]
    assert champion(run) == 0
