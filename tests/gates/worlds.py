"""Territories of known looks, and spawns of all sorts with what they really brought."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from understudy.core.ops import NUMPY
from understudy.games.territory import BOTS, Territory, observation, tables

HELD_OUT = 777_000
"""The first seed: the cost gate's weights were never fitted to these."""


def looks(*slots: tuple[int, float, float], energy: float = 100.0, parasites: float = 0.0) -> Any:
    """float32 [28] from (chunk, workers, protectors) each; protectors stand in the chunk."""

    def heads(*at: tuple[int, float]) -> Any:
        field = np.zeros((tables.CHUNKS, 1), np.float32)
        for chunk, count in at:
            field[chunk] += count
        return field

    workers = heads(*((chunk, count) for chunk, count, _ in slots))
    return observation.features(
        NUMPY,
        observation.Seen(
            workers=workers,
            mining=workers,
            protectors=heads(*((chunk, count) for chunk, _, count in slots)),
            energy_parasites=heads(*((chunk, parasites) for chunk, _, _ in slots[:1])),
            combat_parasites=heads(),
            queen_energy=np.array([energy], np.float32),
            queen_energy_max=np.array([tables.QUEEN_ENERGY_MAX], np.float32),
            player_energy=np.full((2, 1), 50, np.float32),
            player_minerals=np.zeros((2, 1), np.float32),
        ),
    )[:, 0]


def spawn(chunk: int, kind: int = tables.ENERGY) -> Any:
    """int32 [1]."""
    return np.array([tables.action_of(chunk, kind)], np.int32)


class Spawns(NamedTuple):
    """N spawns, all of them executed."""

    observations: Any
    """float32 [N, 28]"""
    actions: Any
    """int32 [N, 1]"""
    rewards: Any
    """float32 [N]: what followed"""
    waiting: Any
    """float32 [N]: what would have followed without"""


def spawns(*, matches: int, ticks: int, first_seed: int = HELD_OUT) -> Spawns:
    """What a queen who tries everything sees, does and gets: good chunks, their neighbours, any
    chunk at all, and nothing, in turns and by chance."""
    game = Territory()
    seeds = np.arange(first_seed, first_seed + matches, dtype=np.uint32)
    rng = np.random.default_rng(first_seed)
    every = np.arange(matches)
    state = game.start(NUMPY, seeds)
    rows = []
    for _ in range(ticks):
        seen = game.observe(NUMPY, state)[0]
        ids = np.rint(
            seen[: observation.SLOTS * observation.SLOT_WIDTH : observation.SLOT_WIDTH] * 255
        )
        chunk: Any = ids.astype(int)[rng.integers(0, observation.SLOTS, matches), every].clip(0)
        beside = (chunk + rng.integers(-1, 2, matches) + 16 * rng.integers(-1, 2, matches)) % 256
        kind: Any = rng.integers(0, 2, matches)
        luck = rng.random(matches)
        scripted = [
            BOTS[name].act(NUMPY, seen, seeds, state.frame)[0] for name in ("random", "queen")
        ]
        action = np.select(
            [luck < 0.35, luck < 0.5, luck < 0.65, luck < 0.8],
            [tables.action_of(chunk, kind), tables.action_of(beside, kind), *scripted],
            0,
        )
        action = np.where(game.legal(NUMPY, state)[0][action, every], action, 0).astype(np.int32)
        after = game.step(NUMPY, state, action[None, None])
        without = game.step(NUMPY, state, np.zeros_like(action)[None, None])
        told = game.reward(NUMPY, state, after)[0], game.reward(NUMPY, state, without)[0]
        rows.append((seen.T, action[:, None], *told))
        state = after
    found = Spawns(*(np.concatenate(column) for column in zip(*rows, strict=True)))
    spawned = found.actions[:, 0] != tables.NO_SPAWN
    return Spawns(*(column[spawned] for column in found))
