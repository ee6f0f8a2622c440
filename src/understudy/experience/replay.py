"""Replay: earlier episodes that may be sampled again, and the limit on how often.

The ratio of samples to inserts is this object, not a side effect: an episode is sampled at most
`limit` times ever, however long the learner waits for new ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from understudy.experience.episode import Episode, Outcome

Priority = Literal["uniform", "won", "surprise"]
_WON_WEIGHT = 3.0


@dataclass(frozen=True)
class Held:
    """An episode that may be sampled again."""

    name: str
    episode: Episode
    samples: int
    surprise: float = 1.0
    """How far rewards were from what was expected, relative to other episodes."""


class Replay:
    """The newest episodes that have samples left, by id."""

    def __init__(self, *, capacity: int, limit: int, priority: Priority) -> None:
        self._capacity = capacity
        self._limit = limit
        self._priority = priority
        self._held: dict[str, Held] = {}
        self.inserted = 0
        self.sampled = 0

    def __len__(self) -> int:
        """How many episodes are held."""
        return len(self._held)

    def __contains__(self, episode_id: str) -> bool:
        """Whether an episode is held."""
        return episode_id in self._held

    @property
    def held(self) -> dict[str, Held]:
        """A copy of what is held, by episode id."""
        return dict(self._held)

    @property
    def samples_per_insert(self) -> float:
        """How often an episode was sampled on average."""
        return self.sampled / max(self.inserted, 1)

    def insert(self, name: str, episode: Episode, *, samples: int) -> None:
        """Hold an episode that has been sampled this often; the oldest leaves when full."""
        self.inserted += 1
        self.sampled += samples
        self._hold(episode.meta.id, Held(name, episode, samples, _surprise(episode)))

    def sample(self, rng: np.random.Generator, count: int, *, times: int) -> list[Episode]:
        """At most `count` different episodes, each counted as sampled `times` times."""
        ready = [key for key, held in self._held.items() if held.samples + times <= self._limit]
        if not ready or count <= 0:
            return []
        weights = np.array([self._weight(self._held[key]) for key in ready])
        picks = rng.choice(
            len(ready), size=min(count, len(ready)), replace=False, p=weights / weights.sum()
        )
        chosen = []
        for key in (ready[int(pick)] for pick in sorted(picks)):
            held = self._held[key]
            chosen.append(held.episode)
            self.sampled += times
            self._hold(key, replace(held, samples=held.samples + times))
        return chosen

    def _hold(self, key: str, held: Held) -> None:
        if held.samples >= self._limit:
            self._held.pop(key, None)
            return
        self._held[key] = held
        while len(self._held) > self._capacity:
            del self._held[next(iter(self._held))]

    def _weight(self, held: Held) -> float:
        if self._priority == "won":
            return _WON_WEIGHT if held.episode.meta.outcome is Outcome.VICTORY else 1.0
        return held.surprise if self._priority == "surprise" else 1.0


def _surprise(episode: Episode) -> float:
    """Mean distance between what was expected at each step and what one step showed."""
    expected = episode.values.astype(np.float64)  # no sum of finite float32 numbers overflows here
    after = np.append(expected[1:], 0.0)
    return float(np.abs(episode.rewards + after - expected).mean()) + 1e-3
