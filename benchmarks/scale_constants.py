"""The constants of `scale_model.py`: processor seconds and bytes of a match, a decision, a step.

    python benchmarks/scale_constants.py [--only ring,served,arena,environment] [--json]

Processor time, not time on the clock, so that other programs on the machine matter little. What
starting and compiling costs is left out: a command is run with few and with many matches,
and the difference counts; what is compiled is measured after its first batches.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import machine
import psutil

PLAYED = (40, 440)
"""Matches of swarm: those that a start is measured by, and those of the longer command."""
STEPS, WARM_UPDATES = 60_000, 3
"""Of CartPole-v1; the learner compiles in its first updates."""
WARM_MATCHES = 160
"""The learner compiles on these."""
SERVED_RATE, SERVED_S = 2000, 4


def ring() -> dict[str, float]:
    """A bot in swarm and its learner, each alone: `understudy play swarm --learner off`, then the
    ring's learner over what was recorded."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / str(matches) for matches in PLAYED]
        play = ["play", "swarm", "--learner", "off", "--mode", "learn", "--seed", "1", "--json"]
        cpu = [
            _cpu_s([*play, "--matches", str(matches), "--run", str(run)])
            for matches, run in zip(PLAYED, runs, strict=True)
        ]
        sizes = [path.stat().st_size for path in (runs[1] / "buffer").glob("*.npz")]
        learned = _learner(runs[1])
    return {
        "play_cpu_s": (cpu[1] - cpu[0]) / (PLAYED[1] - PLAYED[0]),
        "episode_bytes": sum(sizes) / len(sizes),
        **learned,
    }


def _learner(run: Path) -> dict[str, float]:
    from understudy.core.clock import SystemClock
    from understudy.experience.episode import decode
    from understudy.learner.ring import RingLearner
    from understudy.learner.trainer import Trainer
    from understudy.registry.run_folder import RunFolder
    from understudy.telemetry.journal import Journal

    clock = SystemClock()
    folder = RunFolder.load(run, clock)
    journal = Journal(folder.journal, "learner", clock)
    learner = RingLearner(folder, Trainer(folder.spec, folder.config.learner), journal)
    lengths = [
        len(decode(path.read_bytes(), folder.spec, what=path.name).rewards)
        for path in sorted((run / "buffer").glob("*.npz"))[:100]
    ]
    began, at, version = 0.0, 0, 0
    while learner.work(hurry=True):
        if not at and learner.total_matches >= WARM_MATCHES:
            began, at, version = time.process_time(), learner.total_matches, learner.version
    learner.publish_rest()
    cpu = time.process_time() - began
    manifest = folder.versions.manifest(learner.version)
    sizes = [len(folder.versions.read(manifest, name)) for name in manifest.files]
    return {
        "learn_cpu_s": cpu / (learner.total_matches - at),
        "versions": float(learner.version - version),
        "version_bytes": float(sum(sizes)),
        "decisions_a_match": sum(lengths) / len(lengths),
    }


def served() -> dict[str, float]:
    """`serve_load.py`: processor time of a server for one decision, without a learner."""
    command = [
        sys.executable, str(Path(__file__).with_name("serve_load.py")),
        "--rate", str(SERVED_RATE), "--seconds", str(SERVED_S), "--rounds", "1", "--json",
    ]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    servers = json.loads(done.stdout)["servers"]
    return {
        "schema_cpu_s": servers["generic"]["server_us"] / 1e6,
        "territory_cpu_s": servers["queen"]["server_us"] / 1e6,
    }


def arena() -> dict[str, float]:
    """An iteration of preset `small` in brawl, compiled before."""
    import league_overhead

    from understudy.training.named_configs import config as named

    config = named("curriculum")
    made, course = league_overhead._arena(config)
    made.order(course.mix, course.weights(0))
    for _ in range(league_overhead.WARM):
        made.iterate()
    began = time.process_time()
    for _ in range(league_overhead.ITERATIONS):
        made.iterate()
    spent = time.process_time() - began
    return {"step_cpu_s": spent / league_overhead.ITERATIONS / made.steps_an_iteration}


def environment() -> dict[str, float]:
    """`understudy train gymnasium:CartPole-v1` in this process: a step, and the learner's part."""
    import jax

    from understudy.learner.maths import segments
    from understudy.policy.mlp import Mlp
    from understudy.supervise.budget import Budget
    from understudy.training.environments.session import EnvironmentSession, environment_config
    from understudy.training.train import train_environment

    updates: list[tuple[float, float, int, int]] = []
    """Processor time before and after an update, its steps and its bytes."""
    improve = segments.improve

    def timed(*given: Any) -> Any:
        began = time.process_time()
        made = jax.block_until_ready(improve(*given))  # type: ignore[no-untyped-call]
        arrays = jax.tree.leaves(given[-1])
        size = sum(array.nbytes for array in arrays)
        updates.append((began, time.process_time(), given[-1].rewards.size, size))
        return made

    segments.improve = timed  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        train_environment(
            EnvironmentSession(
                environment="gymnasium:CartPole-v1",
                run=Path(folder) / "run",
                budget=Budget(steps=STEPS),
                evaluate=0,
                network=Mlp(),
                config=environment_config(),
            )
        )
    (_, since, _, _), *rest = updates[WARM_UPDATES:]
    steps = sum(one[2] for one in rest)
    return {
        "step_cpu_s": (rest[-1][1] - since) / steps,
        "learn_cpu_s": sum(after - before for before, after, _, _ in rest) / steps,
        "step_bytes": sum(one[3] for one in rest) / steps,
    }


PARTS: dict[str, Callable[[], dict[str, float]]] = {
    "ring": ring,
    "served": served,
    "arena": arena,
    "environment": environment,
}


def _cpu_s(arguments: Sequence[str]) -> float:
    """Processor seconds of one command and of the processes that it started."""
    before = psutil.Process().cpu_times()
    command = [sys.executable, "-m", "understudy", *arguments]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = psutil.Process().cpu_times()
    user, system = after.children_user, after.children_system
    return float(user - before.children_user + system - before.children_system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {}
    for name in options.only.split(","):
        found[name] = PARTS[name]()
        print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps(found))
        return
    print(machine.describe("numpy", "jax"))
    for name, numbers in found.items():
        for key, value in numbers.items():
            print(f"{name + '.' + key:32}{value:14,.6g}")


if __name__ == "__main__":
    main()
