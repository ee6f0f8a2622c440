"""Rivals: the earlier versions that the policy meets, one in each group of slots.

A group's version is replaced only when no slot is in a match against it, so a rival never changes
in the middle of a match. From the moment that a replacement waits, slots of that group that begin
a match draw scripted opponents, so the wait ends.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from understudy.core.arrays import NDArray
from understudy.policy.layers import Params

NOBODY = 0
"""Versions count from 1."""


class Rivals:
    """Which version each group meets, and which one waits to take its place."""

    def __init__(self, groups: int, shape: Params) -> None:
        self.params: Params = jax.tree.map(
            lambda x: jnp.zeros((groups, *x.shape), x.dtype), dict(shape)
        )
        """[groups, ...]"""
        self.met = [NOBODY] * groups
        self.waiting: dict[int, tuple[int, Params]] = {}
        self._next = 0

    @property
    def free(self) -> NDArray:
        """bool [groups]: whether new matches may meet the group's version."""
        return np.array(
            [met != NOBODY and group not in self.waiting for group, met in enumerate(self.met)]
        )

    def offer(self, version: int, params: Params) -> None:
        """A version that takes the place of the group's whose turn it is."""
        self.waiting[self._next] = (version, dict(params))
        self._next = (self._next + 1) % len(self.met)

    def settle(self, meetings: NDArray) -> None:
        """Replace where something waits and nobody is in a match; meetings int32 [groups]."""
        for group in [group for group in self.waiting if meetings[group] == 0]:
            self._seat(group, *self.waiting.pop(group))

    def counters(self) -> dict[str, int]:
        """For a manifest: who is met, who waits and whose turn it is."""
        waits = {f"rival.{group}.waiting": who for group, (who, _) in self.waiting.items()}
        return {
            **{f"rival.{group}": version for group, version in enumerate(self.met)},
            **waits,
            "rival.next": self._next,
        }

    def restore(self, counters: Mapping[str, int], load: Mapping[int, Params]) -> None:
        """As `counters` say; whoever is not in `load` (pruned since) is nobody again."""
        for group in range(len(self.met)):
            met = counters.get(f"rival.{group}", NOBODY)
            if met in load:
                self._seat(group, met, load[met])
            waits = counters.get(f"rival.{group}.waiting", NOBODY)
            if waits in load:
                self.waiting[group] = (waits, load[waits])
        self._next = counters.get("rival.next", 0) % len(self.met)  # there were more groups once

    def _seat(self, group: int, version: int, params: Params) -> None:
        self.params = {
            name: array.at[group].set(params[name]) for name, array in self.params.items()
        }
        self.met[group] = version


def named(counters: Mapping[str, int]) -> set[int]:
    """The versions that a manifest's counters name as rivals."""
    return {
        version
        for key, version in counters.items()
        if key.startswith("rival.") and key != "rival.next" and version != NOBODY
    }
