"""What came in to the continuous learner: items to sample, and episodes that are yet uncounted.

`ItemReplay` holds items by slot, and which episode each was cut from. Samples are counted for items
and kept for episodes: the items of one episode share their count, rounded up, when a version writes
it down. Totals are those of the last version, so no restart and no rollback allows a sample more
than before, and the unused samples of an item are lost when it leaves. Nothing older than
`continuous.max_age_s` is drawn, counted from the end of its episode and not from when it came in.
Decisions of the fallback and imported ones have no age limit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.clock import Clock
from understudy.core.config import Config
from understudy.core.errors import ConfigError
from understudy.experience.episode import Episode, surprise
from understudy.experience.replay import Replay, SlotColumns
from understudy.learner.continuous.items import cut, fields, item_length
from understudy.policy.spec import PolicySpec
from understudy.registry.versions import ReplayEntry

_NO_EPISODE = -1
ITEMS = "items"
SAMPLES = "samples"
"""Counters of versions: items that ever came in, and samples that were ever drawn of them."""


class Drawn(NamedTuple):
    """Items that were sampled: arrays [N, ...] as `items.fields` has them."""

    slots: NDArray
    """[N]"""
    weights: NDArray
    """float32 [N], 1 at most"""
    items: dict[str, NDArray]


class ItemReplay:
    """All that may be sampled, of all episodes that came in."""

    def __init__(self, spec: PolicySpec, config: Config, clock: Clock) -> None:
        c = config.continuous
        _check(config)
        self._spec = spec
        self._learner = config.learner
        self._clock = clock
        self._per_insert = c.samples_per_insert
        self._max_age_s = c.max_age_s
        self.length = item_length(spec, config)
        self._replay = Replay(
            capacity=c.capacity, priority=c.priority, alpha=c.alpha, beta=c.beta
        )  # ages are kept here: episodes do not come in the order in which they were finished
        self._columns = SlotColumns(c.capacity, fields(spec, self.length))
        self._owner = np.full(c.capacity, _NO_EPISODE, np.int64)
        """Which episode an item was cut from, by its number."""
        self._finished_at = np.full(c.capacity, np.inf)
        self._episodes: dict[int, tuple[str, str]] = {}
        """Number to id and file name."""
        self._next = 0

    def __len__(self) -> int:
        """How many items are held."""
        return len(self._replay)

    @property
    def totals(self) -> dict[str, int]:
        """What counters of a version say of samples and inserts."""
        return {ITEMS: self._replay.inserted, SAMPLES: self._replay.sampled}

    @property
    def samples_per_insert(self) -> float:
        """How often an item was sampled on average, since the run began."""
        return self._replay.samples_per_insert

    @property
    def held(self) -> dict[str, ReplayEntry]:
        """Every episode with an item that may be sampled again, by id."""
        self._expire()
        slots = self._replay.slots()
        owners, item = np.unique(self._owner[slots], return_inverse=True)
        counts, samples = np.bincount(item), self._replay.samples_of(slots)
        shares = np.ceil(np.bincount(item, weights=samples) / np.maximum(counts, 1))
        self._episodes = {int(owner): self._episodes[int(owner)] for owner in owners}
        return {
            key: ReplayEntry(name, int(share))
            for (key, name), share in zip(self._episodes.values(), shares, strict=True)
        }

    def insert(self, name: str, episode: Episode, *, samples: int = 0) -> int:
        """Hold an episode whose items were sampled this often; how many items it has."""
        items = cut(episode, self._spec, length=self.length)
        count = len(items["length"])
        learner = self._learner
        surprises = surprise(
            episode, gamma=learner.gamma, lam=learner.target_lambda, length=self.length
        )
        slots = self._replay.insert(
            count, now=self._clock.time(), priorities=surprises[:count], samples=samples
        )
        self._columns.put(slots, items)
        held = slots[slots >= 0]
        self._owner[held] = self._next
        # As in the intake: what the rules did, or what was imported, is not out of date by its age.
        self._finished_at[held] = episode.meta.finished_at if episode.sampled.any() else np.inf
        self._episodes[self._next] = (episode.meta.id, name)
        self._next += 1
        return count

    def remember(self, counters: Mapping[str, int]) -> None:
        """Totals are those that a version counted, with items that have left since.

        Exactly: what was held again came with counts that are rounded up.
        """
        replay = self._replay
        replay.inserted = counters.get(ITEMS, replay.inserted)
        replay.sampled = counters.get(SAMPLES, replay.sampled)

    def ready(self, *, times: int) -> int:
        """How many items may be drawn `times` times now: all that there are, or are allowed.

        By the totals and by what is held: else the samples of items that left without being drawn
        would be spent on the few that stay, which is memorising.
        """
        self._expire()
        replay, per_insert = self._replay, self._per_insert
        allowed = min(replay.allowance(per_insert), replay.allowance_of_held(per_insert))
        return min(len(replay), allowed // times)

    def draw(self, rng: np.random.Generator, count: int, *, times: int) -> Drawn:
        """At most `count` different items, each counted as sampled `times` times."""
        self._expire()
        drawn = self._replay.sample(rng, count, now=self._clock.time(), times=times, distinct=True)
        return Drawn(drawn.slots, drawn.weights, self._columns.take(drawn.slots))

    def of(self, names: Collection[str]) -> dict[str, NDArray]:
        """All items of these files that are held; looking is not sampling."""
        return self._columns.take(self._slots_of(names))

    def names(self, slots: NDArray | None = None) -> tuple[str, ...]:
        """The files that the items in these slots [N] (or all) come from, each once, in order."""
        slots = self._replay.slots() if slots is None else slots
        return tuple(sorted({self._episodes[int(owner)][1] for owner in self._owner[slots]}))

    def reprioritise(self, slots: NDArray, priorities: NDArray) -> None:
        """How much the items in these slots [N] surprised this time [N]."""
        self._replay.reprioritise(slots, priorities.astype(np.float64))

    def discard(self, name: str) -> None:
        """Never sample anything of this file again."""
        self._replay.discard(self._slots_of([name]))

    def _slots_of(self, names: Collection[str]) -> NDArray:
        wanted = [number for number, (_, name) in self._episodes.items() if name in names]
        slots = self._replay.slots()
        return slots[np.isin(self._owner[slots], wanted)]

    def _expire(self) -> None:
        old = np.flatnonzero(self._finished_at < self._clock.time() - self._max_age_s)
        if len(old):
            self._replay.discard(old)
            self._finished_at[old] = np.inf


class UncountedEpisodes:
    """Episodes that the trainer's normaliser has not counted, or would forget by going back.

    Each is counted once in what becomes of the run. A batch counts those that came in before it.
    Until a version holds the sums, going back undoes the counting, so they are kept here, by file
    name in the order in which they came in, and are counted again.
    """

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


def _check(config: Config) -> None:
    """A full replay must allow a batch, or the learner would wait for ever."""
    c, epochs = config.continuous, config.learner.epochs
    if c.capacity * c.samples_per_insert < c.min_batch * epochs:
        raise ConfigError(
            f"continuous.capacity: {c.capacity} items, sampled {c.samples_per_insert:g} times each "
            f"(continuous.samples_per_insert), never make a batch: expected at least "
            f"{c.min_batch * epochs} samples, continuous.min_batch times learner.epochs"
        )
