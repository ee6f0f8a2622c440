"""How strong the league gets in a game that is not ours: PettingZoo's connect_four_v3.

    python benchmarks/host_league.py [--minutes 10] [--seed 1] [--workers 0]
    python benchmarks/host_league.py --steps 400000 [--seed 1] [--workers 0]

Trains with `--config curriculum` for so many minutes, or for so many decisions where the machine is
busy: CPU time is then what a clock would show on a core that does nothing else. Then the newest
version plays 400 frozen matches against a random player and 400 against its first snapshot, actions
drawn. An illegal move ends a match of connect_four_v3 with -1 for the side that made it and 0 for
the other; rewards that do not add up to 0 end training with an error, so that a training that ends
well had no illegal one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from understudy.core.config import with_values
from understudy.judging.environments import EnvironmentResolver
from understudy.policy.presets import network
from understudy.supervise.budget import Budget
from understudy.training import named_configs
from understudy.training.environments.session import EnvironmentProgress, EnvironmentSession
from understudy.training.train import train_environment

ENVIRONMENT = "pettingzoo:pettingzoo.classic.connect_four_v3"
MATCHES = 400
GOAL_RANDOM, GOAL_SNAPSHOT = 0.95, 0.80


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--steps", type=int, help="decisions, instead of minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    asked = parser.parse_args()
    budget = Budget(steps=asked.steps) if asked.steps else Budget(minutes=asked.minutes)
    with tempfile.TemporaryDirectory() as folder:
        reached = strength(Path(folder) / "run", budget, asked.seed, asked.workers)
    sys.exit(0 if reached else 1)


def strength(run: Path, budget: Budget, seed: int, workers: int) -> bool:
    """Train, judge and print; whether both goals are reached."""
    config = with_values(
        named_configs.config("environment_curriculum"), {"learner.seed": seed, "monitor.csv": False}
    )
    began, cpu_began, ready = time.monotonic(), time.process_time(), 0.0

    def show(progress: EnvironmentProgress) -> None:
        nonlocal ready
        if not ready and progress.win_rates()["random"].win_rate >= GOAL_RANDOM:
            ready = time.monotonic() - began

    summary = train_environment(
        EnvironmentSession(
            environment=ENVIRONMENT,
            run=run,
            budget=budget,
            network=network("mlp", flag="--network"),
            config=config,
            workers=workers,
        ),
        show=show,
    )
    took_s, cpu_s = time.monotonic() - began, time.process_time() - cpu_began
    resolver = EnvironmentResolver(ENVIRONMENT, leads=[("--agent", str(run))], seed=seed)
    agent = resolver.resolve("--agent", str(run))
    print(
        f"{ENVIRONMENT}, seed {seed}, {took_s:.0f} s, {workers} workers: "
        f"{summary.steps:,} decisions ({summary.steps_s:,.0f} a second, {cpu_s:.0f} s of CPU time "
        f"in this process, load {os.getloadavg()[2]:.0f}), {summary.matches:,} matches, "
        f"stage {summary.stage}, {summary.snapshots} snapshots"
    )
    if not summary.snapshots:
        print("  no snapshot yet: give it more minutes")
        return False
    _, first, *_ = resolver.resolve_all("--opponents", "league", agent=str(run))
    reached = True
    for opponent, goal in ((resolver.resolve("", "random"), GOAL_RANDOM), (first, GOAL_SNAPSHOT)):
        tally = resolver.meet([(agent, opponent)], MATCHES)[0].tally
        low, high = tally.interval
        print(
            f"  v {opponent.label}: {tally.win_rate:.1%} of {tally.matches} "
            f"({low:.1%} to {high:.1%}), goal {goal:.0%}"
        )
        reached &= tally.win_rate >= goal
    print(
        f"  while it trained, 95% of the last 200 v random after {ready:.0f} s"
        if ready
        else "  while it trained, never 95% of the last 200 v random"
    )
    return reached


if __name__ == "__main__":
    main()
