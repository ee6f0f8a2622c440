"""Which snapshot each group of columns meets, and which one waits to take its place.

The groups are staggered: in its first stint, group g of G counts g/G of a stint as played already,
so it asks for its second snapshot earlier by that much. All later stints are whole ones, so the
groups keep that distance and change one after the other, and the policy always meets snapshots of
several ages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec
import numpy as np

from understudy.core.arrays import NDArray

NO_SNAPSHOT = ""

H = TypeVar("H")


class SnapshotAssignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which snapshot each group meets and waits for, as a version stores it."""

    met: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    begun: tuple[int, ...] = ()


class SnapshotGroups(Generic[H]):
    """Snapshots by name, one a group; a subclass may hold something of each, an `H`."""

    def __init__(self, groups: int, *, stint: int) -> None:
        """`stint`: matches that a group begins against a snapshot before it asks for another."""
        self._stint = stint
        self.met = [NO_SNAPSHOT] * groups
        self.begun = [0] * groups
        """Matches of its stint that are over, or have begun."""
        self.waiting: dict[int, tuple[str, H]] = {}

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

    def offer(self, group: int, name: str, load: Callable[[], H]) -> None:
        """A snapshot that takes the place of the group's; the same one again just stays."""
        if name == self.met[group]:
            self.begun[group] = 0
        elif self.met[group] == NO_SNAPSHOT:
            self._assign(group, name, self._loaded(load))
        else:
            self.waiting[group] = (name, self._loaded(load))

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

    def restore(self, assignment: SnapshotAssignment, load: Callable[[str], H | None]) -> None:
        """As it was, group by group; a group whose snapshot cannot be loaded has none again."""
        for group in range(min(len(self.met), len(assignment.met))):
            held = load(assignment.met[group]) if assignment.met[group] else None
            if held is not None:
                self._assign(group, assignment.met[group], held)
                self.begun[group] = assignment.begun[group]
            held = load(assignment.waiting[group]) if assignment.waiting[group] else None
            if held is not None:
                self.waiting[group] = (assignment.waiting[group], held)

    def _assign(self, group: int, name: str, held: H) -> None:
        first = self.met[group] == NO_SNAPSHOT
        self._placed(group, held)
        self.met[group] = name
        self.begun[group] = group * self._stint // len(self.met) if first else 0

    def _loaded(self, load: Callable[[], H]) -> H:
        """What is held of a snapshot that is offered."""
        return load()

    def _placed(self, group: int, held: H) -> None:
        """A group meets another snapshot from now on."""
