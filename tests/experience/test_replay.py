from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from understudy.core.errors import ConfigError, InputError
from understudy.experience.replay import Replay

Kind = Literal["uniform", "prioritised"]


def filled(priorities: list[float], **options: float) -> Replay:
    replay = Replay(capacity=len(priorities), priority="prioritised", **options)
    replay.insert(len(priorities), now=0.0, priorities=np.array(priorities))
    return replay


# --- against a slow and obvious one --------------------------------------------------------------


@dataclass
class Item:
    """One item of the list below."""

    slot: int
    at: float
    samples: int


class Plain:
    """What a replay promises, with a list, oldest first."""

    def __init__(self, capacity: int, limit: float, max_age_s: float) -> None:
        self.capacity, self.limit, self.max_age_s = capacity, limit, max_age_s
        self.items: list[Item] = []
        self.now = float("-inf")

    def insert(self, slots: list[int], samples: int) -> None:
        """Slots are the replay's choice; who is held is not."""
        wanted = len(slots) if samples < self.limit else 0
        held = min(wanted, self.capacity)
        assert [slot < 0 for slot in slots] == [True] * (len(slots) - held) + [False] * held
        room = max(0, self.capacity - held)
        self.items = self.items[max(0, len(self.items) - room) :]
        self.items += [Item(slot, self.now, samples) for slot in slots if slot >= 0]
        assert len({one.slot for one in self.items}) == len(self.items)

    def expire(self) -> None:
        self.items = [one for one in self.items if self.now - one.at <= self.max_age_s]

    def room(self, item: Item, times: int, most: int) -> int:
        return int(min(most, (self.limit - item.samples) // times))

    def sample(self, slots: list[int], count: int, times: int, distinct: bool) -> None:
        most = 1 if distinct else count
        by_slot = {one.slot: one for one in self.items}
        drawn = Counter(slots)
        for slot, number in drawn.items():
            assert number <= self.room(by_slot[slot], times, most)
        ready = sum(self.room(one, times, most) for one in self.items)
        assert len(slots) == min(count, ready)
        for slot, number in drawn.items():
            by_slot[slot].samples += number * times
        self.items = [one for one in self.items if one.samples < self.limit]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.integers(0, 9), st.integers(0, 3)),
        st.tuples(st.just("sample"), st.integers(0, 9), st.integers(1, 3)),
        st.tuples(st.just("distinct"), st.integers(0, 9), st.integers(1, 3)),
        st.tuples(st.just("discard"), st.integers(-1, 7), st.integers(-1, 7)),
        st.tuples(st.just("reprioritise"), st.integers(-1, 7), st.integers(-1, 7)),
        st.tuples(st.just("wait"), st.integers(-2, 6), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=200)
@given(
    kind=st.sampled_from(["uniform", "prioritised"]),
    capacity=st.integers(0, 8),
    limit=st.sampled_from([1, 2, 5, float("inf")]),
    max_age_s=st.sampled_from([3.0, float("inf")]),
    steps=STEPS,
)
@example(
    kind="uniform", capacity=1, limit=1, max_age_s=3.0,
    steps=[("insert", 1, 0), ("wait", 4, 0), ("wait", -1, 0), ("sample", 1, 1)],
)  # fmt: skip
@example(  # a clock that begins below 0
    kind="uniform", capacity=1, limit=1, max_age_s=3.0,
    steps=[("wait", -1, 0), ("insert", 1, 0), ("wait", 4, 0), ("sample", 1, 1)],
)  # fmt: skip
def test_behaves_like_a_list(
    kind: Kind, capacity: int, limit: float, max_age_s: float, steps: list[tuple[str, int, int]]
) -> None:
    rng = np.random.default_rng(0)
    replay = Replay(capacity=capacity, limit=limit, priority=kind, max_age_s=max_age_s)
    plain = Plain(capacity, limit, max_age_s)
    now, inserted, sampled = 0.0, 0, 0
    for verb, first, second in steps:
        known = np.array([slot for slot in (first, second) if slot < capacity], np.intp)
        if verb in ("insert", "sample", "distinct"):  # who is not told the time does not know it
            plain.now = max(plain.now, now)  # a clock may be set back: time stands still then
        if verb == "insert":
            priorities = 10.0 ** rng.integers(-3, 30, first)
            slots = replay.insert(first, now=now, priorities=priorities, samples=second)
            plain.insert(slots.tolist(), second)
            inserted, sampled = inserted + first, sampled + first * second
        elif verb in ("sample", "distinct"):
            distinct = verb == "distinct"
            drawn = replay.sample(rng, first, now=now, times=second, distinct=distinct)
            plain.expire()
            plain.sample(drawn.slots.tolist(), first, second, distinct)
            assert len(drawn.weights) == len(drawn.slots)
            sampled += second * len(drawn.slots)
        elif verb == "discard":
            replay.discard(known)
            plain.items = [one for one in plain.items if one.slot not in known.tolist()]
        elif verb == "reprioritise":  # whoever has left does not come back by it
            replay.reprioritise(known, rng.random(len(known)))
        else:
            now += first
        held = replay.slots()
        assert held.tolist() == [one.slot for one in plain.items]
        assert replay.samples_of(held).tolist() == [one.samples for one in plain.items]
        assert len(replay) == len(plain.items)
        assert replay.holds(np.arange(capacity)).sum() == len(replay)
    assert (replay.inserted, replay.sampled) == (inserted, sampled)
    assert replay.samples_per_insert == sampled / max(inserted, 1)


# --- how likely each is --------------------------------------------------------------------------


def shares(
    replay: Replay, *, batches: int, count: int, distinct: bool = False
) -> npt.NDArray[np.float64]:
    """How often each slot was drawn, over all batches, a batch."""
    rng = np.random.default_rng(1)
    drawn = [replay.sample(rng, count, now=0.0, distinct=distinct).slots for _ in range(batches)]
    return np.bincount(np.concatenate(drawn), minlength=replay.capacity) / batches


def test_samples_follow_priorities_to_the_power_of_alpha() -> None:
    priorities = [0.5, 1.0, 4.0, 9.0, 0.0]
    replay = filled(priorities, alpha=0.5)
    expected = np.sqrt(np.array(priorities) + 1e-6)
    np.testing.assert_allclose(
        shares(replay, batches=5000, count=8) / 8, expected / expected.sum(), atol=0.005
    )
    replay.reprioritise(np.array([3, 0]), np.array([0.0, 16.0]))
    expected = np.sqrt(np.array([16.0, 1.0, 4.0, 0.0, 0.0]) + 1e-6)
    np.testing.assert_allclose(
        shares(replay, batches=5000, count=8) / 8, expected / expected.sum(), atol=0.005
    )


def test_uniform_samples_are_uniform_where_items_have_left() -> None:
    replay = Replay(capacity=10)
    replay.insert(10, now=0.0)
    replay.discard(np.array([0, 4, 9]))
    expected = np.full(10, 1 / 7)
    expected[[0, 4, 9]] = 0.0
    np.testing.assert_allclose(shares(replay, batches=4000, count=8) / 8, expected, atol=0.006)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_distinct_samples_are_drawn_one_after_the_other(alpha: float) -> None:
    weights = np.array([1.0, 2.0, 5.0]) ** alpha
    chance = weights / weights.sum()
    others = [(1, 2), (0, 2), (0, 1)]
    either = chance + [
        sum(chance[o] * chance[i] / (1 - chance[o]) for o in others[i]) for i in range(3)
    ]
    drawn = shares(filled([1.0, 2.0, 5.0], alpha=alpha), batches=8000, count=2, distinct=True)
    np.testing.assert_allclose(drawn, either, atol=0.018)


def test_a_limit_does_not_change_who_is_likely() -> None:
    free = filled([1.0, 2.0, 4.0, 8.0], alpha=1.0)
    bounded = filled([1.0, 2.0, 4.0, 8.0], alpha=1.0, limit=1e6)
    np.testing.assert_allclose(
        shares(bounded, batches=5000, count=6), shares(free, batches=5000, count=6), atol=0.06
    )


def test_all_can_be_drawn_however_unlikely() -> None:
    replay = filled([1e-3, 1e38, 1.0, 1e12], alpha=1.0)
    drawn = replay.sample(np.random.default_rng(0), 9, now=0.0, distinct=True)
    assert sorted(drawn.slots.tolist()) == [0, 1, 2, 3]


def test_weights_undo_the_preference() -> None:
    replay = filled([1.0, 2.0, 4.0, 8.0], alpha=0.6, beta=0.4)
    drawn = replay.sample(np.random.default_rng(0), 16, now=0.0)
    likely = (2.0 ** np.arange(4) + 1e-6) ** 0.6
    weights = (4 * likely / likely.sum())[drawn.slots] ** -0.4
    np.testing.assert_allclose(drawn.weights, weights / weights.max(), rtol=1e-6)
    assert drawn.weights.dtype == np.float32
    replay.beta = 0.0
    assert (replay.sample(np.random.default_rng(0), 16, now=0.0).weights == 1.0).all()


def test_uniform_weights_are_one() -> None:
    replay = Replay(capacity=4)
    replay.insert(3, now=0.0)
    assert replay.sample(np.random.default_rng(0), 8, now=0.0).weights.tolist() == [1.0] * 8


def test_new_items_are_as_likely_as_the_likeliest_so_far() -> None:
    replay = filled([1.0, 6.0], alpha=1.0)
    slot = replay.insert(1, now=0.0)
    assert replay.priorities_of(slot) == pytest.approx([6.0])


def test_the_same_seed_draws_the_same() -> None:
    one, other = (
        filled([1.0, 2.0, 3.0]).sample(np.random.default_rng(4), 50, now=0.0) for _ in range(2)
    )
    np.testing.assert_array_equal(one.slots, other.slots)


# --- how much ------------------------------------------------------------------------------------


def test_the_allowance_is_what_the_ratio_leaves() -> None:
    replay = Replay(capacity=10)
    assert replay.allowance(4.0) == 0
    replay.insert(5, now=0.0)
    assert replay.allowance(1.5) == 7
    replay.sample(np.random.default_rng(0), 6, now=0.0)
    assert replay.allowance(1.5) == 1
    replay.sample(np.random.default_rng(0), 6, now=0.0)
    assert replay.allowance(1.5) == 0


@pytest.mark.parametrize("kind", ["uniform", "prioritised"])
def test_what_is_too_old_is_gone(kind: Kind) -> None:
    replay = Replay(capacity=1000, max_age_s=10.0, priority=kind)
    for second in range(20):
        replay.insert(30, now=float(second))
    drawn = replay.sample(np.random.default_rng(0), 256, now=19.0)
    assert len(replay) == 11 * 30  # those of second 9 are 10 s old, and that is not too old
    assert replay.holds(drawn.slots).all()
    assert len(replay.sample(np.random.default_rng(0), 8, now=40.0).slots) == len(replay) == 0


def test_a_million_entries_take_what_is_said() -> None:
    assert Replay(capacity=1_000_000).nbytes == pytest.approx(36e6, rel=0.01)
    assert Replay(capacity=1_000_000, priority="prioritised").nbytes == pytest.approx(
        53e6, rel=0.01
    )


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0, 1e300])
def test_priorities_that_cannot_be_are_refused(wrong: float) -> None:
    replay = filled([1.0, 2.0], alpha=0.6)
    with pytest.raises(InputError, match=r"priorities: expected numbers from 0 to 1e\+200"):
        replay.reprioritise(np.array([0, 1]), np.array([1.0, wrong]))
    with pytest.raises(InputError, match=r"priorities: expected numbers from 0 to 1e\+200"):
        replay.insert(1, now=0.0, priorities=np.array([wrong]))
    assert replay.inserted == len(replay) == 2
    with pytest.raises(InputError, match=r"priorities: expected shape \(2,\), got \(1,\)"):
        replay.insert(2, now=0.0, priorities=np.ones(1))
    with pytest.raises(ConfigError, match="priority: expected uniform or prioritised, got 'best'"):
        Replay(capacity=1, priority="best")  # type: ignore[arg-type]


def test_what_left_leaves_no_allowance_to_those_that_stay() -> None:
    replay = Replay(capacity=4)
    replay.insert(10, now=0.0)  # six are never held
    replay.insert(2, now=0.0, samples=3)
    assert replay.allowance(2.0) == 2 * 12 - 6
    assert replay.allowance_of_held(2.0) == 2 * 4 - 6
    replay.discard(replay.slots()[-2:])  # those that were sampled
    assert replay.allowance_of_held(2.0) == 2 * 2
    replay.sample(np.random.default_rng(0), 2, now=0.0, times=9)
    assert replay.allowance_of_held(2.0) == 0
