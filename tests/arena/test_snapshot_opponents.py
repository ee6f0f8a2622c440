"""A rival never changes in the middle of a match, and waiting for that comes to an end."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.arena.arena import Arena
from understudy.arena.mix import Share
from understudy.arena.results import Iteration, Result
from understudy.arena.snapshot_opponents import SnapshotAssignment, SnapshotSides
from understudy.core.arrays import NDArray

from .makers import GAMES, GROUPS, WEIGHTS, arena, mix_of

SHAPE = {"w": np.zeros((2, 3), np.float32)}


def params(number: int) -> dict[str, NDArray]:
    return {"w": np.full((2, 3), number, np.float32)}


def offer(snapshots: SnapshotSides, group: int, number: int) -> None:
    snapshots.offer(group, f"step-{number}", lambda: params(number))


def load(name: str) -> dict[str, NDArray]:
    return params(int(name.removeprefix("step-")))


def seated(snapshots: SnapshotSides) -> list[float]:
    return [float(value) for value in np.asarray(snapshots.params["w"])[:, 0, 0]]


def test_a_snapshot_is_replaced_when_nobody_is_in_a_match_against_it() -> None:
    snapshots = SnapshotSides(2, SHAPE, stint=4)
    assert list(snapshots.free) == [False, False]
    offer(snapshots, 0, 3)
    assert (snapshots.met, seated(snapshots)) == (["step-3", ""], [3, 0])
    assert list(snapshots.free) == [True, False]
    offer(snapshots, 1, 5)
    assert (snapshots.met, list(snapshots.free)) == (["step-3", "step-5"], [True, True])
    offer(snapshots, 0, 7)
    for meetings in (4, 1):
        snapshots.settle(np.array([meetings, 2]))
        assert (snapshots.met, seated(snapshots)) == (["step-3", "step-5"], [3, 5])
        assert list(snapshots.free) == [False, True], "who waits is not met anew"
    assert snapshots.named() == {"step-3", "step-5", "step-7"}
    snapshots.settle(np.array([0, 2]))
    assert (snapshots.met, seated(snapshots)) == (["step-7", "step-5"], [7, 5])
    assert list(snapshots.free) == [True, True]


def test_a_newer_offer_takes_the_place_of_one_that_waits() -> None:
    snapshots = SnapshotSides(1, SHAPE, stint=4)
    for number in (1, 2, 3):
        offer(snapshots, 0, number)
    assert snapshots.met == ["step-1"]
    snapshots.settle(np.array([0]))
    assert (snapshots.met, seated(snapshots), snapshots.waiting) == (["step-3"], [3], {})


def test_a_group_asks_for_another_after_a_stint() -> None:
    snapshots = SnapshotSides(2, SHAPE, stint=4)
    assert snapshots.groups_due() == [0, 1], "nobody is met yet"
    for group in (0, 1):
        offer(snapshots, group, 4)
    assert snapshots.groups_due() == [], "somebody comes already"
    snapshots.settle(np.zeros(2, np.int32))
    snapshots.note(np.array([1, 1]))
    assert snapshots.groups_due() == []
    snapshots.note(np.array([1, 1]))
    assert snapshots.groups_due() == [1], (
        "first stints differ, so that groups do not change together"
    )
    offer(snapshots, 1, 4)
    assert snapshots.met == ["step-4", "step-4"] and not snapshots.waiting, (
        "the same one just stays"
    )
    snapshots.note(np.array([2, 3]))
    assert snapshots.groups_due() == [0], "every later stint is a whole one"
    offer(snapshots, 0, 5)
    snapshots.settle(np.zeros(2, np.int32))
    snapshots.note(np.array([3, 1]))
    assert snapshots.groups_due() == [1]


def test_seats_empty_themselves_while_no_snapshot_is_to_be_met() -> None:
    snapshots = SnapshotSides(2, SHAPE, stint=4)
    for group in (0, 1):
        offer(snapshots, group, 4)
    snapshots.settle(np.zeros(2, np.int32))
    offer(snapshots, 0, 5)
    snapshots.leave(np.array([3, 0]))
    assert snapshots.met == ["step-4", ""] and not snapshots.waiting, (
        "three are in a match against it"
    )
    snapshots.leave(np.array([0, 0]))
    assert (snapshots.met, snapshots.begun, snapshots.groups_due()) == (["", ""], [0, 0], [0, 1])


def test_a_seating_brings_everything_back() -> None:
    snapshots = SnapshotSides(3, SHAPE, stint=4)
    for group, number, meetings in ((0, 2, 0), (1, 4, 0), (0, 6, 1), (2, 8, 1)):
        offer(snapshots, group, number)
        snapshots.settle(np.full(3, meetings))
    snapshots.note(np.array([3, 1, 0]))
    again = SnapshotSides(3, SHAPE, stint=4)
    again.restore(snapshots.assignment(), load)
    assert again.assignment() == snapshots.assignment()
    assert again.met == ["step-2", "step-4", "step-8"] and sorted(again.waiting) == [0]
    assert seated(again) == seated(snapshots) and list(again.free) == list(snapshots.free)
    for one in (snapshots, again):
        one.settle(np.zeros(3, np.int32))
        offer(one, 1, 9)
    assert again.assignment() == snapshots.assignment() and seated(again) == seated(snapshots)


def test_whoever_is_gone_is_nobody_again() -> None:
    snapshots = SnapshotSides(2, SHAPE, stint=4)
    snapshots.restore(SnapshotAssignment(("step-1", "step-2"), ("", "step-3"), (5, 6)),
                   lambda name: load(name) if name == "step-2" else None)  # fmt: skip
    assert (snapshots.met, snapshots.begun, snapshots.waiting) == (["", "step-2"], [0, 6], {})
    snapshots.restore(SnapshotAssignment(), load)
    assert snapshots.met == ["", "step-2"], "an older version says nothing about seats"


def test_a_run_may_go_on_with_fewer_groups() -> None:
    fewer = SnapshotSides(2, SHAPE, stint=4)
    fewer.restore(SnapshotAssignment(("step-1", "step-2", "step-3"), ("", "", ""), (1, 2, 3)), load)
    assert fewer.met == ["step-1", "step-2"]


def in_matches(arena: Arena) -> list[int]:
    """How many columns of each group are in a match against its version."""
    opponents = np.asarray(arena.columns.kind).reshape(GROUPS, GAMES // GROUPS)
    return [int(count) for count in (opponents == len(arena.plan.bots)).sum(1)]


@pytest.fixture(scope="module")
def running() -> Arena:
    return arena()


def own(iteration: Iteration) -> dict[str, Result]:
    return {name: one for name, one in iteration.results.items() if name.startswith("step-")}


def test_the_arena_replaces_its_rivals_between_matches(running: Arena) -> None:
    """From nobody to the first snapshot, and from that to the next, group by group."""

    def now() -> dict[str, NDArray]:
        return dict(running.trainer.weights().params)

    assert own(running.iterate()) == {}
    assert in_matches(running) == [0, 0]
    running.snapshots.offer(0, "step-1", now)
    assert running.snapshots.met == ["step-1", ""]
    while not in_matches(running)[0]:
        running.iterate()
    assert in_matches(running)[1] == 0, "only the first group has somebody to meet"
    running.snapshots.offer(0, "step-3", now)
    running.snapshots.offer(1, "step-2", now)
    before = {name: np.asarray(value)[0] for name, value in running.snapshots.params.items()}
    waited = 0
    while running.snapshots.met[0] == "step-1":
        busy = in_matches(running)[0]
        running.iterate()
        assert in_matches(running)[0] <= busy, "a column met a snapshot that is about to go"
        if in_matches(running)[0]:
            waited += 1
            assert running.snapshots.met[0] == "step-1"
            for name, value in running.snapshots.params.items():
                np.testing.assert_array_equal(np.asarray(value)[0], before[name])
        assert waited < 10
    assert running.snapshots.met == ["step-3", "step-2"]
    iterations = [running.iterate() for _ in range(8)]
    for name in ("step-2", "step-3"):
        met = [own(one)[name] for one in iterations]
        assert sum(one.started for one in met) > 0
        assert sum(one.matches for one in met) > 0
        assert sum(one.started for one in met) == sum(
            result.started for one in iterations for key, result in own(one).items() if key == name
        )
    told = [match for one in iterations for match in one.ended]
    assert len(told) == sum(one.matches for one in iterations)
    assert {"step-2", "step-3"} <= {match.opponent for match in told}


def test_a_mix_without_itself_leaves_no_old_snapshot_for_the_next_one(running: Arena) -> None:
    mix, weights = running.mix, running.trainer.weights().params
    for group in (0, 1):
        running.snapshots.offer(group, "step-8", lambda: weights)
    for _ in range(20):
        running.iterate()
    met = list(running.snapshots.met)
    assert met == ["step-8", "step-8"]
    while not all(in_matches(running)):
        running.iterate()
    running.order(mix_of("rest=1,pull=1"), WEIGHTS)
    for _ in range(20):
        busy = in_matches(running)
        kept = [met[group] if busy[group] else "" for group in range(GROUPS)]
        assert [
            now if busy[group] else "" for group, now in enumerate(running.snapshots.met)
        ] == kept
        running.iterate()
    assert busy == [0, 0] and running.snapshots.met == ["", ""]
    running.order(mix, WEIGHTS)


def test_two_groups_that_meet_one_snapshot_are_told_of_together(running: Arena) -> None:
    weights = running.trainer.weights().params
    for group in (0, 1):
        running.snapshots.offer(group, "step-9", lambda: weights)
    while running.snapshots.met != ["step-9", "step-9"]:
        running.iterate()
    begun = list(running.snapshots.begun)
    results = own(running.iterate())
    assert list(results) == ["step-9"]
    assert results["step-9"].started == sum(running.snapshots.begun) - sum(begun)


def test_the_share_of_snapshots_is_kept_although_some_wait() -> None:
    """Nobody meets a snapshot that is about to go; what is missed is made up for."""
    share, target, games = Share(), 0.7, 40
    rng = np.random.default_rng(0)
    for step in range(400):
        free = step % 4 != 0  # a quarter of the time nobody may be met
        owed = share.owed(target, ahead=games) if free else 0.0
        began = int(rng.integers(1, 5))
        share = share.after(began, int((rng.random(began) < owed).sum()))
    assert share.own / share.started == pytest.approx(target, abs=0.02)
    assert Share().owed(target, ahead=games) == target
    assert Share(10, 10).owed(0.0, ahead=games) == 0.0
    assert Share(1000, 0).owed(target, ahead=games) == 1.0
