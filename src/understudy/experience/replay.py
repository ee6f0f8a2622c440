"""Replay: which items may be sampled again, how likely each is, and how often at most.

The ratio of samples to inserts is this object, not a side effect: no item is sampled more than
`limit` times ever, none that is older than `max_age_s`, and `allowance` says how many samples a
learner may still draw. When it is full the oldest item leaves. It deals in slots (integers below
the capacity); what lies in a slot is its owner's affair: `SlotColumns`, or whole episodes.

One learner owns a replay: there are no locks, and none of it may be used by two threads at once.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from understudy.core.errors import ConfigError, InputError
from understudy.experience.slots import SlotColumns, Slots
from understudy.experience.sum_tree import SumTree, draw, fitting

__all__ = ["SlotColumns", "Replay", "Sample"]

Indices = npt.NDArray[np.intp]
Floats = npt.NDArray[np.floating]
Counts = npt.NDArray[np.integer]

_EPSILON = 1e-6
"""Added to every priority, so that an item that surprised nobody can still be sampled."""
_LARGEST = 1e200
"""What a priority to the power of alpha must stay below, so that sums are finite."""


class Sample(NamedTuple):
    """Slots that were drawn [B], and the importance weight of each [B]: float32, 1 at most."""

    slots: Indices
    weights: npt.NDArray[np.float32]


class Replay:
    """At most `capacity` items by slot; see the module's docstring for what it promises.

    With priority "prioritised" an item is drawn in proportion to (priority + 1e-6) ** alpha, and
    weights are (N p) ** -beta over the largest of the batch, where p is its probability among N.
    """

    def __init__(
        self,
        *,
        capacity: int,
        limit: float = float("inf"),
        priority: Literal["uniform", "prioritised"] = "uniform",
        alpha: float = 0.6,
        beta: float = 0.4,
        max_age_s: float = float("inf"),
    ) -> None:
        if priority not in ("uniform", "prioritised"):
            raise ConfigError(f"priority: expected uniform or prioritised, got {priority!r}")
        self.capacity = capacity
        self.limit = limit
        self.max_age_s = max_age_s
        self._alpha = alpha
        self._most = _LARGEST ** (1.0 / max(alpha, 1.0))
        self.beta = beta
        """May be raised while learning goes on, as is usual."""
        self.inserted = 0
        """Items that came in, ever."""
        self.sampled = 0
        """Samples that were drawn, ever, with those that items came in with."""
        self._slots = Slots(capacity)
        self._samples = np.zeros(capacity, np.int32)
        self._tree = SumTree(capacity) if priority == "prioritised" else None
        self._largest = 1.0

    def __len__(self) -> int:
        """How many items are held."""
        return self._slots.count

    @property
    def samples_per_insert(self) -> float:
        """How often an item was sampled on average."""
        return self.sampled / max(self.inserted, 1)

    @property
    def nbytes(self) -> int:
        """Bytes that the bookkeeping takes: 36 for every slot, 53 with priorities."""
        tree = self._tree.nbytes if self._tree else 0
        return self._slots.nbytes + self._samples.nbytes + tree

    def allowance(self, per_insert: float) -> int:
        """How many samples may be drawn now so that sampled <= per_insert * inserted."""
        return max(0, int(per_insert * self.inserted - self.sampled))

    def allowance_of_held(self, per_insert: float) -> int:
        """The same over what is held: what left unsampled leaves nothing to those that stay."""
        held = self._slots.held()
        return max(0, int(per_insert * len(held) - self._samples[held].sum(dtype=np.int64)))

    def slots(self) -> Indices:
        """All slots that are held, oldest first: [len]. Sorts, so it is not for every batch."""
        return self._slots.by_age()

    def holds(self, slots: Indices) -> npt.NDArray[np.bool_]:
        """Whether each of `slots` [B] is held: [B]."""
        return self._slots.holds(slots)

    def samples_of(self, slots: Indices) -> npt.NDArray[np.int32]:
        """How often the items in `slots` [B] were sampled: [B]."""
        return self._samples.take(slots)

    def priorities_of(self, slots: Indices) -> npt.NDArray[np.float64]:
        """What the items in `slots` [B] are drawn in proportion to: [B]."""
        return self._tree.take(slots) if self._tree else np.ones(len(slots))

    # --- in and out ------------------------------------------------------------------------------

    def insert(
        self, count: int, *, now: float, priorities: Floats | None = None, samples: Counts | int = 0
    ) -> Indices:
        """Hold `count` new items; the oldest leave when full. Their slots: [count].

        priorities: [count] or None: the largest that was ever seen. samples: [count], how often
        each has been sampled before. A slot of -1: it was never held, since no samples were left
        to it or since more than `capacity` came at once.
        """
        counts = np.broadcast_to(np.asarray(samples, np.int32), (count,))
        if priorities is None:
            priorities = np.full(count, self._largest)
        scaled = self._scaled(priorities, count)  # before anything changes: it may refuse them
        self.inserted += count
        self.sampled += int(counts.sum())
        fresh = np.flatnonzero(counts < self.limit)
        fresh = fresh[max(0, len(fresh) - self.capacity) :]
        self._leave(self._slots.oldest(max(0, len(self) + len(fresh) - self.capacity)))
        slots = np.full(count, -1, np.intp)
        slots[fresh] = entered = self._slots.enter(len(fresh), now=now)
        self._samples[entered] = counts[fresh]
        if self._tree:
            self._tree.put(entered, scaled[fresh])
        return slots

    def reprioritise(self, slots: Indices, priorities: Floats) -> None:
        """New `priorities` [B] for the items in `slots` [B]; those that have left stay away.

        Of a slot that comes twice the later priority counts. To be called before new items come
        in, which may take the slot of one that has left. Without priorities it does nothing.
        """
        if self._tree:
            scaled, held = self._scaled(priorities, len(slots)), self.holds(slots)
            if held.all():
                self._tree.put(slots, scaled)
            else:
                self._tree.put(slots[held], scaled[held])

    def discard(self, slots: Indices) -> None:
        """Hold the items in `slots` [B] no longer, if they still are."""
        known = np.unique(slots)
        self._leave(known[self.holds(known)])

    def _scaled(self, priorities: Floats, count: int) -> npt.NDArray[np.float64]:
        given = np.asarray(priorities, np.float64)
        if given.shape != (count,):
            raise InputError(f"priorities: expected shape {(count,)}, got {given.shape}")
        if count == 0:
            return given
        if not (given.min() >= 0.0 and given.max() < self._most):
            raise InputError(f"priorities: expected numbers from 0 to {self._most:g}")
        self._largest = max(self._largest, float(given.max()))
        scaled: npt.NDArray[np.float64] = (given + _EPSILON) ** self._alpha
        return scaled

    def _leave(self, slots: Indices) -> None:
        if len(slots):
            self._slots.leave(slots)
            if self._tree:
                self._tree.put(slots, 0.0)

    # --- sampling --------------------------------------------------------------------------------

    def sample(
        self,
        rng: np.random.Generator,
        count: int,
        *,
        now: float,
        times: int = 1,
        distinct: bool = False,
    ) -> Sample:
        """Draw `count` items, each counted as sampled `times` times; `distinct`: all different.

        Fewer where the limit (or `distinct`) leaves no more, none where nothing is ready.
        """
        if self.max_age_s < np.inf:
            self._leave(self._slots.older_than(self._slots.latest(now) - self.max_age_s))
        if count <= 0 or not len(self):
            return Sample(np.zeros(0, np.intp), np.zeros(0, np.float32))
        if distinct or self.limit < np.inf:
            slots = self._draw_within(rng, count, times=times, distinct=distinct)
        else:
            slots = self._draw(rng, count, stratified=True)
        weights = self._weights(slots)
        np.add.at(self._samples, slots, np.int32(times))  # of the same type: 20 times as quick
        self.sampled += times * len(slots)
        if self.limit < np.inf:
            self._leave(np.unique(slots[self._samples[slots] >= self.limit]))
        return Sample(slots, weights)

    def _draw(self, rng: np.random.Generator, count: int, *, stratified: bool) -> Indices:
        """With replacement, from all that is held: [count]. Stratified: one from each 1/count."""
        if self._tree is None:
            return self._slots.draw(rng, count)
        if not self._tree.total > 0.0:
            return np.zeros(0, np.intp)
        masses = rng.random(count)
        if stratified:
            masses = (masses + np.arange(count)) / count
        return self._tree.find(masses * self._tree.total)

    def _draw_within(
        self, rng: np.random.Generator, count: int, *, times: int, distinct: bool
    ) -> Indices:
        """One draw after the other from the items that still have room: [<= count].

        The first batch costs its own size. What is missing then, since an item was drawn beyond
        its room, is drawn from those that have room, which costs the size of the replay.
        """
        most = 1 if distinct else count
        chosen = self._draw(rng, count, stratified=False)
        chosen = chosen[fitting(chosen, self._room(chosen, times, most))]
        if len(chosen) == count:
            return chosen
        slots = self._slots.held()
        room = self._room(slots, times, most) - np.bincount(chosen, minlength=self.capacity)[slots]
        likely = self.priorities_of(slots)
        rest = draw(rng, count - len(chosen), likely=likely, room=room)
        return np.concatenate([chosen, slots[rest]])

    def _room(self, slots: Indices, times: int, most: int) -> Indices:
        """How often each of `slots` [B] may still be drawn: [B]."""
        room = np.full(len(slots), most, np.intp)
        if self.limit < np.inf:
            left = (self.limit - self._samples.take(slots)) // times
            room = np.minimum(room, left).astype(np.intp)
        return room

    def _weights(self, slots: Indices) -> npt.NDArray[np.float32]:
        """Importance weights of `slots` [B]: [B]. N and the sum cancel over the largest."""
        if self._tree is None or not len(slots):
            return np.ones(len(slots), np.float32)
        likely = self._tree.take(slots)
        weights: npt.NDArray[np.float32] = ((likely.min() / likely) ** self.beta).astype(np.float32)
        return weights
