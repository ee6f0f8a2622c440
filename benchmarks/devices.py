"""Training on one device and on two, and what the way minibatches are dealt does to learning.

    python benchmarks/devices.py [--iterations 20] [--seeds 3] [--json]

Preset `small` in brawl, in three ways, each with the same seeds: on one device with minibatches
dealt by shuffling all columns (as before `--devices`), on one device dealt by blocks, and on two
virtual devices of this CPU dealt by blocks. Prints the mean return of the matches that ended in the
last half of the iterations, with the spread over seeds, and the largest difference between one
device and two after the first update. Speed is no part of it: two virtual devices share one CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

from machine import describe

WAYS = {"one, shuffled": (1, "shuffled"), "one": (1, "blocks"), "two": (2, "blocks")}


@dataclass(frozen=True)
class Curve:
    """A run: by iteration, but for `first` and `cpu_s`."""

    returns: list[float]
    """mean over the matches that ended; the one before where none did"""
    entropy: list[float]
    explained: list[float]
    first: dict[str, float]
    """Metrics of the first update."""
    cpu_s: float
    """Of an iteration, without the first two."""

    @property
    def late(self) -> float:
        """The mean return over the last half of the iterations."""
        return statistics.fmean(self.returns[len(self.returns) // 2 :])


def child(devices: int, deal: str, seed: int, iterations: int) -> Curve:
    """Train in this process, which has that many devices."""
    from understudy.arena import iteration as iterations_of_arena
    from understudy.arena.arena import Arena
    from understudy.core.config import with_values
    from understudy.games import catalog
    from understudy.learner.maths.segments import improve
    from understudy.learner.trainer import Trainer
    from understudy.policy.presets import network
    from understudy.policy.spec import PolicySpec
    from understudy.training.named_configs import config as named
    from understudy.training.stage_plan import StagePlan

    if deal == "shuffled":

        def shuffled(*given: Any, blockwise: bool, mesh: object) -> Any:
            return improve(*given)

        vars(iterations_of_arena)["improve"] = shuffled
    config = with_values(named("small"), {"learner.seed": seed})
    game, bots = catalog.make("brawl"), catalog.bots("brawl")
    course = StagePlan("brawl", config, tuple(bots))
    arena = Arena(
        Trainer(PolicySpec(game.features, game.actions, network("small")), config.learner),
        config,
        game,
        {name: bots[name] for name in course.bots},
        meets_itself=course.meets_itself,
        rewards=course.rewards,
        kinds=course.kinds,
        seed=seed,
        devices=devices,
    )
    arena.order(course.mix, course.weights(0))
    returns: list[float] = []
    metrics: list[dict[str, float]] = []
    cpu: list[float] = []
    for _ in range(iterations):
        began = time.process_time()
        done = arena.iterate()
        cpu.append(time.process_time() - began)
        metrics.append(done.metrics)
        arena.trainer.adapt(done.metrics["kl"])
        ended = [match.returned for match in done.ended]
        returns.append(statistics.fmean(ended) if ended else (returns or [0.0])[-1])
    return Curve(
        returns,
        [one["entropy"] for one in metrics],
        [one["explained_variance"] for one in metrics],
        metrics[0],
        statistics.fmean(cpu[2:]),
    )


def trained(way: str, seed: int, iterations: int) -> Curve:
    """The same in a process of its own, since JAX counts devices when it starts."""
    devices, deal = WAYS[way]
    flags = f"--xla_force_host_platform_device_count={devices}"
    command = [sys.executable, __file__, "--child", str(devices), deal, str(seed), str(iterations)]
    done = subprocess.run(
        command,
        env=os.environ | {"XLA_FLAGS": flags},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return Curve(**json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        devices, deal, seed, iterations = options.child
        print(json.dumps(asdict(child(int(devices), deal, int(seed), int(iterations)))))
        return
    curves: dict[str, list[Curve]] = {way: [] for way in WAYS}
    for seed in range(1, options.seeds + 1):
        for way, found in curves.items():
            found.append(trained(way, seed, options.iterations))
            print(f"seed {seed}, {way}: {found[-1].late:+.3f}", file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps({way: [asdict(one) for one in found] for way, found in curves.items()}))
        return
    print(describe("jax", "numpy"))
    print(f"{options.iterations} iterations, {options.seeds} seeds: mean return of the last half")
    for way, found in curves.items():
        late = [one.late for one in found]
        spread = statistics.stdev(late) if len(late) > 1 else 0.0
        by_seed = "  ".join(f"{one:+.3f}" for one in late)
        cpu = statistics.fmean(one.cpu_s for one in found)
        print(
            f"{way:15} {statistics.fmean(late):+.3f} (seeds spread {spread:.3f}: {by_seed})   "
            f"entropy {statistics.fmean(one.entropy[-1] for one in found):.2f}   "
            f"{cpu:.2f} s of processor time an iteration"
        )
    apart = max(
        abs(one.first[name] - two.first[name])
        for one, two in zip(curves["one"], curves["two"], strict=True)
        for name in one.first
    )
    print(f"largest difference of a metric after the first update, one and two: {apart:.1e}")


if __name__ == "__main__":
    main()
