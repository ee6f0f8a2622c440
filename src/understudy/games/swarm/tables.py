"""What swarm is balanced by: strategies, races, builds and difficulties.

A change of anything here is a change of rules: it raises `VERSION` and reruns the tables of
`docs/adr/0002-swarm-rules.md`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

VERSION = 1
MAX_FRAMES = 250
SECONDS_PER_FRAME = 4

STRATEGIES = ("ECONOMY", "AGGRESSIVE", "DEFENSIVE", "TECH", "ALL_IN")
ECONOMY, AGGRESSIVE, DEFENSIVE, TECH, ALL_IN = range(5)
ALL_IN_UNITS = 12.0
"""ALL_IN needs an army of this many units."""

RACES = ("terran", "zerg", "protoss")
UNIT_HP = 40.0
"""Hit points of one unit of ours, and of an enemy worth as much in a fight."""
HEADS = np.array([0.9, 1.25, 0.6], np.float32)
"""How many heads each race shows for one such unit: protoss armies look small and are not."""


class Orders(NamedTuple):
    """What one strategy does with a frame: shares of what is spent, then what the army does."""

    drones: float
    army: float
    defence: float
    tech: float
    halls: float
    goal: float
    """Where the army stands: 0 at home, 1 in the enemy's base."""
    attack: float
    """How hard the army hits away from home."""
    hold: float
    """How hard the army hits at home."""
    pull: float
    """The share of workers that joins the army."""
    caution: float
    """1 where the army goes only as far as it believes itself the stronger."""
    march: float
    """How briskly the army goes there; the lazy ones leave it about where it is."""


# `MUSTER` is the enemy's alone: an army built at home, before a rush.
ORDERS: dict[str, Orders] = {
    "ECONOMY": Orders(0.64, 0.06, 0.00, 0.00, 0.30, 0.0, 1.0, 0.9, 0.0, 0.0, 0.25),
    "AGGRESSIVE": Orders(0.30, 0.62, 0.00, 0.00, 0.08, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0),
    "DEFENSIVE": Orders(0.20, 0.50, 0.30, 0.00, 0.00, 0.0, 0.8, 1.5, 0.0, 0.0, 1.0),
    "TECH": Orders(0.22, 0.25, 0.00, 0.40, 0.03, 0.1, 0.9, 1.0, 0.0, 0.0, 0.25),
    "ALL_IN": Orders(0.00, 0.95, 0.00, 0.00, 0.00, 1.0, 1.3, 1.0, 0.06, 0.0, 1.0),
    "MUSTER": Orders(0.25, 0.70, 0.00, 0.00, 0.00, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0),
}
GOAL, ATTACK, HOLD, PULL, CAUTION, MARCH = range(5, 11)
"""Rows of `ORDERS_TABLE` after the five shares."""

COSTS = (50.0, 60.0, 90.0, 150.0, 350.0)
"""Minerals for a drone, a unit, a static defence, an upgrade and a townhall."""
SPENT = 0.5
"""The share of the bank that a frame spends: eggs and buildings take their time."""


def _orders_table() -> NDArray[np.float32]:
    """The orders as [orders, strategies]; shares become units for each mineral in the bank."""
    table = np.array(list(ORDERS.values()), np.float32).T.copy()
    table[:5] *= np.float32(SPENT) / np.array(COSTS, np.float32)[:, None]
    return table


ORDERS_TABLE = _orders_table()


class Build(NamedTuple):
    """How one enemy plays: three strategies in turn, and the frames at which it moves on."""

    race: str
    name: str
    plan: tuple[str, str, str]
    until: tuple[float, float]
    guard: float
    """How early it answers to an army of ours; the alertness of the difficulty multiplies it."""


BUILDS: tuple[Build, ...] = (
    Build("terran", "rush", ("MUSTER", "ALL_IN", "ECONOMY"), (36, 90), 0.6),
    Build("terran", "timing", ("ECONOMY", "MUSTER", "ALL_IN"), (54, 90), 0.9),
    Build("terran", "turtle", ("DEFENSIVE", "TECH", "AGGRESSIVE"), (72, 180), 1.2),
    Build("terran", "macro", ("ECONOMY", "TECH", "AGGRESSIVE"), (90, 144), 0.6),
    Build("zerg", "rush", ("MUSTER", "AGGRESSIVE", "ECONOMY"), (29, 84), 0.6),
    Build("zerg", "timing", ("ECONOMY", "MUSTER", "AGGRESSIVE"), (42, 66), 0.9),
    Build("zerg", "greedy", ("ECONOMY", "ECONOMY", "AGGRESSIVE"), (72, 120), 0.2),
    Build("zerg", "switch", ("ECONOMY", "DEFENSIVE", "ALL_IN"), (60, 120), 0.9),
    Build("protoss", "rush", ("MUSTER", "ALL_IN", "TECH"), (43, 90), 0.6),
    Build("protoss", "timing", ("ECONOMY", "TECH", "AGGRESSIVE"), (48, 96), 0.9),
    Build("protoss", "turtle", ("DEFENSIVE", "ECONOMY", "ALL_IN"), (60, 156), 1.2),
    Build("protoss", "tech", ("ECONOMY", "TECH", "AGGRESSIVE"), (42, 144), 0.4),
)
BUILD_RACE = np.array([RACES.index(build.race) for build in BUILDS], np.int32)
BUILD_PLAN = np.array(
    [[list(ORDERS).index(name) for name in build.plan] for build in BUILDS], np.int32
).T.copy()
"""[phases, builds]"""
BUILD_UNTIL = np.array([build.until for build in BUILDS], np.float32).T.copy()
"""[phases - 1, builds]"""
BUILD_GUARD = np.array([build.guard for build in BUILDS], np.float32)


class Level(NamedTuple):
    """How good the enemy is."""

    income: float
    """What its workers bring home where ours bring 1."""
    alert: float
    """How early it answers to what our army does."""


DIFFICULTIES: dict[str, Level] = {
    "easy": Level(income=0.8, alert=0.4),
    "medium": Level(income=0.89, alert=0.6),
    "hard": Level(income=0.95, alert=0.8),
    "very_hard": Level(income=1.07, alert=1.0),
}


def f32(value: float) -> NDArray[np.float32]:
    """A constant that stays float32 under both engines.

    It is an array of no dimensions: NumPy takes 0.27 us to add one to a row, 0.44 us to add a
    scalar, 0.58 us to add a Python float.
    """
    return np.array(value, np.float32)
