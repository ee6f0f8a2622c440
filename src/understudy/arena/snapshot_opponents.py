"""The snapshots that the policy meets in the arena: their parameters, stacked by group of columns.

A group's snapshot is replaced only when no column is in a match against it, so an opponent never
changes in the middle of a match. While a replacement waits, columns of that group that begin a
match draw scripted bots, so the wait ends.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from understudy.league.snapshot_groups import NO_SNAPSHOT, SnapshotAssignment, SnapshotGroups
from understudy.policy.layers import Params

__all__ = ["NO_SNAPSHOT", "SnapshotAssignment", "SnapshotSides"]


class SnapshotSides(SnapshotGroups[Params]):
    """Which snapshot each group meets, and which one waits to take its place."""

    def __init__(self, groups: int, shape: Params, *, stint: int) -> None:
        super().__init__(groups, stint=stint)
        self.params: Params = jax.tree.map(
            lambda x: jnp.zeros((groups, *x.shape), x.dtype), dict(shape)
        )
        """[groups, ...]"""

    def _loaded(self, load: Callable[[], Params]) -> Params:
        return dict(load())

    def _placed(self, group: int, held: Params) -> None:
        self.params = {key: array.at[group].set(held[key]) for key, array in self.params.items()}
