"""A rival never changes in the middle of a match, and waiting for that comes to an end."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.arena.arena import Arena
from understudy.arena.rivals import Rivals, named
from understudy.core.arrays import NDArray

from .makers import GAMES, GROUPS, arena

SHAPE = {"w": np.zeros((2, 3), np.float32)}


def params(version: int) -> dict[str, NDArray]:
    return {"w": np.full((2, 3), version, np.float32)}


def seated(rivals: Rivals) -> list[float]:
    return [float(value) for value in np.asarray(rivals.params["w"])[:, 0, 0]]


def test_a_version_is_replaced_when_nobody_is_in_a_match_against_it() -> None:
    rivals = Rivals(2, SHAPE)
    assert list(rivals.free) == [False, False]
    rivals.offer(3, params(3))
    assert list(rivals.free) == [False, False], "nothing is seated yet"
    rivals.settle(np.array([0, 0]))
    assert (rivals.met, seated(rivals), list(rivals.free)) == ([3, 0], [3, 0], [True, False])
    rivals.offer(5, params(5))
    rivals.settle(np.array([4, 0]))
    assert (rivals.met, list(rivals.free)) == ([3, 5], [True, True])
    rivals.offer(7, params(7))
    for meetings in (4, 1):
        rivals.settle(np.array([meetings, 2]))
        assert (rivals.met, seated(rivals)) == ([3, 5], [3, 5])
        assert list(rivals.free) == [False, True], "who waits is not met anew"
    rivals.settle(np.array([0, 2]))
    assert (rivals.met, seated(rivals), list(rivals.free)) == ([7, 5], [7, 5], [True, True])


def test_a_newer_offer_takes_the_place_of_one_that_waits() -> None:
    rivals = Rivals(1, SHAPE)
    rivals.offer(1, params(1))
    rivals.offer(2, params(2))
    rivals.settle(np.array([0]))
    assert (rivals.met, seated(rivals), rivals.waiting) == ([2], [2], {})


def test_counters_bring_everything_back() -> None:
    rivals = Rivals(3, SHAPE)
    for version, meetings in ((2, [0, 0, 0]), (4, [0, 0, 0]), (6, [1, 1, 1]), (8, [1, 1, 1])):
        rivals.offer(version, params(version))
        rivals.settle(np.array(meetings))
    counters = rivals.counters()
    assert named(counters) == {2, 4, 6, 8}
    again = Rivals(3, SHAPE)
    again.restore(counters, {version: params(version) for version in named(counters)})
    assert again.counters() == counters
    assert again.met == [2, 4, 0] and sorted(again.waiting) == [0, 2]
    assert seated(again) == seated(rivals) and list(again.free) == list(rivals.free)
    for one in (rivals, again):
        one.settle(np.zeros(3, np.int32))
        one.offer(9, params(9))
    assert again.counters() == rivals.counters() and seated(again) == seated(rivals)


def test_no_counters_are_nobody() -> None:
    rivals = Rivals(2, SHAPE)
    rivals.restore({"steps": 7, "iterations": 1}, {})
    assert (rivals.met, rivals.waiting, named({"steps": 7, "rival.next": 1})) == ([0, 0], {}, set())


def test_a_run_may_go_on_with_fewer_groups() -> None:
    rivals = Rivals(3, SHAPE)
    for version in (1, 2):
        rivals.offer(version, params(version))
        rivals.settle(np.zeros(3, np.int32))
    fewer = Rivals(2, SHAPE)
    fewer.restore(rivals.counters(), {1: params(1), 2: params(2)})
    fewer.offer(3, params(3))
    fewer.settle(np.zeros(2, np.int32))
    assert fewer.met == [3, 2]


def in_matches(arena: Arena) -> list[int]:
    """How many slots of each group are in a match against its version."""
    opponents = np.asarray(arena._slots.opponent).reshape(GROUPS, GAMES // GROUPS)
    return [int(count) for count in (opponents == arena.plan.opponents - 1).sum(1)]


@pytest.fixture(scope="module")
def running() -> Arena:
    return arena()


def test_the_arena_replaces_its_rivals_between_matches(running: Arena) -> None:
    """From nobody to the first version, and from that to the next, group by group."""
    assert running.iterate().results["self"].started == 0
    assert in_matches(running) == [0, 0]
    running.rivals.offer(1, running.trainer.weights().params)
    assert running.iterate().results["self"].started == 0, "it is seated after this iteration"
    assert running.rivals.met == [1, 0]
    while not in_matches(running)[0]:
        running.iterate()
    assert in_matches(running)[1] == 0, "only the first group has somebody to meet"
    running.rivals.offer(2, running.trainer.weights().params)
    running.rivals.offer(3, running.trainer.weights().params)
    before = {name: np.asarray(value)[0] for name, value in running.rivals.params.items()}
    waited = 0
    while running.rivals.met[0] == 1:
        busy = in_matches(running)[0]
        running.iterate()
        assert in_matches(running)[0] <= busy, "a slot met a version that is about to go"
        if in_matches(running)[0]:
            waited += 1
            assert running.rivals.met[0] == 1
            for name, value in running.rivals.params.items():
                np.testing.assert_array_equal(np.asarray(value)[0], before[name])
        assert waited < 10
    assert running.rivals.met == [3, 2]
    met = [running.iterate().results["self"] for _ in range(6)]
    assert sum(one.started for one in met) > 0
    assert sum(one.wins + one.draws + one.losses for one in met) > 0
