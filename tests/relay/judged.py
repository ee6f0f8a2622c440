"""Machines that play by evidence, and the machine that judges them, over a store in a folder."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import msgspec
import numpy as np
from bot.minds import lively, publish
from promotion.runs import folded, records, summary
from walk.toys import episode, settings, spool_of

from relay.makers import Machine
from understudy.gates.promotion import roles
from understudy.gates.promotion.records import Assigned, Declared, Record, Resolved
from understudy.gates.promotion.roles import PromotionState
from understudy.promotion.log import OWN, PromotionLog
from understudy.promotion.promotion import Promotion
from understudy.registry.run_folder import RunFolder
from understudy.relay.stores import FolderStore, ObjectStore

SHARED = {
    "relay__poll_s": 0.05,
    "promotion__first_share": 0.5,
    "promotion__holdout": 0.1,
    "promotion__practice_share": 0.0,
    "promotion__first_matches": 0,
}
PLAYER = settings(**SHARED, promotion__judge="learner")
LEARNER = settings(**SHARED)
EVEN = {0: 0.5, 1: 0.5}


def player(root: Path, store: ObjectStore) -> Machine:
    return Machine(root, store, "player", PLAYER)


def judge(root: Path, store: ObjectStore) -> Machine:
    (root / "promotion").mkdir(parents=True)
    return Machine(root, store, "learner", LEARNER)


class Place(Protocol):
    """A machine that plays: its name in the store, and its run folder."""

    name: str
    folder: RunFolder


class Bot:
    """Plays matches by its machine's copy of the log, and wins with a chance for each version."""

    def __init__(self, machine: Machine, *, seed: int, rules: str = "rules") -> None:
        self.machine = machine
        self.chance = random.Random(seed)
        self.promotion = Promotion(machine.folder, problem=machine.problems.append)
        self.promotion.declare(rules=rules, score=None)

    def begin(self, uniform: float | None = None) -> tuple[int, Assigned]:
        self.promotion.follow()
        uniform = self.chance.random() if uniform is None else uniform
        return self.promotion.assign(uuid4().hex, {}, uniform)

    def play(self, matches: int, chances: dict[int, float] | None = None) -> None:
        for _ in range(matches):
            order, assigned = self.begin()
            won = self.chance.random() < (chances or {}).get(assigned.version, 0.2)
            if order:
                self.promotion.resolve(order, float(won), "finished")


class World:
    """Two machines that play, and one that judges."""

    def __init__(self, root: Path, stores: tuple[ObjectStore, ...] = ()) -> None:
        self.store = FolderStore("store", root / "store")
        first, second, third = stores or (self.store,) * 3
        self.players = [player(root / "player0", first), player(root / "player1", second)]
        self.learner = judge(root / "learner", third)
        self.bots = [Bot(one, seed=place) for place, one in enumerate(self.players)]

    def settle(self, looks: int = 3) -> None:
        """What every machine does by itself in the next seconds."""
        for _ in range(looks):
            for one in (*self.players, self.learner, *self.players):
                one.look()

    def publish(self, version: int) -> None:
        """A version that the learner has made."""
        folder = self.learner.folder
        publish(folder, version, champion=False, weights=lively(folder, version))

    def nominate(self, version: int) -> None:
        self.publish(version)
        made = Promotion(self.learner.folder).nominate(version, experience=1, reason="a test")
        assert made
        self.settle(1)

    def arrive(self, matches: int) -> None:
        """Matches that the first machine has played, for the learner."""
        folder, rng = self.players[0].folder, np.random.default_rng(0)
        for _ in range(matches):
            seen = rng.standard_normal((20, 2)).astype(np.float32)
            now = folder.clock.time()
            spool_of(folder).put(
                episode(uuid4().hex, length=20, finished_at=now, observations=seen)
            )

    def check(self) -> PromotionState:
        """Every machine's resolved prefix is in the log, once and in its order; every machine has
        that log; and whatever pieces it is read in, it gives the same evidence."""
        log = records(self.learner.folder)
        for one in self.players:
            assert brought(log, one) == own_prefix(one), "once each, in the order of its machine"
            assert records(one.folder) == log
            assert summary(folded(one.folder)) == summary(folded(self.learner.folder))
        state = PromotionState()
        for numbered in union(log, self.players):
            state, _ = roles.fold(state, [numbered])
        assert summary(state) == summary(folded(self.learner.folder))
        assert not state.open
        for one in (self.learner, *self.players):
            for name, version in (
                ("champion", state.incumbent),
                ("canary", state.test.version if state.test else 0),
            ):
                record = one.folder.pointers.read(name)  # type: ignore[arg-type]
                assert record is not None and record.version == version, (name, one.folder.root)
        return state


def story(world: World) -> None:
    """A test that both machines play for, with a match that is lost on the way."""
    world.settle(2)
    world.nominate(1)
    for place, bot in enumerate(world.bots):
        bot.play(4, EVEN)
        world.players[place].look()
        world.learner.look()
    lost, _ = world.bots[1].begin()
    assert lost
    world.bots[1].promotion.close()
    world.bots[1] = Bot(world.players[1], seed=5)
    for bot in world.bots:
        bot.play(3, EVEN)
    world.settle(1)


def own_log(machine: Place) -> list[tuple[int, Record]]:
    return PromotionLog(machine.folder.promotion / OWN).new()


def own_prefix(machine: Place) -> list[tuple[Record, Resolved | None]]:
    """What a machine has to tell: declarations and matches, up to the first that is not over."""
    results: dict[int, Resolved] = {}
    for _, record in own_log(machine):
        if isinstance(record, Resolved):
            results.setdefault(record.order, record)
    prefix: list[tuple[Record, Resolved | None]] = []
    for number, record in own_log(machine):
        if isinstance(record, Declared):
            prefix.append((record, None))
        elif isinstance(record, Assigned):
            if number not in results:
                break
            prefix.append((record, msgspec.structs.replace(results[number], order=0)))
    return prefix


def brought(log: list[tuple[int, Record]], machine: Place) -> list[tuple[Record, Resolved | None]]:
    """What the log has of a machine, as the machine has written it."""
    mine = {
        record.origin: number
        for number, record in log
        if record.origin.startswith(f"{machine.name}/") and not isinstance(record, Resolved)
    }
    results = {record.origin: record for _, record in log if isinstance(record, Resolved)}
    numbered = dict(log)
    found: list[tuple[Record, Resolved | None]] = []
    for origin, number in mine.items():
        result = results.get(origin)
        if result is not None:
            assert result.order == number
            result = msgspec.structs.replace(result, order=0, origin="")
        found.append((msgspec.structs.replace(numbered[number], origin=""), result))
    return found


def union(log: list[tuple[int, Record]], machines: list[Machine]) -> list[tuple[int, Record]]:
    """The log again, with every record that was brought taken from the log of its machine."""
    own = {
        f"{one.name}/{number}": (number, record)
        for one in machines
        for number, record in own_log(one)
    }
    results = {
        f"{one.name}/{record.order}": record
        for one in machines
        for _, record in reversed(own_log(one))
        if isinstance(record, Resolved)
    }
    found: list[tuple[int, Record]] = []
    for number, record in log:
        if not record.origin:
            found.append((number, record))
        elif isinstance(record, Resolved):
            result = results[record.origin]
            found.append((number, msgspec.structs.replace(result, order=record.order)))
        else:
            found.append((number, own[record.origin][1]))
    return found
