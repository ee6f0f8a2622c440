"""Training is killed at any moment, again and again, and goes on from the last version."""

from __future__ import annotations

import csv
import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from cli.training import STAGED_ROLLOUT as ROLLOUT
from cli.training import command, staged

from understudy.core.clock import SystemClock
from understudy.league import state as league_files
from understudy.registry.run_folder import RunFolder
from understudy.supervise.budget import Budget
from understudy.telemetry import events
from understudy.telemetry.journal import Journal, Reader
from understudy.training.arena_learning import ArenaLearning
from understudy.training.session import TrainSession
from understudy.training.snapshot_opponents import TRAINING, TrainingState

KILLS = 3
# Snapshots with every iteration and versions with every third: most of the time is spent where a
# kill could hurt, and there are files that no version lists.
EVERY = 3
SETTINGS = (f"train.checkpoint_steps={EVERY * ROLLOUT}", f"league.save_freq={ROLLOUT}")
OFTEN = tuple(flag for one in SETTINGS for flag in ("--set", one))
CURRICULUM = "two.toml"


def start(run: Path, *args: object) -> subprocess.Popen[str]:
    line = command("--network", "mlp", "--config", run.parent / CURRICULUM, *OFTEN)
    line += ["--run", str(run), *map(str, args)]
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
    staged(tmp_path / CURRICULUM)
    run, chance, last = tmp_path / "run", random.Random(), 0
    reached = [0]
    for kill in range(KILLS):
        # Enough for matches to end, the second stage to begin and snapshots to be met.
        goal = last + (12 if kill == 0 else 4)
        with start(run, "--minutes", 9, *(["--resume"] if kill else [])) as child:
            deadline = time.monotonic() + 120.0
            while newest(run) < goal:
                assert child.poll() is None, child.communicate()[1]
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(chance.uniform(0.0, 0.3))
            child.kill()
            child.communicate()
        assert child.returncode == -signal.SIGKILL
        after = head(run)
        assert after >= goal, "a version that was there is gone"
        counters = RunFolder.load(run, SystemClock()).versions.verify(after).counters
        assert counters["steps"] == ROLLOUT * counters["iterations"] > reached[-1]
        reached.append(counters["steps"])
        check_resumed(run, tmp_path / f"journal-{kill}", after)
        last = after
    orphan = run / "league" / "step-999999999.npz"
    orphan.write_bytes(b"a snapshot that no version lists")
    goal = reached[-1] + 2 * EVERY * ROLLOUT
    with start(run, "--resume", "--steps", goal, "--json") as child:
        out, errors = child.communicate(timeout=120)
    assert child.returncode == 0, errors
    told = json.loads(out)
    assert (told["steps"], told["version"], told["stage"]) == (goal, last + 2, "second")
    check_ancestry(run)
    check_league(run, last + 2)
    check_tables(run, goal)
    check_journal(run, reached)


def check_resumed(run: Path, journal: Path, number: int) -> None:
    """Before its first iteration, whoever goes on has stage, pool, ratings, seats and counters of
    the version, byte for byte."""
    folder = RunFolder.load(run, SystemClock())
    manifest = folder.versions.manifest(number)
    session = TrainSession(
        game="brawl",
        game_options={},
        run=run,
        network=folder.spec.network,
        config=folder.config,
        budget=Budget(minutes=1.0),
        resume=True,
    )
    learning = ArenaLearning(session, folder, Journal(journal, "train", SystemClock()))
    assert (learning.version, learning.counters) == (number, manifest.counters)
    files = {name: folder.versions.read(manifest, name) for name in manifest.files}
    assert learning.opponents.league.encode() == files[league_files.FILE]
    state = TrainingState(learning.opponents.state(), learning.stages.state)
    assert msgspec.json.encode(state) == files[TRAINING]
    for snapshot in league_files.decode(files[league_files.FILE]).pool:
        path = run / "league" / f"step-{snapshot.steps:09d}.npz"
        assert hashlib.sha256(path.read_bytes()).hexdigest() == snapshot.sha256


def check_ancestry(run: Path) -> None:
    """Every version that is kept follows from the one before, three iterations later."""
    folder = RunFolder.load(run, SystemClock())
    assert not list(folder.versions.root.glob(".tmp-*")), "what a kill left is swept"
    numbers = folder.versions.numbers()
    for number in numbers:
        manifest = folder.versions.verify(number)
        assert manifest.parent == (number - 1 or None)
        assert manifest.counters["steps"] == number * EVERY * ROLLOUT
        assert np.isfinite(list(manifest.metrics.values())).all()
    champion = folder.pointers.read("champion")
    assert champion is not None and champion.version == numbers[-1]


def check_league(run: Path, number: int) -> None:
    """Snapshots of every iteration, whoever played it; the files are those that are listed."""
    versions = RunFolder.load(run, SystemClock()).versions
    manifest = versions.manifest(number)
    league = league_files.decode(versions.read(manifest, league_files.FILE))
    steps = [one.steps for one in league.pool]
    assert steps == list(range(ROLLOUT, manifest.counters["steps"] + 1, ROLLOUT))
    files = {path.name for path in (run / "league").iterdir()}
    assert files == {f"step-{one:09d}.npz" for one in steps}, "orphans are swept"
    assert league.iterations == manifest.counters["iterations"]
    records = [*league.records.values(), league.gone]
    assert sum(sum(one.counts) for one in records) == manifest.counters["matches"] > 0
    assert manifest.counters["met.self"] > 0, "the second stage meets snapshots"


def check_tables(run: Path, goal: int) -> None:
    """Nothing is told twice: rows beyond the version that was gone on from are cut off."""
    lines = (run / "league.csv").read_text(encoding="utf-8").splitlines()
    rows = [row for row in csv.DictReader(lines) if row["event"] == "snapshot"]
    assert [int(row["steps"]) for row in rows] == list(range(ROLLOUT, goal + 1, ROLLOUT))
    for path in run.glob("*.csv"):
        lines = path.read_text(encoding="utf-8").splitlines()
        table = csv.DictReader(line for line in lines if not line.startswith("#"))
        steps = [int(row["steps"]) for row in table]
        assert steps == sorted(steps), path.name


def check_journal(run: Path, reached: list[int]) -> None:
    """Each session says where it began: with all that the one before had committed."""
    told = [entry.e for entry in Reader(run / "journal").new()]
    started = [one.version for one in told if isinstance(one, events.LearnerStarted)]
    assert [version * EVERY * ROLLOUT for version in started] == reached
    stages = [one for one in told if isinstance(one, events.StageChanged)]
    assert stages[0].reason == "the start" and stages[-1].after == "second"
    largest = [one.behaviour_kl_max for one in told if isinstance(one, events.BatchTrained)]
    assert all(one is not None and one < 5e-9 for one in largest), "every ratio is 1 within 1e-4"
