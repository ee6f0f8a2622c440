"""The relay: how long a match takes to become a version on another machine, and what it costs.

    python benchmarks/relay_speed.py [--samples 30] [--relays 10] [--rate 10] [--seconds 30]
                                     [--goals] [--json]

Machines are run folders, each with the processes that it would have; the store is moto's S3 on
loopback, in a process of its own. Mode `learn`, a look at the store every second (the default).

1. *Latency*: a bot on machine A finishes a match; until the policy that decides on machine B has
   learned from it. Relays on A, on B and beside the learner; the real learner.
2. *Load*: every relay has so many new matches a second, of the size that swarm has, and the
   learner's side takes them in. No learner learns here: matches are archived as if it had, so that
   the CPU is the relays' alone. "Held": in the second half at least 90% as many matches arrive as
   are finished, and in the end all of them.

CPU times tell what a busy machine does not: ours, per match, and the store's beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import machine
import numpy as np
import psutil

from understudy import Understudy
from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.core.config import Config
from understudy.core.files import Disk
from understudy.core.spaces import Discrete
from understudy.experience.episode import Episode, Meta, Outcome
from understudy.experience.spool import Spool
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder

FEATURES = tuple(f"f{index}" for index in range(15))
ACTIONS = ("a", "b", "c", "d", "e")
DECISIONS = 150
WARM_UP = 3
GOAL_S = 5.0
PATIENCE_S = 120.0
SPEC = PolicySpec(FEATURES, Discrete(ACTIONS), Mlp())


@contextlib.contextmanager
def store() -> Iterator[subprocess.Popen[bytes]]:
    """moto's S3 with a bucket, and the environment of everything that is started after it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    here = f"http://127.0.0.1:{port}"
    os.environ.update(
        AWS_ENDPOINT_URL=here,
        AWS_ACCESS_KEY_ID="benchmark",
        AWS_SECRET_ACCESS_KEY="benchmark",
        AWS_REGION="us-east-1",
    )
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with started(command) as process:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                request = urllib.request.Request(f"{here}/bucket", method="PUT")
                urllib.request.urlopen(request, timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "moto did not start"
                time.sleep(0.1)
        yield process


@contextlib.contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def understudy(*arguments: object) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    return started([sys.executable, "-m", "understudy", *map(str, arguments)])


# --- latency -------------------------------------------------------------------------------------


def latency(root: Path, samples: int) -> dict[str, float]:
    rng, url, took = np.random.default_rng(0), "s3://bucket/latency", []
    with (
        bot(root / "a") as first,
        bot(root / "b") as second,
        understudy("relay", root / "a", url),
        understudy("relay", root / "b", url),
        understudy("relay", root / "learner", url, "--side", "learner"),
    ):
        wait_for((root / "learner" / "run.json").exists)
        with understudy("learner", "--run", root / "learner"):
            for index in range(samples + WARM_UP):
                known = ingested(second)
                play(first, rng)
                finished = time.perf_counter()
                wait_for(lambda known=known: ingested(second) > known)
                if index >= WARM_UP:  # the first ones wait for the import and the compiler
                    took.append(time.perf_counter() - finished)
                time.sleep(random.random())  # at any moment between two looks
    return {
        "median_s": float(np.median(took)),
        "p90_s": float(np.percentile(took, 90)),
        "longest_s": float(np.max(took)),
    }


@contextlib.contextmanager
def bot(root: Path) -> Iterator[Understudy]:
    with Understudy.open(
        root,
        features=FEATURES,
        actions=ACTIONS,
        network=SPEC.network,
        mode="learn",
        learner="off",
        settings={"report.status_every_s": 0},
    ) as mind:
        yield mind


def play(mind: Understudy, rng: np.random.Generator) -> None:
    with mind.match() as match:
        for _ in range(DECISIONS):
            match.decide(rng.random(len(FEATURES), dtype=np.float32))
            match.reward(float(rng.standard_normal()))
        match.finish("tie")


def ingested(mind: Understudy) -> int:
    """Matches that the version which decides now has learned from."""
    version = mind.version
    return 0 if not version else mind.folder.versions.manifest(version).counters["ingested"]


def wait_for(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.01)


# --- load ----------------------------------------------------------------------------------------


class Unsynced(Disk):
    """The matches that bots finish here are not what is measured: they are written, not synced."""

    def sync(self, path: Path) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass


def load(
    root: Path, moto: psutil.Process, *, relays: int, rate: float, seconds: float
) -> dict[str, float]:
    clock = SystemClock()
    machines = [
        RunFolder.open(root / f"machine{number}", spec=SPEC, config=Config(), clock=clock)
        for number in range(relays)
    ]
    url = "s3://bucket/load"
    with contextlib.ExitStack() as stack:
        stack.enter_context(files.using(Unsynced()))
        players = [stack.enter_context(understudy("relay", one.root, url)) for one in machines]
        learner = stack.enter_context(
            understudy("relay", root / "learner", url, "--side", "learner")
        )
        wait_for((root / "learner" / "relay").exists)
        spools = [Spool(one.root, SPEC, clock) for one in machines]
        there = Spool(root / "learner", SPEC, clock)
        wait_for(lambda: all((one.root / "relay").exists() for one in machines))
        before = {one.pid: cpu(one.pid) for one in (*players, learner, moto)}
        put, arrived, at_half, began = 0, 0, 0, time.monotonic()
        while (now := time.monotonic() - began) < seconds:
            while put < now * rate * relays:
                spools[put % relays].put(match(put))
                put += 1
            arrived += archived(there)
            at_half = at_half if now > seconds / 2 else arrived
            time.sleep(0.05)
        second_half = (arrived - at_half) / (put / 2)
        on_their_way = put - arrived
        while arrived < put and time.monotonic() - began < seconds + PATIENCE_S:
            arrived += archived(there)
            time.sleep(0.05)
        drained_s = time.monotonic() - began - seconds
        spent = {one.pid: cpu(one.pid) - before[one.pid] for one in (*players, learner, moto)}
    return {
        "matches": put,
        "arrived": arrived,
        "rate": put / seconds,
        "second_half": second_half,
        "on_their_way": on_their_way,
        "drained_s": drained_s,
        "players_cpu_ms": 1e3 * sum(spent[one.pid] for one in players) / put,
        "learner_cpu_ms": 1e3 * spent[learner.pid] / put,
        "store_cpu_ms": 1e3 * spent[moto.pid] / put,
        "bytes": float(len(spools[0].archived.joinpath(next(iter(sorted(
            path.name for path in spools[0].archived.iterdir()
        )))).read_bytes())),
    }  # fmt: skip


def match(number: int) -> Episode:
    shape = (DECISIONS, len(FEATURES))
    rng = np.random.default_rng(number)
    return Episode(
        meta=Meta(id=f"match-{number}", outcome=Outcome.TIE, finished_at=time.time()),
        observations=rng.random(shape, dtype=np.float32),
        actions=np.zeros((DECISIONS, 1), np.int32),
        log_probs=np.full(DECISIONS, -1.6, np.float32),
        values=np.zeros(DECISIONS, np.float32),
        rewards=rng.random(DECISIONS, dtype=np.float32),
        sampled=np.ones(DECISIONS, np.bool_),
        versions=np.zeros(DECISIONS, np.int64),
    )


def archived(spool: Spool) -> int:
    """What a learner does once a version names them."""
    names = spool.pending()
    for name in names:
        spool.archive(name)
    return len(names)


def cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--relays", type=int, default=10)
    parser.add_argument("--rate", type=float, default=10.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--goals", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, store() as moto:
        delays = latency(Path(folder), options.samples)
        held = load(
            Path(folder) / "load",
            psutil.Process(moto.pid),
            relays=options.relays,
            rate=options.rate,
            seconds=options.seconds,
        )
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    described = machine.describe("numpy", "jax", "obstore", "moto")
    if options.json:
        print(json.dumps({"machine": described, "load": busy, "latency": delays, "relays": held}))
    else:
        print(described)
        print(
            f"(load average {busy:.1f} on {os.cpu_count()} cores)\n"
            f"finish on A to a version that decides on B: median {delays['median_s']:.2f} s, p90 "
            f"{delays['p90_s']:.2f} s, longest {delays['longest_s']:.2f} s over {options.samples} "
            f"matches; goal: median under {GOAL_S:g} s\n"
            f"{options.relays} relays with {options.rate:g} matches/s each for "
            f"{options.seconds:g} s: {held['arrived']:,.0f} of {held['matches']:,.0f} arrived, "
            f"in the second half {held['second_half']:.0%} as many as were finished; "
            f"{held['on_their_way']:.0f} on their way at the end, the last after "
            f"{held['drained_s']:.1f} s\n"
            f"CPU per match of {held['bytes'] / 1e3:.0f} kB: {held['players_cpu_ms']:.2f} ms "
            f"beside the bots, {held['learner_cpu_ms']:.2f} ms beside the learner; the store "
            f"{held['store_cpu_ms']:.2f} ms"
        )
    is_held = held["second_half"] >= 0.9 and held["arrived"] == held["matches"]
    if options.goals and not (delays["median_s"] < GOAL_S and is_held):
        sys.exit("a goal was missed")


if __name__ == "__main__":
    main()
