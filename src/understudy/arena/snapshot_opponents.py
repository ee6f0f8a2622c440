"""Rivals: the snapshots that the policy meets, one in each group of slots.

A group's snapshot is replaced only when no slot is in a match against it, so a rival never changes
in the middle of a match. From the moment that a replacement waits, slots of that group that begin
a match draw scripted opponents, so the wait ends. Groups do not change together: the first stint of
each is shorter by another part of it.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.policy.layers import Params

NOBODY = ""


class SnapshotAssignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who sits where, for a version: what `SnapshotSides` is restored from."""

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
        self.met = [NOBODY] * groups
        self.begun = [0] * groups
        """Matches of its stint that are over, or have begun."""
        self.waiting: dict[int, tuple[str, Params]] = {}

    @property
    def free(self) -> NDArray:
        """bool [groups]: whether new matches may meet the group's snapshot."""
        return np.array(
            [met != NOBODY and group not in self.waiting for group, met in enumerate(self.met)]
        )

    def restless(self) -> list[int]:
        """Groups that meet nobody yet, or the same one for a whole stint."""
        return [
            group
            for group, (met, begun) in enumerate(zip(self.met, self.begun, strict=True))
            if group not in self.waiting and (met == NOBODY or begun >= self._stint)
        ]

    def offer(self, group: int, name: str, load: Callable[[], Params]) -> None:
        """A snapshot that takes the place of the group's; the same one again just stays."""
        if name == self.met[group]:
            self.begun[group] = 0
        elif self.met[group] == NOBODY:
            self._seat(group, name, load())
        else:
            self.waiting[group] = (name, dict(load()))

    def settle(self, meetings: NDArray) -> None:
        """Replace where something waits and nobody is in a match; meetings int32 [groups]."""
        for group in [group for group in self.waiting if meetings[group] == 0]:
            self._seat(group, *self.waiting.pop(group))

    def leave(self, meetings: NDArray) -> None:
        """No snapshot is to be met for now: who is in no match any more rises, and nobody waits."""
        self.waiting.clear()
        for group in np.flatnonzero(meetings == 0).tolist():
            self.met[group], self.begun[group] = NOBODY, 0

    def note(self, begun: NDArray) -> None:
        """So many matches more began against each group's, int [groups]."""
        self.begun = [old + int(new) for old, new in zip(self.begun, begun, strict=True)]

    def named(self) -> set[str]:
        """Whoever sits or waits."""
        return {*self.met, *(name for name, _ in self.waiting.values())} - {NOBODY}

    def seating(self) -> SnapshotAssignment:
        """For a version."""
        groups = range(len(self.met))
        waiting = (self.waiting[group][0] if group in self.waiting else NOBODY for group in groups)
        return SnapshotAssignment(tuple(self.met), tuple(waiting), tuple(self.begun))

    def restore(self, seating: SnapshotAssignment, load: Callable[[str], Params | None]) -> None:
        """As it was, group by group; whoever cannot be loaded any more is nobody again."""
        for group in range(min(len(self.met), len(seating.met))):
            params = load(seating.met[group]) if seating.met[group] else None
            if params is not None:
                self._seat(group, seating.met[group], params)
                self.begun[group] = seating.begun[group]
            params = load(seating.waiting[group]) if seating.waiting[group] else None
            if params is not None:
                self.waiting[group] = (seating.waiting[group], params)

    def _seat(self, group: int, name: str, params: Params) -> None:
        first = self.met[group] == NOBODY
        self.params = {key: array.at[group].set(params[key]) for key, array in self.params.items()}
        self.met[group] = name
        self.begun[group] = group * self._stint // len(self.met) if first else 0
