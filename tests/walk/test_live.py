"""The live walk: a real server, a real client, a real learner that is killed on the way.

A queen who spawns where protectors stand is punished, and rewarded where only workers are: what
every version makes of the same observation is read from the versions themselves.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from understudy.adapters.territory.messages import ObservationData
from understudy.adapters.territory.translator import TerritoryTranslator
from understudy.core.arrays import NDArray
from understudy.core.clock import SystemClock
from understudy.core.ops import NUMPY
from understudy.games.territory import tables
from understudy.policy import distributions
from understudy.policy.policy import Policy, untrained
from understudy.policy.weights import normalise
from understudy.registry.run_folder import RunFolder
from understudy.session.protocol import decode
from understudy.session.translation import TranslatedObservation
from understudy.telemetry import events
from understudy.telemetry.journal import Reader

pytest.importorskip("websockets")
pytest.importorskip("jax")

GUARDED, OPEN = 40, 200
ENOUGH = 20
"""Versions after the learner was killed."""
PATIENCE_S = 90.0
SETTINGS = {
    "continuous.training_interval_s": 0.02,
    "continuous.samples_per_insert": 40,
    "learner.publish_interval_s": 0.05,
    "learner.niceness": 0,
    "live.segment_s": 0.3,
    "live.messages_per_s": 1e6,
}


def observation(territory: int, tick: int, spawned: int | None) -> dict[str, Any]:
    """Workers in two chunks, protectors in one; the player's energy tells what a spawn did."""
    workers = [{"x": 1, "z": 1, "chunkId": chunk} for chunk in (GUARDED, OPEN) for _ in range(4)]
    end = {GUARDED: 75.0, OPEN: 25.0}.get(-1 if spawned is None else spawned, 50.0)
    data = {
        "timestamp": 5000.0 * tick,
        "territoryId": f"t{territory}",
        "hiveChunk": 120,
        "miningWorkers": workers,
        "workersPresent": workers,
        "protectors": [{"x": 1, "z": 1, "chunkId": GUARDED}] * 3,
        "parasitesStart": [],
        "parasitesEnd": [],
        "queenEnergy": {"current": 60.0, "max": 100.0},
        "playerEnergy": {"start": 50.0, "end": end},
        "playerMinerals": {"start": 10.0, "end": 10.0},
    }
    return {"type": "observation_data", "data": data}


@contextlib.contextmanager
def served(run: Path) -> Iterator[str]:
    """`understudy serve territory` as a person starts it; its address."""
    from server.standing import process

    flags = [flag for key, value in SETTINGS.items() for flag in ("--set", f"{key}={value}")]
    line = ["territory", "--run", str(run), "--port", "0", "--gate", "open", "--quiet"]
    with process(*line, "--seed", "3", *flags) as (child, url):
        try:
            yield url
        finally:
            child.terminate()
            child.communicate(timeout=60)


def chances(policy: Policy) -> dict[int, float]:
    """How likely a spawn in either chunk is, of whatever kind."""
    message = decode(json.dumps(observation(0, 0, None)), max_bytes=10**6)
    assert isinstance(message, ObservationData)
    (reading,) = TerritoryTranslator().read([message])
    assert isinstance(reading, TranslatedObservation)
    obs: NDArray = reading.sight.features[None]
    logits, _, _ = policy.spec.network.step(
        NUMPY, policy.weights.params, normalise(NUMPY, policy.weights, obs), policy.begin()
    )
    legal = None if reading.sight.legal is None else reading.sight.legal[None]
    likely = np.exp(distributions.log_probs(NUMPY, policy.spec.actions, logits, legal))[0]
    return {
        chunk: float(sum(likely[tables.action_of(chunk, kind)] for kind in range(2)))
        for chunk in (GUARDED, OPEN)
    }


def learners(run: Path) -> list[int]:
    return [
        entry.e.pid
        for entry in Reader(run / "journal").new()
        if isinstance(entry.e, events.LearnerStarted)
    ]


def test_a_punished_chunk_becomes_less_likely_though_the_learner_is_killed(tmp_path: Path) -> None:
    from websockets.sync.client import connect

    run = tmp_path / "queen"
    spawned: dict[int, int | None] = dict.fromkeys(range(8))
    answers, version, killed_at, tick = 0, 0, 0, 0
    with served(run) as url, connect(url) as socket:
        deadline = time.monotonic() + PATIENCE_S
        while version < killed_at + ENOUGH or not killed_at:
            tick += 1
            assert time.monotonic() < deadline, f"version {version} after {tick} ticks"
            for territory, chunk in spawned.items():
                socket.send(json.dumps(observation(territory, tick, chunk)))
            for territory in spawned:
                said = json.loads(socket.recv(timeout=10))
                # No answer fails, and none is a makeshift, whatever becomes of the learner.
                assert said["type"] == "spawn_decision" and not said["degraded"], said
                spawned[territory] = said["spawnChunk"]
                version = max(version, said["version"])
                answers += 1
            time.sleep(0.01)  # a game has a clock; without one it would leave the learner no core
            if version and not killed_at:
                killed_at = version
                psutil.Process(learners(run)[0]).kill()
    assert len(learners(run)) == 2
    folder = RunFolder.load(run, SystemClock())
    before, after = chances(untrained(folder.spec, 3)), chances(folder.versions.policy(version))
    assert after[GUARDED] < 0.5 * before[GUARDED]
    assert after[OPEN] > 1.3 * before[OPEN]
    assert answers == 8 * tick
