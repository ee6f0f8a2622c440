"""Who is met next is a function of the league, the seats and a counted draw."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from arena.makers import GAMES, GROUPS, WEIGHTS, arena, mix_of

from understudy.arena.mix import Share
from understudy.arena.results import Result
from understudy.core.clock import SystemClock
from understudy.core.config import LeagueConfig
from understudy.league.league import League
from understudy.league.ratings import Rating
from understudy.telemetry import events
from understudy.telemetry.journal import Journal, Reader
from understudy.training.snapshot_opponents import OpponentState, SnapshotOpponents

QUIET = np.zeros(GROUPS, np.int32)
STINT = 2
FULL_STINT = STINT * GAMES // GROUPS
"""Matches of a whole group."""


class Room:
    """A league, an arena that never plays, and what is between them."""

    def __init__(self, root: Path, *, seed: int = 0, config: LeagueConfig | None = None) -> None:
        self.config = config or LeagueConfig(save_freq=100, stint=STINT, sampler="random")
        self.root, self.arena = root, arena(stint=self.config.stint)
        self.league = League(
            self.config, root / "league", self.arena.trainer.spec, {"rest": Rating(10.0, 1.0)}
        )
        (root / "journal").mkdir(parents=True, exist_ok=True)
        journal = Journal(root / "journal", "train", SystemClock())
        self.opponents = SnapshotOpponents(self.league, self.arena, journal, seed=seed)

    def snapshots(self, *steps: int) -> None:
        for one in steps:
            self.league.offer(one, self.arena.trainer.weights())

    def turns(self, number: int) -> list[tuple[str, ...]]:
        """Who sits where after each of so many stints."""
        seen = []
        for _ in range(number):
            self.opponents.assign()
            self.arena.snapshots.settle(QUIET)
            seen.append(tuple(self.arena.snapshots.met))
            self.arena.snapshots.note(np.full(GROUPS, FULL_STINT))
        return seen

    def journal(self) -> list[events.Event]:
        return [entry.e for entry in Reader(self.root / "journal").new()]


def result(wins: int, losses: int) -> Result:
    return Result(started=wins + losses, wins=wins, draws=0, losses=losses, frames=9, returns=0.0,
                  terms={}, measures={})  # fmt: skip


def flat(turns: Sequence[tuple[str, ...]]) -> set[str]:
    return {name for turn in turns for name in turn}


def test_nobody_sits_down_before_there_is_a_snapshot(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room.turns(2) == [("", "")] * 2
    assert room.opponents.state().draws == 2 * GROUPS, "draws are counted, whoever they fall on"


def test_draws_are_a_function_of_the_seed_and_their_number(tmp_path: Path) -> None:
    steps = tuple(range(100, 1100, 100))
    rooms = [Room(tmp_path / str(index), seed=seed) for index, seed in enumerate((0, 0, 1))]
    for room in rooms:
        room.snapshots(*steps)
    one, same, other = (room.turns(8) for room in rooms)
    assert one == same != other
    assert len(flat(one)) > 5, "whoever is drawn by chance is not always the same"


def test_going_on_draws_as_if_nothing_had_stopped(tmp_path: Path) -> None:
    steps = tuple(range(100, 1100, 100))
    whole, first = Room(tmp_path / "whole"), Room(tmp_path / "parts")
    for room in (whole, first):
        room.snapshots(*steps)
    expected = whole.turns(8)
    begun = first.turns(3)
    kept = msgspec.json.decode(msgspec.json.encode(first.opponents.state()), type=OpponentState)
    again = Room(tmp_path / "parts")
    again.league.restore(first.league.encode())
    again.opponents.restore(kept)
    assert again.opponents.state() == first.opponents.state() == kept
    assert begun + again.turns(5) == expected
    assert again.opponents.state() == whole.opponents.state()


def test_a_group_keeps_its_snapshot_for_a_stint(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.snapshots(100, 200, 300)
    room.opponents.assign()
    room.arena.snapshots.settle(QUIET)
    before = list(room.arena.snapshots.met)
    first = np.array([FULL_STINT, FULL_STINT // GROUPS])
    room.arena.snapshots.note(first - 1)
    draws = room.opponents.state().draws
    room.opponents.assign()
    assert room.opponents.state().draws == draws and room.arena.snapshots.met == before
    room.arena.snapshots.note(np.array([1, 0]))
    room.opponents.assign()
    assert room.opponents.state().draws == draws + 1, "only the group that has played enough draws"


def test_nobody_is_drawn_for_a_stage_without_snapshots(tmp_path: Path) -> None:
    """Or the first snapshot of all would sit there until a later stage has beaten it for long."""
    room = Room(tmp_path)
    mix = room.arena.mix
    room.arena.order(mix_of("rest=1,pull=1"), WEIGHTS)
    room.snapshots(100)
    assert room.turns(2) == [("", "")] * 2
    room.snapshots(*range(200, 1100, 100))
    room.arena.order(mix, WEIGHTS)
    assert len(flat(room.turns(1))) == GROUPS, "drawn from all that there are by then"


def test_a_run_meets_most_of_its_league(tmp_path: Path) -> None:
    """What is drawn is met, group by group, and not the same ones for most of the time."""
    room = Room(tmp_path, config=LeagueConfig(save_freq=100, stint=1, sampler="random"))
    room.snapshots(*range(100, 1300, 100))
    met: dict[str, int] = {}
    changes: list[list[bool]] = []
    for _ in range(120):
        before = list(room.arena.snapshots.met)
        for name, one in room.arena.iterate().results.items():
            met[name] = met.get(name, 0) + one.started
        room.opponents.assign()
        changes.append([a != b for a, b in zip(before, room.arena.snapshots.met, strict=True)])
    own = {name: count for name, count in met.items() if name.startswith("step-")}
    assert len(own) >= 9, f"{len(own)} of 12 were met"
    assert max(own.values()) <= 0.3 * sum(own.values())
    alone, together = (sum(sum(row) == n for row in changes) for n in (1, GROUPS))
    assert alone > together, "groups change together"


def test_the_same_snapshot_again_just_stays(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.snapshots(100)
    assert set(room.turns(3)) == {("step-100", "step-100")}
    room.opponents.assign()
    assert not room.arena.snapshots.waiting and room.arena.snapshots.free.all(), "no group waits"
    assert room.arena.snapshots.begun == [0, 0]


def test_one_that_left_the_pool_is_not_taken_up_again(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.snapshots(100)
    room.turns(1)
    kept = room.opponents.state()
    again = Room(tmp_path / "other")
    again.snapshots(200)
    again.opponents.restore(kept)
    assert again.arena.snapshots.met == ["", ""]
    assert again.turns(1) == [("step-200", "step-200")]


def test_a_snapshot_is_offered_when_it_is_due_and_told_of(tmp_path: Path) -> None:
    room = Room(tmp_path, config=LeagueConfig(save_freq=100, max_saved=2))
    assert room.opponents.offer_if_due(99) is None
    assert [bool(room.opponents.offer_if_due(steps)) for steps in (128, 192, 256, 384)] == [
        True, False, True, True
    ]  # fmt: skip
    told = [one for one in room.journal() if isinstance(one, events.SnapshotTaken)]
    assert [(one.name, one.pool) for one in told] == [
        ("step-128", 1), ("step-256", 2), ("step-384", 2)
    ]  # fmt: skip
    assert "step-256 left" in told[-1].reason and room.league.names == ["step-128", "step-384"]


def test_selective_leagues_keep_only_what_is_surely_better(tmp_path: Path) -> None:
    room = Room(tmp_path, config=LeagueConfig(save_freq=100, mode="selective"))
    room.opponents.note({"rest": result(20, 20)}, steps=100)
    room.opponents.offer_if_due(100)
    room.opponents.note({"rest": result(2, 30)}, steps=200)
    worse = room.opponents.offer_if_due(200)
    assert worse is not None and not worse.kept
    for step in range(300, 1300, 100):
        room.opponents.note({"rest": result(38, 2)}, steps=step)
    better = room.opponents.offer_if_due(1300)
    assert better is not None and better.kept and room.league.names == ["step-100", "step-1300"]
    told = [one for one in room.journal() if isinstance(one, events.SnapshotTaken)]
    assert [one.kept for one in told] == [True, False, True]
    assert "not surely above step-100" in told[1].reason


def test_results_move_the_ratings_and_are_told(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.snapshots(100)
    room.opponents.note({"rest": result(9, 1), "step-100": result(0, 4)}, steps=64)
    (told,) = [one for one in room.journal() if isinstance(one, events.LearnerRated)]
    rating = room.league.learner
    assert (told.steps, told.mu, told.sigma) == (64, rating.mu, rating.sigma) != (64, 25.0, 20.0)
    assert room.league.rating("rest") == Rating(10.0, 1.0), "bots hold the scale"
    assert room.league.rating("step-100").mu > room.league.learner.mu


def test_one_opponent_for_good(tmp_path: Path) -> None:
    room = Room(tmp_path)
    params = {
        key: np.asarray(one) + 1.0 for key, one in room.arena.trainer.weights().params.items()
    }
    room.opponents.assign_all("victim", params)
    assert room.turns(3) == [("victim", "victim")] * 3
    for key, value in room.arena.snapshots.params.items():
        np.testing.assert_array_equal(np.asarray(value)[1], params[key])


@pytest.mark.parametrize("seed", [2**31 + 5, -1])
def test_any_seed_will_do(tmp_path: Path, seed: int) -> None:
    room = Room(tmp_path, seed=seed)
    room.snapshots(100, 200)
    assert flat(room.turns(2)) <= {"step-100", "step-200"}


def test_what_was_owed_under_another_mix_is_not_paid_back(tmp_path: Path) -> None:
    """A run that goes on in another stage, or with other opponents, begins to count anew."""
    room = Room(tmp_path)
    room.arena.share = Share(20_000, 0)
    kept = room.opponents.state()
    assert kept.started == (20_000, 0) and kept.mix == room.arena.mix.as_dict()
    same, other = Room(tmp_path / "same"), Room(tmp_path / "other")
    other.arena.order(mix_of("rest=1,self=1"), WEIGHTS)
    for one in (same, other):
        one.opponents.restore(kept)
    assert (same.arena.share, other.arena.share) == (Share(20_000, 0), Share())
