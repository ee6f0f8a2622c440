from __future__ import annotations

from typing import Any

import numpy as np
from walk.toys import SPEC, START, SetClock

from understudy.learner.item_replay import ITEMS, SAMPLES, ItemReplay

from .toy_items import segment, settings


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


def test_totals_never_fall() -> None:
    held = replay(continuous__samples_per_insert=2.0)
    held.insert("a.npz", segment(1))
    assert held.ready(times=1) == 2
    held.remember({ITEMS: 100, SAMPLES: 203})
    assert held.totals == {ITEMS: 100, SAMPLES: 203}
    assert held.ready(times=1) == 0
    held.insert("b.npz", segment(2))
    assert held.ready(times=1) == 1, "4 more allowed, 3 too many before"
    held.remember({ITEMS: 1, SAMPLES: 1})
    assert held.totals == {ITEMS: 102, SAMPLES: 203}


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
