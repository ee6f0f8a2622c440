"""The power is cut after every effect: what was synced is there, and nothing leaves twice."""

from __future__ import annotations

import itertools
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from walk.power import FallibleDisk, Tree, UnsyncedDisk, build, quick_folder

from understudy.core import files
from understudy.experience.episode import Episode
from understudy.experience.ledger import Closing, Ledger

from .decisions import keys_of, ledger_at, open_some, settled

Told = dict[int, str]
"""Decisions and their states as of the last sync."""
TERRITORIES = ("north", "south", "idle")
NUMBERS = itertools.count()


class Left(NamedTuple):
    """What a power cut left, and what had been promised by then."""

    tree: Tree
    promised: Told
    closing: Told
    """Endings that were asked for, whether or not they were acknowledged."""
    given: int
    """The highest id that somebody may know."""


class Cuts:
    """Every different folder that a power cut could have left, with what was promised by then."""

    def __init__(self, root: Path, disk: type[FallibleDisk]) -> None:
        self.disk = disk(root, self._after)
        self.promised: Told = {}
        self.closing: Told = {}
        self.given = 0
        self.states: dict[object, Left] = {}
        self._chance = random.Random(7)

    def _after(self) -> None:
        for tree in self.disk.crashes(self._chance, mixes=1):
            key = (frozenset(tree.items()), frozenset(self.promised.items()), self.given)
            self.states[key] = Left(tree, self.promised, dict(self.closing), self.given)


def start(root: Path) -> Ledger:
    """With a spool whose files say no more than is asked here, so that many can be read."""
    spool = root / "spool"
    files.make_folders(spool)

    def put(episode: Episode) -> None:
        line = " ".join([episode.meta.id, *map(str, keys_of(episode))])
        files.write_atomic(spool / f"{next(NUMBERS)}.txt", line.encode())

    return ledger_at(root / "ledger", put=put, segment=2, rotate_bytes=700)


def play(root: Path, cuts: Cuts, rounds: int) -> None:
    """Openings, all endings, cuts, segments, files that go, an idle territory, restarts."""
    now: Told = {}
    ledger = start(root)

    def opened(count: int, territory: str) -> list[int]:
        keys = open_some(ledger, count, territory)
        cuts.given = keys[-1]
        now.update(dict.fromkeys(keys, "open"))
        return keys

    def closed(closings: list[Closing]) -> None:
        endings = {closing.id: closing.state for closing in closings}
        cuts.closing.update(endings)
        ledger.close(closings)
        now.update(endings)

    idle, late = opened(1, "idle"), list[int]()
    for number in range(rounds):
        north, south = opened(3, "north"), opened(2, "south")
        closed(settled(*late, *north[:2], south[0]))
        late = north[2:]
        if number % 4 == 1:
            closed([Closing(id=south[1], state="expired")])
        else:
            late += south[1:]
        if number % 3:
            ledger.cut("north", b"")
        promised = dict(now)
        ledger.sync()
        cuts.promised = promised
        if number == 6:
            ledger = start(root)
    closed(settled(*idle))
    ledger.stop()
    cuts.promised = dict(now)


def check(root: Path, after: Left) -> None:
    _, promised, closing, given = after
    build(after.tree, root)
    ledger = start(root)
    (new,) = ledger.take_ids(1)
    assert new > given, "an id that a client may know"
    waiting = {one.id for one in ledger.older_than(4e9)}
    for key, state in promised.items():
        ended = {closing[key], "unknown"} if key in closing else set()
        assert ledger.state_of(key) in (ended | {"open"} if state == "open" else ended)
    ledger.close(settled(*waiting))
    for territory in TERRITORIES:
        ledger.cut(territory, b"")
    distinct = {path.read_text() for path in (root / "spool").glob("*.txt")}
    assert len(distinct) == len({line.split()[0] for line in distinct}), "one id, two episodes"
    left = Counter(int(key) for line in distinct for key in line.split()[1:])
    assert not left or max(left.values()) == 1, "learned from twice"
    expired = {key for key, state in closing.items() if state == "expired"}
    assert promised.keys() <= left.keys() | expired
    assert not {key for key in expired if promised.get(key) == "expired"} & left.keys()


class Careless(FallibleDisk):
    """Forgets to sync the ledger's logs."""

    def sync(self, path: Path) -> None:
        if path.suffix != ".log":
            super().sync(path)


def cut(tmp_path: Path, *, rounds: int, disk: type[FallibleDisk] = FallibleDisk) -> Cuts:
    root = tmp_path / "run"
    cuts = Cuts(root, disk)
    with files.using(cuts.disk):
        play(root, cuts, rounds)
    return cuts


def failures(cuts: Cuts) -> int:
    broken = 0
    with quick_folder() as quick, files.using(UnsyncedDisk()):
        for after in cuts.states.values():
            try:
                check(quick / "after", after)
            except AssertionError:
                broken += 1
            shutil.rmtree(quick / "after")
    return broken


def test_after_any_power_cut_what_was_synced_is_there_and_nothing_leaves_twice(
    tmp_path: Path,
) -> None:
    cuts = cut(tmp_path, rounds=14)
    numbers = {path for one in cuts.states.values() for path in one.tree if path.endswith(".log")}
    assert len(numbers) > 10 > len(list((tmp_path / "run" / "ledger").glob("*.log")))
    assert len(cuts.states) > 200
    with quick_folder() as quick, files.using(UnsyncedDisk()):
        for after in cuts.states.values():
            check(quick / "after", after)
            shutil.rmtree(quick / "after")


def test_this_proof_sees_a_missing_sync(tmp_path: Path) -> None:
    assert failures(cut(tmp_path, rounds=4, disk=Careless)) > 10
