"""The snapshots that the policy meets, one in each group of columns.

A group's snapshot is replaced only when no column is in a match against it, so an opponent never
changes in the middle of a match. While a replacement waits, columns of that group that begin a
match draw scripted bots, so the wait ends.

The groups are staggered: in its first stint, group g of G counts g/G of a stint as played already,
so it asks for its second snapshot earlier by that much. All later stints are whole ones, so the
groups keep that distance and change one after the other, and the policy always meets snapshots of
several ages.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.policy.layers import Params

NO_SNAPSHOT = ""


class SnapshotAssignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which snapshot each group meets and waits for, as a version stores it."""

    met: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    begun: tuple[int, ...] = ()


class SnapshotSides:
    """Which snapshot each group meets, and which one waits to take its place."""

    def __init__(self, groups: int, shape: Params, *, stint: int) -> None:
        """`stint`: matches that a group begins against a snapshot before it asks for another."""
        self._stint = stint
        self.params: Params = jax.tree.map(
            lambda x: jnp.zeros((groups, *x.shape), x.dtype), dict(shape)
        )
        """[groups, ...]"""
        self.met = [NO_SNAPSHOT] * groups
        self.begun = [0] * groups
        """Matches of its stint that are over, or have begun."""
        self.waiting: dict[int, tuple[str, Params]] = {}

    @property
    def free(self) -> NDArray:
        """bool [groups]: whether new matches may meet the group's snapshot."""
        return np.array(
            [met != NO_SNAPSHOT and group not in self.waiting for group, met in enumerate(self.met)]
        )

    def groups_due(self) -> list[int]:
        """Groups without a snapshot, or with the same one for a whole stint."""
        return [
            group
            for group, (met, begun) in enumerate(zip(self.met, self.begun, strict=True))
            if group not in self.waiting and (met == NO_SNAPSHOT or begun >= self._stint)
        ]

    def offer(self, group: int, name: str, load: Callable[[], Params]) -> None:
        """A snapshot that takes the place of the group's; the same one again just stays."""
        if name == self.met[group]:
            self.begun[group] = 0
        elif self.met[group] == NO_SNAPSHOT:
            self._assign(group, name, load())
        else:
            self.waiting[group] = (name, dict(load()))

    def settle(self, meetings: NDArray) -> None:
        """Replace snapshots without an open match where another waits; meetings int32 [groups]."""
        for group in [group for group in self.waiting if meetings[group] == 0]:
            self._assign(group, *self.waiting.pop(group))

    def leave(self, meetings: NDArray) -> None:
        """Remove snapshots without an open match, and all that wait; meetings int32 [groups]."""
        self.waiting.clear()
        for group in np.flatnonzero(meetings == 0).tolist():
            self.met[group], self.begun[group] = NO_SNAPSHOT, 0

    def note(self, begun: NDArray) -> None:
        """Count matches that began against each group's snapshot, int [groups]."""
        self.begun = [old + int(new) for old, new in zip(self.begun, begun, strict=True)]

    def named(self) -> set[str]:
        """All snapshots that are met or wait."""
        return {*self.met, *(name for name, _ in self.waiting.values())} - {NO_SNAPSHOT}

    def assignment(self) -> SnapshotAssignment:
        """What a version stores."""
        groups = range(len(self.met))
        waiting = (
            self.waiting[group][0] if group in self.waiting else NO_SNAPSHOT for group in groups
        )
        return SnapshotAssignment(tuple(self.met), tuple(waiting), tuple(self.begun))

    def restore(self, assignment: SnapshotAssignment, load: Callable[[str], Params | None]) -> None:
        """As it was, group by group; a group whose snapshot cannot be loaded has none again."""
        for group in range(min(len(self.met), len(assignment.met))):
            params = load(assignment.met[group]) if assignment.met[group] else None
            if params is not None:
                self._assign(group, assignment.met[group], params)
                self.begun[group] = assignment.begun[group]
            params = load(assignment.waiting[group]) if assignment.waiting[group] else None
            if params is not None:
                self.waiting[group] = (assignment.waiting[group], params)

    def _assign(self, group: int, name: str, params: Params) -> None:
        first = self.met[group] == NO_SNAPSHOT
        self.params = {key: array.at[group].set(params[key]) for key, array in self.params.items()}
        self.met[group] = name
        self.begun[group] = group * self._stint // len(self.met) if first else 0
