"""What workers bring: N against 1, in a game of 1,600 frames a second and in a fast one.

    python benchmarks/ray_workers.py [--workers 16] [--games 64] [--steps 60000] [--ray local]
    python benchmarks/ray_workers.py --workers 4 --sleep          # on two cores
    python benchmarks/ray_workers.py --sleep --frames 200 --steps 24000

Every row is a whole session of `understudy train` with as many environments: the learner in this
process, the policy in the workers. The first three iterations, which compile, are not counted.
Synchronous and asynchronous sessions are told apart, and the reward at the end says whether they
learned the same. With `--spread 0.7` matches are of uneven speed.

The goals are for 16 workers on 16 cores: 8 times one worker synchronously and 11 times
asynchronously in the slow game, twice in the fast one. Elsewhere the goals are not judged. The
slow game keeps its core busy; with `--sleep` it waits, as for a game that plays elsewhere: then
more workers than cores mean something. With `--frames 200` two cores have as much time for each of
its frames as sixteen have at 1,600.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import machine

from understudy.core.config import with_values
from understudy.policy.mlp import Mlp
from understudy.supervise.budget import Budget
from understudy.training.environments.session import (
    EnvironmentProgress,
    EnvironmentSession,
    environment_config,
)
from understudy.training.train import train_environment

SLOW, FAST = "gymnasium:paced_game:Paced-v0", "gymnasium:CartPole-v1"
WARM_UP = 3
FRAMES_S = 1600.0
GOALS = {(SLOW, False): 8.0, (SLOW, True): 11.0, (FAST, False): 2.0}
"""By environment and whether it is asynchronous: times one worker, on 16 cores with 16."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--games", type=int, default=64)
    parser.add_argument("--segment", type=int, default=32)
    parser.add_argument("--steps", type=int, default=60_000, help="of each session, slow game")
    parser.add_argument("--ray", default="", choices=["", "local", "auto"])
    parser.add_argument("--frames", type=float, default=FRAMES_S, help="a second, slow game")
    parser.add_argument("--sleep", action="store_true", help="the slow game waits, not computes")
    parser.add_argument("--spread", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    options = {"frames_s": asked.frames, "busy": not asked.sleep, "spread": asked.spread}
    rows = []
    for environment, steps in ((SLOW, asked.steps), (FAST, 4 * asked.steps)):
        given = options if environment == SLOW else {}
        for workers, ahead in ((1, False), (asked.workers, False), (asked.workers, True)):
            row = measure(environment, given, workers, ahead, steps, asked)
            rows.append(row)
            print(json.dumps(row) if asked.json else words(row, rows), flush=True)
    cores = os.cpu_count() or 1
    judged = asked.workers >= 16 and cores >= 16 and asked.frames == FRAMES_S
    if not judged:
        print(
            f"The goals are for 16 workers on 16 cores at {FRAMES_S:,.0f} frames/s; here are "
            f"{asked.workers} on {cores} at {asked.frames:,.0f}: not judged."
        )
    sys.exit(1 if judged and not all(reached(row, rows) for row in rows) else 0)


def measure(
    environment: str,
    options: dict[str, object],
    workers: int,
    ahead: bool,
    steps: int,
    asked: argparse.Namespace,
) -> dict[str, object]:
    """One session."""
    config = with_values(
        environment_config(),
        {
            "train.games": asked.games,
            "train.segment": asked.segment,
            "train.asynchronous": ahead,
            "learner.seed": asked.seed,
            "monitor.csv": False,
        },
    )
    seen: list[tuple[float, int, float]] = []

    def show(progress: EnvironmentProgress) -> None:
        seen.append((time.monotonic(), progress.steps, progress.reward))

    with tempfile.TemporaryDirectory() as folder:
        summary = train_environment(
            EnvironmentSession(
                environment=environment,
                options=options,
                run=Path(folder) / "run",
                budget=Budget(steps=steps),
                network=Mlp(),
                config=config,
                workers=workers,
                ray=asked.ray,
            ),
            show=show,
        )
    (began, first, _), (ended, last, reward) = seen[WARM_UP], seen[-1]
    return {
        "environment": environment,
        "workers": workers,
        "asynchronous": ahead,
        "ray": asked.ray,
        "steps_s": (last - first) / (ended - began),
        "reward": reward,
        "busy": summary.workers.busy if summary.workers else 0.0,
        "machine": machine.describe("numpy", "jax"),
    }


def times_one(row: dict[str, object], rows: list[dict[str, object]]) -> float:
    """How many times as fast as one worker."""
    one = next(other for other in rows if other["environment"] == row["environment"])
    return float(str(row["steps_s"])) / float(str(one["steps_s"]))


def reached(row: dict[str, object], rows: list[dict[str, object]]) -> bool:
    goal = GOALS.get((str(row["environment"]), bool(row["asynchronous"])), 0.0)
    return row["workers"] == 1 or times_one(row, rows) >= goal


def words(row: dict[str, object], rows: list[dict[str, object]]) -> str:
    head = f"{row['machine']}\n" if len(rows) == 1 else ""
    kind = "asynchronous" if row["asynchronous"] else "synchronous"
    return (
        f"{head}{row['environment']}: {row['workers']:>2} workers, {kind:<12} "
        f"{row['steps_s']:8,.0f} steps/s, {times_one(row, rows):5.2f}x, "
        f"busy {row['busy']:.0%}, reward at the end {row['reward']:.1f}"
    )


if __name__ == "__main__":
    main()
