"""Every number of territory, once: the grid, what parasites cost and do, and how players play.

Distances are in chunks, counted as a king walks: the larger of the two differences.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

VERSION = 1
MAX_FRAMES = 240
SECONDS_PER_TICK = 5

GRID = 16
CHUNKS = GRID * GRID
"""A chunk's number is row * GRID + column."""

KINDS = ("energy", "combat")
ENERGY, COMBAT = range(2)
COSTS = (15.0, 25.0)
"""Queen energy for a parasite of each kind."""
OPTIONS = 1 + CHUNKS * len(KINDS)
NO_SPAWN = 0

KILL_RANGE = 2
"""A protector strikes parasites this near, and combat parasites strike back."""
SAFE_RANGE = 8
"""A protector this far away threatens nothing for now."""

QUEEN_ENERGY_MAX = 100.0
QUEEN_ENERGY_START = 50.0
QUEEN_ENERGY_GAIN = 6.0
PLAYER_ENERGY_MAX = 100.0
PLAYER_ENERGY_GAIN = 3.0
"""What the player's base makes in a tick."""
PLAYER_ENERGY_UPKEEP = 0.25
"""What each protector in the field takes of it."""
DRAIN = 2.0
"""What each energy parasite in a chunk with workers takes of it."""

VEINS = 8
ORE_LEAST, ORE_MOST = 40.0, 110.0
"""Minerals in a fresh vein; a worker mines one a tick, and then a vein is found elsewhere."""
WORKERS_MOST = 18
PROTECTORS_MOST = 5
WORKER_SPEED = 2

LIFETIME = 24
"""Ticks that a parasite lives at most. At most one comes a tick, so this many are room for all."""
HELD = 3
"""Workers of its chunk that one energy parasite keeps from mining."""
HEALTH = (1.0, 3.0)
"""Blows that a parasite of each kind takes."""
BITE = 0.4
"""The chance in a tick that a combat parasite kills the protector nearest to it."""
ABSENCE = 14
"""Ticks until a protector that was killed comes back, from the base."""
STRIKE_LEAST, STRIKE_MOST = 0.25, 0.7
"""The chance that a protector's blow hits, of a player without energy and with all of it."""


class Style(NamedTuple):
    """How one player plays."""

    name: str
    workers: int
    protectors: int
    speed: int
    """Of protectors, in chunks a tick."""
    sight: int
    """Protectors go for the nearest parasite that is no further than this."""
    post: int
    """Where they wait otherwise: an index into `POSTS`."""
    fright: float
    """The chance that a worker leaves in a tick, for each energy parasite in its chunk."""


POSTS = ("base", "busiest", "tour")
BASE, BUSIEST, TOUR = range(3)
TOUR_TICKS = 6
"""How long a protector on tour stays with a vein."""

STYLES: tuple[Style, ...] = (
    Style("miner", workers=18, protectors=2, speed=1, sight=5, post=BASE, fright=0.10),
    Style("guard", workers=14, protectors=4, speed=1, sight=3, post=BUSIEST, fright=0.05),
    Style("patroller", workers=15, protectors=3, speed=2, sight=4, post=TOUR, fright=0.12),
    Style("rusher", workers=16, protectors=3, speed=2, sight=16, post=BASE, fright=0.10),
    Style("adaptive", workers=15, protectors=4, speed=1, sight=8, post=BUSIEST, fright=0.20),
)


def action_of(chunk: Any, kind: Any) -> Any:
    """The action 1 + chunk * 2 + kind, which spawns a kind at a chunk; numbers or arrays."""
    return 1 + chunk * len(KINDS) + kind


def spawn_of(action: Any) -> tuple[Any, Any]:
    """Chunk and kind of an action, numbers or arrays: what `action_of` made it from.

    `NO_SPAWN` has neither. It gets those of action 1, so that tables can be read for a whole batch:
    the caller leaves out the actions that spawn nothing.
    """
    chunk, kind = divmod(action - (action != NO_SPAWN), len(KINDS))
    return chunk, kind


def action_names() -> tuple[str, ...]:
    """`none`, then `energy@0`, `combat@0`, `energy@1` and so on."""
    return ("none", *(f"{kind}@{chunk}" for chunk in range(CHUNKS) for kind in KINDS))


def f32(value: float) -> NDArray[np.float32]:
    """A constant that stays float32 under both engines (see `swarm.tables.f32`)."""
    return np.array(value, np.float32)


def i32(value: int) -> NDArray[np.int32]:
    """A constant that stays int32 under both engines."""
    return np.array(value, np.int32)


def _distances() -> NDArray[np.float32]:
    row, column = np.divmod(np.arange(CHUNKS), GRID)
    apart: NDArray[np.int64] = np.maximum(abs(row[:, None] - row), abs(column[:, None] - column))
    return apart.astype(np.float32)


DISTANCE = _distances()
"""[CHUNKS, CHUNKS]: from every chunk to every other."""
THREAT = np.clip((SAFE_RANGE - DISTANCE) / (SAFE_RANGE - KILL_RANGE), 0.0, 1.0).astype(np.float32)
"""[CHUNKS, CHUNKS]: what one protector means for a parasite: 1 within its reach, 0 at safety."""
