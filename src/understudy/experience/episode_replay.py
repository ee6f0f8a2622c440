"""The replay of the ring: whole episodes by id, on top of `Replay`.

An episode is sampled at most `limit` times ever, and all episodes of a sample are different. Like
`Replay`, it belongs to one learner and has no locks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from understudy.core.arrays import NDArray
from understudy.experience.episode import Episode, Outcome, surprise
from understudy.experience.replay import Replay

Priority = Literal["uniform", "won", "surprise"]
_WON_WEIGHT = 3.0


@dataclass(frozen=True)
class Held:
    """An episode that may be sampled again."""

    name: str
    episode: Episode
    samples: int


class EpisodeReplay:
    """The newest episodes that have samples left, by id."""

    def __init__(
        self, *, capacity: int, limit: int, priority: Priority, gamma: float, lam: float
    ) -> None:
        """`gamma`, `lam`: of the returns that values are trained towards, for `surprise`."""
        self._priority: Priority = priority
        self._gamma, self._lam = gamma, lam
        # Drawn in proportion to the weight: `without_replayed_values` keeps that from the value.
        self._replay = Replay(
            capacity=capacity,
            limit=limit,
            priority="uniform" if priority == "uniform" else "prioritised",
            alpha=1.0,
            beta=0.0,
        )
        self._items: dict[int, tuple[str, Episode]] = {}
        """Slot -> name and episode."""
        self._slots: dict[str, int] = {}
        """Episode id -> slot, oldest first."""

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, episode_id: str) -> bool:
        return episode_id in self._slots

    @property
    def held(self) -> dict[str, Held]:
        """Episode id -> episode, oldest first."""
        samples = self._replay.samples_of(_slots(self._slots.values())).tolist()
        return {
            key: Held(*self._items[slot], count)
            for (key, slot), count in zip(self._slots.items(), samples, strict=True)
        }

    @property
    def inserted(self) -> int:
        """Episodes that came in, ever."""
        return self._replay.inserted

    @property
    def sampled(self) -> int:
        """Samples of them, ever, with those that they came in with."""
        return self._replay.sampled

    @property
    def samples_per_insert(self) -> float:
        """How often an episode was sampled on average."""
        return self._replay.samples_per_insert

    def insert(self, name: str, episode: Episode, *, samples: int) -> None:
        """Adds an episode that has been sampled `samples` times; the oldest leaves when full.

        An episode of the same id that is held already leaves first.
        """
        known = self._slots.get(episode.meta.id)
        if known is not None:
            self._replay.discard(_slots([known]))
            self._forget(known)
        slots = self._replay.insert(1, now=0.0, priorities=self._weight(episode), samples=samples)
        slot = int(slots[0])
        if slot >= 0:
            self._forget(slot)  # the replay removed the oldest episode to make room
            self._items[slot] = name, episode
            self._slots[episode.meta.id] = slot

    def sample(self, rng: np.random.Generator, count: int, *, times: int) -> list[Episode]:
        """At most `count` different episodes, oldest first, each counted as `times` samples."""
        drawn = self._replay.sample(rng, count, now=0.0, times=times, distinct=True).slots
        chosen = set(drawn.tolist())
        episodes = [self._items[slot][1] for slot in self._slots.values() if slot in chosen]
        for slot in drawn[~self._replay.holds(drawn)].tolist():
            self._forget(slot)
        return episodes

    def _weight(self, episode: Episode) -> NDArray:
        """[1]"""
        if self._priority == "surprise":
            return surprise(episode, gamma=self._gamma, lam=self._lam)
        won = self._priority == "won" and episode.meta.outcome is Outcome.VICTORY
        return np.array([_WON_WEIGHT if won else 1.0])

    def _forget(self, slot: int) -> None:
        if slot in self._items:
            _, episode = self._items.pop(slot)
            del self._slots[episode.meta.id]


def _slots(slots: Iterable[int]) -> npt.NDArray[np.intp]:
    return np.array(list(slots), np.intp)
