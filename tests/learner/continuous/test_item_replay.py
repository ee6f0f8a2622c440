from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from walk.toys import SPEC, START, SetClock

from learner.toy_items import segment, settings
from understudy.core.errors import ConfigError
from understudy.learner.continuous.item_replay import ITEMS, SAMPLES, ItemReplay


def replay(clock: SetClock | None = None, **values: Any) -> ItemReplay:
    return ItemReplay(SPEC, settings(**values), clock or SetClock())


def test_items_of_an_episode_share_their_count_rounded_up() -> None:
    held = replay()
    held.insert("a.npz", segment(1, length=5), samples=0)  # three items
    held.insert("b.npz", segment(2), samples=3)
    rng = np.random.default_rng(0)
    drawn = held.draw(rng, 4, times=2)
    assert len(set(drawn.slots)) == 4 and (drawn.weights == 1.0).all()
    of_a = int((drawn.items["obs"][:, 0, 1] == 1).sum())
    entries = {key: (entry.name, entry.samples) for key, entry in held.held.items()}
    assert entries == {
        "1": ("a.npz", -(-2 * of_a // 3)),
        "2": ("b.npz", 3 + (4 - of_a)),
    }
    assert held.totals == {ITEMS: 5, SAMPLES: 2 * 3 + 8}


def test_totals_are_those_of_the_last_version() -> None:
    held = replay(continuous__samples_per_insert=2.0)
    held.insert("a.npz", segment(1))
    assert held.ready(times=1) == 2
    held.remember({ITEMS: 100, SAMPLES: 203})
    assert held.totals == {ITEMS: 100, SAMPLES: 203}
    assert held.ready(times=1) == 0
    held.insert("b.npz", segment(2))
    assert held.ready(times=1) == 1, "4 more allowed, 3 too many before"


def test_counts_that_are_rounded_up_do_not_invent_samples_at_every_start() -> None:
    held = replay()
    held.insert("a.npz", segment(1, length=7))  # four items
    held.draw(np.random.default_rng(0), 1, times=1)
    totals = held.totals
    for _ in range(5):
        (entry,) = held.held.values()
        held = replay()
        held.insert("a.npz", segment(1, length=7), samples=entry.samples)
        held.remember(totals)
        assert held.totals == totals == {ITEMS: 4, SAMPLES: 1}
    foreign = replay()
    foreign.insert("a.npz", segment(1), samples=3)
    foreign.remember({})  # versions of a learner that did not count
    assert foreign.totals == {ITEMS: 2, SAMPLES: 6}


def test_age_is_that_of_the_segment_in_whatever_order_they_come() -> None:
    clock = SetClock()
    held = replay(clock, continuous__max_age_s=60.0)
    held.insert("new.npz", segment(1, finished_at=START))
    held.insert("old.npz", segment(2, finished_at=START - 30.0))
    clock.advance(31.0)
    assert list(held.held) == ["1"] and len(held) == 2
    clock.advance(30.0)
    assert held.ready(times=1) == 0 and held.held == {}
    assert not len(held.draw(np.random.default_rng(0), 4, times=1).slots)


def test_what_is_discarded_or_overwritten_is_not_held() -> None:
    held = replay(continuous__capacity=6)
    for number in range(4):
        held.insert(f"{number}.npz", segment(number))
    assert held.names() == ("1.npz", "2.npz", "3.npz")
    held.discard("2.npz")
    assert set(held.held) == {"1", "3"}
    np.testing.assert_array_equal(held.of(["3.npz", "2.npz"])["obs"][:, 0, 1], [3, 3])


def test_surprising_items_are_drawn_more_often_and_count_for_less() -> None:
    held = replay(continuous__priority="prioritised", continuous__beta=1.0)
    for number in range(20):
        held.insert(f"{number}.npz", segment(number, length=2))
    rng = np.random.default_rng(0)
    everything = held.draw(rng, 20, times=1)
    loud = everything.items["obs"][:, 0, 1] == 7
    held.reprioritise(everything.slots, np.where(loud, 100.0, 1.0))
    often = 0
    for _ in range(50):
        drawn = held.draw(rng, 2, times=1)
        here = drawn.items["obs"][:, 0, 1] == 7
        often += int(here.any())
        if here.any():
            assert drawn.weights[here][0] < 0.1 and drawn.weights[~here][0] == 1.0
    assert often > 25


def spent(held: ItemReplay) -> int:
    """Draw all that is allowed; how many samples that were."""
    rng, total = np.random.default_rng(0), 0
    while room := held.ready(times=2):
        total += 2 * len(held.draw(rng, room, times=2).slots)
    return total


def test_what_leaves_unsampled_leaves_its_samples_to_nobody() -> None:
    clock = SetClock()
    aged = replay(clock, continuous__max_age_s=60.0, continuous__samples_per_insert=8.0)
    for number in range(50):
        aged.insert(f"{number}.npz", segment(number))
    clock.advance(61.0)
    aged.insert("new.npz", segment(99, finished_at=clock.time()))
    assert aged.ready(times=1) == 2
    assert spent(aged) == 2 * 8
    full = replay(continuous__capacity=4, continuous__samples_per_insert=8.0)
    for number in range(50):
        full.insert(f"{number}.npz", segment(number))
    assert spent(full) == 4 * 8
    full.insert("again.npz", segment(99))
    assert spent(full) == 2 * 8, "those that stay have had theirs"


def test_what_no_policy_sampled_does_not_age() -> None:
    """The intake takes it in at any age; it would earn samples for others and get none."""
    clock = SetClock()
    held = replay(clock, continuous__max_age_s=60.0)
    ruled = segment(1, finished_at=START - 1e6)
    held.insert("rules.npz", replace(ruled, sampled=np.zeros(len(ruled), bool)))
    held.insert("old.npz", segment(2, finished_at=START - 61.0))
    clock.advance(1e6)
    assert held.ready(times=1) == 2 and held.names() == ("rules.npz",)


def test_a_replay_that_can_never_fill_a_batch_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"continuous\.capacity: expected at least .* = 2, got 1"):
        settings(continuous__capacity=1)
    with pytest.raises(ConfigError, match=r"continuous\.capacity: 8 items, sampled 2 times each"):
        replay(
            continuous__capacity=8, continuous__samples_per_insert=2.0,
            continuous__min_batch=4, learner__epochs=5,
        )  # fmt: skip
