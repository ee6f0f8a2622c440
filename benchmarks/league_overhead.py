"""What the league costs beside training: ratings, draws, snapshots and their files.

    python benchmarks/league_overhead.py

Trains preset `small` for some iterations on the one hand; on the other, does what the league does
in as many, with a pool of 200 snapshots: rates the matches, draws and loads rivals, keeps one more
snapshot (and lets one go), writes its state. Both in processor time, in one run. The goal is 5%.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
from machine import describe, tell

from understudy.arena.arena import Arena
from understudy.core.config import Config, LeagueConfig
from understudy.games import catalog
from understudy.games.moments import RewardSet
from understudy.league.anchors import anchors_of
from understudy.league.league import League
from understudy.learner.trainer import Trainer
from understudy.policy.presets import network
from understudy.policy.spec import PolicySpec
from understudy.training.named_configs import config as named
from understudy.training.stage_plan import StagePlan

SNAPSHOTS, ITERATIONS, WARM = 200, 8, 2
MATCHES = 16
"""Of an iteration: 16,384 frames are about eleven matches, and short ones at first."""


def measure() -> dict[str, object]:
    config = named("curriculum")
    arena, course = _arena(config)
    arena.order(course.mix, course.weights(0))
    for _ in range(WARM):  # and compile
        arena.iterate()
    began = time.process_time()
    for _ in range(ITERATIONS):
        arena.iterate()
    training = (time.process_time() - began) / ITERATIONS
    with tempfile.TemporaryDirectory() as folder:
        kept = _kept(arena, Path(folder))
    return {
        "machine": describe("jax", "numpy"),
        "training_cpu_s": training,
        "share": kept["cpu_s"] / training,
        **kept,
    }


def words(
    *,
    machine: str,
    training_cpu_s: float,
    share: float,
    cpu_s: float,
    pool_mib: float,
    grown_mib: float,
) -> str:
    return (
        f"an iteration of training   {1e3 * training_cpu_s:9.1f} ms of processor time\n"
        f"its bookkeeping            {1e3 * cpu_s:9.2f} ms ({share:.2%}; the goal is 5%)\n"
        f"{SNAPSHOTS} snapshots on disk      {pool_mib:9.1f} MiB\n"
        f"memory for all of them     {grown_mib:9.1f} MiB"
    )


def _arena(config: Config) -> tuple[Arena, StagePlan]:
    game, bots = catalog.make("brawl"), catalog.bots("brawl")
    course = StagePlan("brawl", config, tuple(bots))
    spec = PolicySpec(game.features, game.actions, network("small"))
    arena = Arena(
        Trainer(spec, config.learner),
        config,
        game,
        {name: bots[name] for name in course.bots},
        meets_itself=course.meets_itself,
        rewards=course.rewards,
        measures=RewardSet.of(catalog.measures("brawl")),
        kinds=course.kinds,
        seed=1,
    )
    return arena, course


def _kept(arena: Arena, folder: Path) -> dict[str, float]:
    """Processor seconds of an iteration's bookkeeping with a full pool, and what it holds."""
    settings = LeagueConfig(save_freq=1, max_saved=SNAPSHOTS)
    league = League(settings, folder, arena.trainer.spec, anchors_of("brawl", {}))
    weights, rng = arena.trainer.weights(), np.random.default_rng(0)
    before = psutil.Process().memory_info().rss
    for index in range(SNAPSHOTS):
        league.offer(50_000 * (index + 1), weights)
    grown = psutil.Process().memory_info().rss - before
    pool = sum(path.stat().st_size for path in folder.iterdir())
    began = time.process_time()
    for index in range(ITERATIONS):
        opponents = [*arena.bots, *rng.choice(league.names, 4, replace=False)]
        met = rng.multinomial(MATCHES, np.full(len(opponents), 1 / len(opponents)))
        league.note({name: (int(n), 0, 0) for name, n in zip(opponents, met, strict=True)})
        league.weights(str(league.draw(float(rng.random()))))  # a rival sits down
        league.offer(50_000 * (SNAPSHOTS + index + 1), weights)
        league.encode()
        league.delete_unlisted()
    cpu = (time.process_time() - began) / ITERATIONS
    return {"cpu_s": cpu, "pool_mib": pool / 2**20, "grown_mib": grown / 2**20}


if __name__ == "__main__":
    tell(__doc__, measure, words)
