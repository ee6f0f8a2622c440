"""What `test_devices` compares, made in a process with two virtual devices.

on_two_devices.py FOLDER

Writes `updates.npz`, `population.npz` and `one_group.npz`: what the same work came to on one device
(`one.`) and on two (`two.`); and the folder `run` with `run.npz`: a run on two devices, and what is
known of it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import jax
import numpy as np
from jax.sharding import Mesh
from learner.maths import test_segments as segments
from training.test_train import session, settings, tug

from arena.makers import BOTS, CONFIG, GAME, REWARDS, WEIGHTS, mix_of, spec_of
from understudy.arena.arena import Arena
from understudy.arena.iteration import compiled
from understudy.arena.population import Member, Population
from understudy.core.clock import SystemClock
from understudy.core.config import with_values
from understudy.games import catalog
from understudy.learner.maths.segments import improve
from understudy.learner.trainer import Trainer
from understudy.policy.mlp import Mlp
from understudy.telemetry.journal import Journal
from understudy.training.arena_learning import ArenaLearning

ITERATIONS = 4


def updates(folder: Path) -> None:
    """One update from the same state and batch, by network."""
    mesh = Mesh(np.array(jax.devices()).reshape(1, 2), ("groups", "columns"))
    kept: dict[str, Any] = {}
    for name in ("mlp", "attentive"):
        player = segments.PLAYERS[name]
        batch = segments.segments_of(player)
        for devices in (None, mesh):
            state, report, squares = improve(
                player.spec,
                segments.CONFIG,
                *segments.ready(player, rate=1e-2),
                batch,
                blockwise=True,
                mesh=devices,
            )
            word = f"{name}.{'one' if devices is None else 'two'}."
            kept |= {f"{word}params.{key}": value for key, value in state.params.items()}
            leaves = jax.tree.leaves((report._replace(finite=None), squares))
            kept |= {f"{word}report.{index}": leaf for index, leaf in enumerate(leaves)}
        before = segments.ready(player)[0].params
        kept |= {f"{name}.before.params.{key}": value for key, value in before.items()}
    np.savez(folder / "updates.npz", **kept)


def population(folder: Path) -> None:
    """Two agents, on one device together and on one each."""
    kept: dict[str, Any] = {}
    mix = mix_of("rest=1,pull=1")
    for devices in (1, 2):
        members = [
            Member(
                Trainer(spec_of(Mlp(widths=(8,))), CONFIG.learner),
                CONFIG,
                GAME,
                {name: BOTS[name] for name in mix.scripted},
                meets_itself=False,
                rewards=REWARDS,
                seed=10 + index,
            )
            for index in range(2)
        ]
        together = Population(members, devices=devices)
        for iteration in range(3):
            for member in members:
                member.order(mix, WEIGHTS)
            if iteration == 2:
                members[1].restart(99)
            together.iterate()
        assert together._columns is not None
        word = "one" if devices == 1 else "two"
        kept[f"{word}.devices"] = np.array(len(together._columns.seeds.sharding.device_set))
        for index, member in enumerate(members):
            params = member.trainer.weights().params
            kept |= {f"{word}.params.{index}.{name}": value for name, value in params.items()}
    np.savez(folder / "population.npz", **kept)


def one_group(folder: Path) -> None:
    """An exploiter's arena: all columns meet one snapshot, so devices share its group."""
    kept: dict[str, Any] = {}
    mix = mix_of("rest=1,self=3")
    config = with_values(CONFIG, {"train.groups": 1})
    for word, devices in (("one", 1), ("two", 2)):
        arena = Arena(
            Trainer(spec_of(segments.ATTENTIVE), config.learner),
            config,
            GAME,
            {name: BOTS[name] for name in mix.scripted},
            meets_itself=True,
            rewards=REWARDS,
            seed=5,
            devices=devices,
        )
        arena.order(mix, WEIGHTS)
        met = arena.trainer.weights().params
        arena.snapshots.offer(0, "step-0", lambda met=met: met)  # type: ignore[misc]
        for _ in range(ITERATIONS):
            arena.iterate()
        columns = arena.columns
        kept |= {
            f"{word}.{name}": np.asarray(getattr(columns, name))
            for name in ("kind", "started", "frame", "returned")
        }
        kept |= {
            f"{word}.theirs.{index}": np.asarray(leaf)
            for index, leaf in enumerate(jax.tree.leaves(columns.theirs))
        }
        params = arena.trainer.weights().params
        kept |= {f"{word}.params.{name}": value for name, value in params.items()}
    np.savez(folder / "one_group.npz", **kept)


def trained(run: Path, *, devices: int) -> ArenaLearning:
    """A session with a league and recorded matches, and what it has at its end."""
    clock = SystemClock()
    one = session(run, settings(train__record=2), devices=devices)
    folder = one.open_folder(run, one.config, clock)
    learning = ArenaLearning(one, folder, Journal(folder.journal, "train", clock))
    with learning:
        learning.begin()
        for _ in range(ITERATIONS):
            assert learning.iterate()
    return learning


def run(folder: Path) -> None:
    """A run on two devices."""
    catalog._GAMES = {**catalog._GAMES, "tug": tug()}
    learning = trained(folder / "run", devices=2)
    arena = learning.arena
    columns = arena.columns
    theirs = jax.tree.leaves(columns.theirs)[0]
    np.savez(
        folder / "run.npz",
        programs=compiled(arena.plan)._cache_size(),  # type: ignore[attr-defined]
        devices=len(columns.seeds.sharding.device_set),
        columns=columns.seeds.addressable_shards[0].data.shape[0],
        groups=theirs.addressable_shards[0].data.shape[0],
        recorded=arena.plan.recorded,
        opponents=np.asarray(columns.kind),
        started=np.asarray(columns.started),
        **{f"params.{name}": value for name, value in arena.trainer.weights().params.items()},
    )


if __name__ == "__main__":
    assert len(jax.devices()) == 2
    for make in (updates, population, one_group, run):
        make(Path(sys.argv[1]))
