"""SIGKILL of Ray actors and of a node at random points of training: training goes on, nothing that
was played is trained twice, and what a dead worker was playing is masked."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from understudy.core.config import with_values
from understudy.policy.mlp import Mlp
from understudy.registry.checkpoints import MATCHES, STEPS
from understudy.registry.versions import Versions
from understudy.supervise.budget import Budget
from understudy.telemetry import events
from understudy.telemetry.journal import Reader
from understudy.training.environments import learning
from understudy.training.environments.session import (
    EnvironmentProgress,
    EnvironmentSession,
    environment_config,
)
from understudy.training.train import train_environment
from understudy.workers.rollout import Played
from workers.numbered import match_length, match_reward
from workers.two_nodes import GOES_ON_S, TwoNodes

pytestmark = [
    pytest.mark.xdist_group("ray"),  # one cluster, where groups are kept together
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),  # as in test_ray
]
START_S, STUCK_S = 300.0, 60.0
"""How long it may take to begin, and to go on, before a test is given up."""
NODE_SHARE = 0.2
"""How many of the kills are of a node."""


@dataclass
class Trained:
    """What a session was told and what it trained from."""

    segments: list[Played] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    """When each iteration was over."""
    steps: int = 0
    matches: int = 0


class Killer(threading.Thread):
    """Kills actors and the node of a cluster, each when training goes on after the one before."""

    def __init__(self, cluster: TwoNodes, trained: Trained, kills: int, seed: int) -> None:
        super().__init__(name="killer", daemon=True)
        self._cluster = cluster
        self._trained = trained
        self._left = kills
        self._chance = random.Random(seed)
        self.killed: Counter[str] = Counter()
        self.first = 0
        """The iteration after which the kills begin: those before compile."""
        self.done = False
        self.stuck = False
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            self._wait_for_iterations(4, patience_s=START_S)
            self.first = len(self._trained.times)
            while self._left and not self._ended.wait(self._chance.uniform(0.0, 0.8)):
                self._kill()
        finally:
            self.done = True

    def end(self) -> None:
        """Kill nothing more, whatever is left; returns when it has ended."""
        self._ended.set()
        self.join()

    def _kill(self) -> None:
        if self._chance.random() < NODE_SHARE:
            self._cluster.kill_node()
            self._count("node")
            time.sleep(self._chance.uniform(0.0, 0.8))
            self._cluster.add_node()
            return
        actors = self._cluster.actors()
        with contextlib.suppress(psutil.NoSuchProcess):
            if actors:
                self._chance.choice(actors).kill()
                self._count("actor")

    def _count(self, kind: str) -> None:
        self.killed[kind] += 1
        self._left -= 1
        self._wait_for_iterations(2, patience_s=STUCK_S)

    def _wait_for_iterations(self, count: int, *, patience_s: float) -> None:
        """Until so many more are over: the last of them began after the kill."""
        wanted, began = len(self._trained.times) + count, time.monotonic()
        while len(self._trained.times) < wanted and not self._ended.wait(0.01):
            if time.monotonic() - began > patience_s:
                self.stuck = True
                self._ended.set()
                os.kill(os.getpid(), signal.SIGTERM)


def train_through_kills(
    cluster: TwoNodes, folder: Path, *, kills: int, seed: int, asynchronous: bool
) -> tuple[Trained, Counter[str]]:
    """A session with three workers that ends in good order after so many kills."""
    trained = Trained()
    killer = Killer(cluster, trained, kills, seed)
    (folder / "made").mkdir(parents=True)
    config = with_values(
        environment_config(),
        {
            "train.games": 6,
            "train.segment": 16,
            "train.checkpoint_steps": 1000,
            "train.asynchronous": asynchronous,
            "learner.epochs": 1,
            "learner.seed": seed,
        },
    )
    original = learning._segments_of

    def note(played: Played) -> Any:
        trained.segments.append(played)
        return original(played)

    def show(progress: EnvironmentProgress) -> None:
        trained.times.append(time.monotonic())
        trained.steps, trained.matches = progress.steps, progress.matches
        if killer.done:
            signal.raise_signal(signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setattr(learning, "_segments_of", note)
        killer.start()
        stack.callback(killer.end)  # a session that fails leaves none behind
        summary = train_environment(
            EnvironmentSession(
                environment="pettingzoo:workers.numbered",
                options={"folder": str(folder / "made")},
                run=folder / "run",
                budget=Budget(steps=10_000_000),
                network=Mlp(widths=(8,)),
                config=config,
                workers=3,
                ray="auto",
            ),
            show=show,
        )
    assert not killer.stuck, f"no iteration within {STUCK_S:.0f} s, or none at the start"
    assert summary.code == 128 + signal.SIGTERM
    gaps = np.diff(trained.times[killer.first - 1 :])
    assert gaps.max() < GOES_ON_S, f"training stood still for {gaps.max():.1f} s"
    return trained, killer.killed


def check_trained(trained: Trained) -> None:
    """That each environment was trained from as it was played: all of its decisions in order, from
    the first to the last before its worker died, and the matches that ended among them."""
    decisions: dict[int, list[int]] = defaultdict(list)
    rewards: list[float] = []
    for played in trained.segments:
        rows = played.arrays
        for column in range(rows["valid"].shape[1]):
            valid = rows["valid"][:, column] > 0
            assert valid.all() or not valid.any(), "a whole column, or nothing of it"
            for number, decision in rows["obs"][valid, column].astype(int).tolist():
                decisions[number].append(decision)
        assert not rows["rewards"][rows["valid"] == 0].any(), "nothing is invented"
        rewards += [match.finished.reward for match in played.finished]
    for number, seen in decisions.items():
        assert seen == list(range(len(seen))), f"environment {number}: lost, twice or out of order"
    expected = [
        match_reward(number, match)
        for number, seen in decisions.items()
        for match in range(len(seen) // match_length(number))
    ]
    assert sorted(rewards) == sorted(expected), "a match was lost or counted twice"
    assert trained.matches == len(rewards)
    assert trained.steps == sum(len(seen) for seen in decisions.values())


def check_run(run: Path, trained: Trained) -> None:
    """That the journal and the last version say the same."""
    told = [entry.e for entry in Reader(run / "journal").new()]
    batches = [event for event in told if isinstance(event, events.BatchTrained)]
    first = int(trained.segments[0].arrays["valid"].sum())  # it fits the normaliser alone
    assert first + sum(event.steps for event in batches) == trained.steps
    matches = [event for event in told if isinstance(event, events.MatchesTrained)]
    assert sum(event.matches for event in matches) == trained.matches
    versions = Versions(run / "versions")
    counters = versions.manifest(versions.head() or 0).counters
    assert (counters[STEPS], counters[MATCHES]) == (trained.steps, trained.matches)


def check_nothing_left(cluster: TwoNodes, made: Path) -> None:
    """That no process of a worker is there any more, of those that died neither."""
    pids = {int(file.read_text(encoding="utf-8")) for file in made.iterdir()} - {os.getpid()}
    deadline = time.monotonic() + 10.0
    while left := [pid for pid in pids if psutil.pid_exists(pid)] + cluster.actors():
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.1)
    assert len(pids) > 3, "workers were started again"


def check_kills(
    cluster: TwoNodes, folder: Path, *, kills: int, seed: int, asynchronous: bool
) -> None:
    trained, killed = train_through_kills(
        cluster, folder, kills=kills, seed=seed, asynchronous=asynchronous
    )
    assert killed.total() == kills and killed.keys() == {"actor", "node"}
    lags = {int(lag) for one in trained.segments if one.lag is not None for lag in one.lag}
    assert lags == ({0, 1} if asynchronous else set())
    check_trained(trained)
    check_run(folder / "run", trained)
    check_nothing_left(cluster, folder / "made")


@pytest.mark.parametrize("asynchronous", [False, True], ids=["synchronous", "asynchronous"])
def test_twenty_kills(cluster: TwoNodes, tmp_path: Path, asynchronous: bool) -> None:
    check_kills(cluster, tmp_path, kills=10, seed=1, asynchronous=asynchronous)


@pytest.mark.soak
@pytest.mark.parametrize("asynchronous", [False, True], ids=["synchronous", "asynchronous"])
@pytest.mark.parametrize("seed", range(2, 6))
def test_two_hundred_kills(
    cluster: TwoNodes, tmp_path: Path, seed: int, asynchronous: bool
) -> None:
    check_kills(cluster, tmp_path, kills=25, seed=seed, asynchronous=asynchronous)
