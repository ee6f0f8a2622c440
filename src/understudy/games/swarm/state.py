"""One match of swarm as arrays: what we have and what the enemy has live in the same rows.

A field of shape [2, B] holds our side in row 0 and the enemy in row 1, so both live under the same
rules. Counts are continuous: 12.4 workers are twelve and one in the egg.
"""

from __future__ import annotations

from typing import NamedTuple

from understudy.core.ops import Array


class State(NamedTuple):
    """B matches side by side; float32 unless said otherwise."""

    frame: Array
    """int32 [B]"""
    key: Array
    """uint32 [B]: what every draw of this match is folded from."""
    build: Array
    """int32 [B]: which of `tables.BUILDS` the enemy plays."""
    distance: Array
    """[B]: frames that an army walks from base to base."""
    pace: Array
    """[B]: the enemy's clock; above 1 it moves on early."""
    heads: Array
    """[B]: how many units the enemy's race shows for one unit's worth of army."""
    income: Array
    """[2, B]: what the map and the difficulty give for a worker's work."""
    minerals: Array
    vespene: Array
    workers: Array
    army: Array
    """[2, B]: units that fight."""
    defence: Array
    """[2, B]: static defences."""
    upgrades: Array
    halls: Array
    """[2, B]: townhalls; a side without any has lost."""
    larva: Array
    supply_cap: Array
    front: Array
    """[2, B]: where the army stands, 0 in its own base, 1 in the other's."""
    seen: Array
    """[3, B]: the enemy's units, bases and army hp as last scouted."""
