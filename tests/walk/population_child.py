"""Trains a small population of the toy: `population_child.py RUN STEPS resume|new`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import conftest  # noqa: F401  # one thread, and the cache of compiled programs

from understudy.core.config import Config, with_values
from understudy.games import catalog
from understudy.policy.mlp import Mlp
from understudy.supervise.budget import Budget
from understudy.training.session import TrainSession
from understudy.training.train import train_population

ROLLOUT, AGENTS = 16 * 8, 3
CONFIG = with_values(
    Config(),
    {
        "train.games": 16,
        "train.segment": 8,
        "train.opponents": "pull=1,moody=1,self=1",
        "train.groups": 2,
        "learner.minibatches": 2,
        "learner.epochs": 1,
        "population.agents": AGENTS,
        "population.interval_steps": 3 * ROLLOUT,
        # A version with every iteration: most of the time is spent where a kill could hurt.
        "train.checkpoint_steps": ROLLOUT,
        "registry.keep_versions": 1000,
        "monitor.csv": False,
    },
)


def main(run: str, steps: str, resume: str) -> None:
    from match.tug import Moody, Steady, Tug

    entry = catalog.Entry(
        make=Tug,
        summary="Pull a rope.",
        options={},
        bots=lambda: {"pull": Steady(1), "moody": Moody()},
    )
    catalog._GAMES = {**catalog._GAMES, "tug": entry}
    session = TrainSession(
        game="tug",
        game_options={},
        run=Path(run),
        network=Mlp(widths=(8,)),
        config=CONFIG,
        budget=Budget(steps=int(steps)),
        resume=resume == "resume",
    )
    train_population(session, show=lambda progress: None)


if __name__ == "__main__":
    main(*sys.argv[1:])
