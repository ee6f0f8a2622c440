"""RLlib's PPO and ours on CartPole-v1, on two cores, with two workers each: steps a second, and
the time until the last 100 matches have a mean reward of 475.

    python benchmarks/rllib_peer.py [--rounds 3] [--seconds 180]

RLlib (Ray 2.60, its own `.venv-bench-rllib`: it pins Gymnasium 1.2.2) has two env runners and the
settings of its tuned example for CartPole: a learning rate of 3e-4, 6 epochs, a weight of 0.01 for
the value, a shared linear layer of 32, else its defaults; once with one environment an env runner,
as there, and once with eight. Every process has one maths thread: on two cores more wait for each
other. Ours has the settings of `understudy
train`, without workers (`ours`) and with `--workers 2` (`ours, 2 workers`).

They take turns, so that a busy machine is the same for all. RLlib's time counts from its first
step, without the start of Ray and of its env runners; ours has all of it in, the start of the
workers and compiling. Prints a line for each session and then the medians. Exits with 1 where one
of ours is behind RLlib in either figure.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

GOAL, MATCHES = 475.0, 100
ALONE, SHARED = "ours", "ours, 2 workers"
PEERS = {"rllib": 1, "rllib, 8 environments a runner": 8}
"""How many environments each env runner steps at a time: its default, and more."""


class Clock:
    """Steps and mean rewards over time, until the goal or the limit."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._began = time.monotonic()
        self._steps = 0
        self.solved_s: float | None = None
        self.ended_s = 0.0

    def note(self, steps: int, reward: float, matches: int) -> bool:
        """Whether the session is over."""
        self.ended_s, self._steps = time.monotonic() - self._began, steps
        if self.solved_s is None and matches >= MATCHES and reward >= GOAL:
            self.solved_s = self.ended_s
        return self.solved_s is not None or self.ended_s > self._limit_s

    def figures(self) -> dict[str, Any]:
        return {
            "steps": self._steps,
            "steps_s": round(self._steps / max(self.ended_s, 1e-9), 1),
            "solved_s": None if self.solved_s is None else round(self.solved_s, 1),
        }


def peer(seed: int, limit_s: float, *, environments: int) -> dict[str, Any]:
    """A session of RLlib; runs under its own interpreter."""
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig  # type: ignore[import-not-found, unused-ignore]
    from ray.rllib.core.rl_module.default_model_config import (  # type: ignore[import-not-found, unused-ignore]
        DefaultModelConfig,
    )

    ray.init(address="local", num_cpus=3, include_dashboard=False, log_to_driver=False)
    config = (
        PPOConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=2, num_envs_per_env_runner=environments)
        .training(lr=0.0003, num_epochs=6, vf_loss_coeff=0.01)
        .rl_module(
            model_config=DefaultModelConfig(
                fcnet_hiddens=[32], fcnet_activation="linear", vf_share_layers=True
            )
        )
        .debugging(seed=seed)
    )
    algorithm = config.build_algo()
    clock, over = Clock(limit_s), False
    while not over:
        result = algorithm.train()
        runners = result["env_runners"]
        # Its mean is over the last 100 matches (metrics_num_episodes_for_smoothing).
        over = clock.note(
            int(runners["num_env_steps_sampled_lifetime"]),
            float(runners.get("episode_return_mean", 0.0)),
            MATCHES,
        )
    algorithm.stop()
    ray.shutdown()
    return clock.figures()


def ours(seed: int, limit_s: float, *, workers: int) -> dict[str, Any]:
    """A session of ours."""
    from understudy.core.config import with_values
    from understudy.policy.mlp import Mlp
    from understudy.supervise.budget import Budget
    from understudy.training.environments.session import (
        EnvironmentProgress,
        EnvironmentSession,
        environment_config,
    )
    from understudy.training.train import train_environment

    class Over(Exception):
        """Enough is known."""

    def show(progress: EnvironmentProgress) -> None:
        if clock.note(progress.steps, progress.reward, len(progress.recent)):
            raise Over

    with tempfile.TemporaryDirectory() as folder:
        session = EnvironmentSession(
            environment="gymnasium:CartPole-v1",
            run=Path(folder) / "run",
            budget=Budget(steps=10_000_000),
            network=Mlp(),
            config=with_values(environment_config(), {"learner.seed": seed}),
            workers=workers,
        )
        clock = Clock(limit_s)
        with contextlib.suppress(Over):
            train_environment(session, show=show)
    return clock.figures()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=180.0, help="of a session, at most")
    parser.add_argument("--one", choices=[*PEERS, ALONE, SHARED], help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.one:
        if asked.one in PEERS:
            row = peer(asked.seed, asked.seconds, environments=PEERS[asked.one])
        else:
            row = ours(asked.seed, asked.seconds, workers=0 if asked.one == ALONE else 2)
        print(json.dumps(row))
        return
    import machine
    import peers

    print(machine.describe("numpy", "jax"), "and RLlib of Ray 2.60", flush=True)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in (*PEERS, ALONE, SHARED)}
    for seed in range(asked.seed, asked.seed + asked.rounds):
        for name, rows in found.items():
            python = peers.rllib() if name in PEERS else Path(sys.executable)
            command = [str(python), __file__, "--one", name, "--seed", str(seed)]
            done = subprocess.run(
                [*command, "--seconds", str(asked.seconds)],
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                check=True,
            )
            rows.append(json.loads(done.stdout.splitlines()[-1]))
            print(f"seed {seed}, {name}: {words(rows[-1])}", flush=True)
    medians = {name: summary(rows) for name, rows in found.items()}
    for name, row in medians.items():
        print(f"median, {name}: {words(row)}")
    behind = [
        name
        for name in (ALONE, SHARED)
        if medians[name]["steps_s"] < max(medians[one]["steps_s"] for one in PEERS)
        or _seconds(medians[name]) > min(_seconds(medians[one]) for one in PEERS)
    ]
    sys.exit(f"behind RLlib: {', '.join(behind)}" if behind else 0)


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians; a session that did not get there counts as the longest."""
    seconds = median(_seconds(row) for row in rows)
    return {
        "steps": int(median(row["steps"] for row in rows)),
        "steps_s": median(row["steps_s"] for row in rows),
        "solved_s": None if seconds == float("inf") else seconds,
    }


def words(row: dict[str, Any]) -> str:
    there = "not reached" if row["solved_s"] is None else f"{row['solved_s']:.1f} s to 475"
    return f"{row['steps_s']:,.0f} steps/s, {there} ({row['steps']:,} steps)"


def _seconds(row: dict[str, Any]) -> float:
    return float("inf") if row["solved_s"] is None else float(row["solved_s"])


if __name__ == "__main__":
    main()
