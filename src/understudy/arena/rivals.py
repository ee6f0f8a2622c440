"""Rivals: the snapshots that the policy meets, one in each group of slots.

A group's snapshot is replaced only when no slot is in a match against it, so a rival never changes
in the middle of a match. From the moment that a replacement waits, slots of that group that begin
a match draw scripted opponents, so the wait ends.
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


class Seating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who sits where, for a version: what `Rivals` is restored from."""

    met: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    begun: tuple[int, ...] = ()


class Rivals:
    """Which snapshot each group meets, and which one waits to take its place."""

    def __init__(self, groups: int, shape: Params) -> None:
        self.params: Params = jax.tree.map(
            lambda x: jnp.zeros((groups, *x.shape), x.dtype), dict(shape)
        )
        """[groups, ...]"""
        self.met = [NOBODY] * groups
        self.begun = [0] * groups
        """Matches against it since it sat down."""
        self.waiting: dict[int, tuple[str, Params]] = {}

    @property
    def free(self) -> NDArray:
        """bool [groups]: whether new matches may meet the group's snapshot."""
        return np.array(
            [met != NOBODY and group not in self.waiting for group, met in enumerate(self.met)]
        )

    def restless(self, stint: int) -> list[int]:
        """Groups that meet nobody yet, or have met the same one in `stint` matches."""
        return [
            group
            for group, (met, begun) in enumerate(zip(self.met, self.begun, strict=True))
            if group not in self.waiting and (met == NOBODY or begun >= stint)
        ]

    def offer(self, group: int, name: str, load: Callable[[], Params]) -> None:
        """A snapshot that takes the place of the group's; the same one again just stays."""
        if name == self.met[group]:
            self.begun[group] = 0
            return
        self.waiting[group] = (name, dict(load()))

    def settle(self, meetings: NDArray) -> None:
        """Replace where something waits and nobody is in a match; meetings int32 [groups]."""
        for group in [group for group in self.waiting if meetings[group] == 0]:
            self._seat(group, *self.waiting.pop(group))

    def note(self, begun: NDArray) -> None:
        """So many matches more began against each group's, int [groups]."""
        self.begun = [old + int(new) for old, new in zip(self.begun, begun, strict=True)]

    def named(self) -> set[str]:
        """Whoever sits or waits."""
        return {*self.met, *(name for name, _ in self.waiting.values())} - {NOBODY}

    def seating(self) -> Seating:
        """For a version."""
        groups = range(len(self.met))
        waiting = (self.waiting[group][0] if group in self.waiting else NOBODY for group in groups)
        return Seating(tuple(self.met), tuple(waiting), tuple(self.begun))

    def restore(self, seating: Seating, load: Callable[[str], Params | None]) -> None:
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
        self.params = {key: array.at[group].set(params[key]) for key, array in self.params.items()}
        self.met[group], self.begun[group] = name, 0
