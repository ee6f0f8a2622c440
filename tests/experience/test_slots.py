from __future__ import annotations

import numpy as np

from understudy.experience.slots import Slots


def test_the_order_survives_many_rounds_of_early_leavers() -> None:
    rng = np.random.default_rng(5)
    slots = Slots(100)
    order: list[int] = []
    for round_ in range(500):  # numbers of arrival outgrow the queue many times over
        leaving = slots.oldest(max(0, slots.count + 7 - 100))
        assert leaving.tolist() == order[: len(leaving)]
        slots.leave(leaving)
        order = order[len(leaving) :] + slots.enter(7, now=float(round_)).tolist()
        gone = rng.choice(order, size=min(int(rng.integers(9)), len(order)), replace=False)
        slots.leave(gone)
        order = [slot for slot in order if slot not in gone.tolist()]
        assert slots.by_age().tolist() == order
        assert sorted(slots.held().tolist()) == sorted(order)
        assert slots.holds(np.arange(100)).sum() == slots.count == len(order)


def test_those_before_a_time_are_found_behind_gaps() -> None:
    slots = Slots(1000)
    for second in range(20):
        slots.enter(50, now=float(second))
    slots.leave(slots.by_age()[:420])  # all before second 8 and most of that
    assert slots.older_than(8.0).tolist() == []
    assert slots.older_than(10.0).tolist() == slots.by_age()[:80].tolist()
    assert len(slots.older_than(99.0)) == slots.count == 580


def test_every_held_slot_is_drawn_and_no_other() -> None:
    slots = Slots(50)
    slots.enter(40, now=0.0)
    slots.leave(np.arange(0, 40, 2))
    drawn = slots.draw(np.random.default_rng(0), 2000)
    assert np.unique(drawn).tolist() == list(range(1, 40, 2))


def test_a_clock_that_is_set_back_stands_still() -> None:
    slots = Slots(4)
    slots.enter(1, now=9.0)
    slots.enter(1, now=3.0)
    assert slots.older_than(9.0).tolist() == []
    assert slots.latest(5.0) == 9.0
