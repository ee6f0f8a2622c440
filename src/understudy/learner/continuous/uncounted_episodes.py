"""Newcomers: episodes that the trainer's normaliser has not counted yet, or would forget.

Each is counted once in what becomes of the run. A batch counts those that came in before it; until
a version holds the sums, going back undoes the counting, so they are kept and counted again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from understudy.experience.episode import Episode


class UncountedEpisodes:
    """Episodes by file name, in the order in which they came in."""

    def __init__(self) -> None:
        self._waiting: dict[str, Episode] = {}
        """Came in since the last batch."""
        self._counted: dict[str, Episode] = {}
        """By batches since the last version."""

    def add(self, name: str, episode: Episode) -> None:
        """One came in."""
        self._waiting[name] = episode

    @property
    def names(self) -> tuple[str, ...]:
        """All that no version has counted: what one of them did to the normaliser is undone by
        going back to the last version, so any of them may be why a batch failed."""
        return (*self._counted, *self._waiting)

    def of(self, names: Collection[str]) -> list[Episode]:
        """Those of these names."""
        every = self._counted | self._waiting
        return [episode for name, episode in every.items() if name in names]

    def emptied(self) -> list[Episode]:
        """All of them with zeros for numbers: as many to count, and nothing in them to blame."""
        return [
            replace(
                one,
                observations=np.zeros_like(one.observations),
                rewards=np.zeros_like(one.rewards),
                values=np.zeros_like(one.values),
            )
            for one in (*self._counted.values(), *self._waiting.values())
        ]

    def take(self) -> list[Episode]:
        """What a batch is to count."""
        taken, self._waiting = self._waiting, {}
        self._counted |= taken
        return list(taken.values())

    def keep(self) -> None:
        """A version holds everything that was counted."""
        self._counted = {}

    def give_back(self) -> None:
        """The trainer is that of a version again: what was counted since is to be counted again."""
        self._waiting = self._counted | self._waiting
        self._counted = {}

    def discard(self, name: str) -> None:
        """It is set aside: never count it."""
        self._waiting.pop(name, None)
        self._counted.pop(name, None)

    def clear(self) -> None:
        """Never count any of these."""
        self._waiting, self._counted = {}, {}
