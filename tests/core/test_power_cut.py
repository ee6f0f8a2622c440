"""SIGKILL does not test fsync: cut the power after every single effect, with whatever was not
synced lost, kept or cut short, and see that a new start keeps every promise."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from walk.power import FallibleDisk, Tree, UnsyncedDisk, build, quick_folder
from walk.toys import (
    SetClock,
    check_ingested_once,
    check_registry,
    episode,
    learner,
    manifests,
    open_run,
    reasons,
    settings,
    spool_of,
    tally_of,
    work_to_the_end,
)

from understudy.core import files
from understudy.core.config import Config
from understudy.core.files import Disk
from understudy.learner import background
from understudy.registry.run_folder import RunFolder

PRUNED = settings(
    learner__batch_matches=2,
    learner__replay_matches=1,
    learner__samples_per_insert=3,
    registry__keep_versions=2,
    spool__archive_matches=3,
)
KEPT = settings(learner__batch_matches=2)


class Told:
    """What the user was told so far, and therefore may rely on."""

    def __init__(self) -> None:
        self.finished: set[str] = set()
        self.published = 0
        self.pinned = 0


class Cuts:
    """Every different folder that a power cut could have left, with what had been told by then."""

    def __init__(self, root: Path) -> None:
        self.told = Told()
        self.disk = FallibleDisk(root, self._after)
        self.effects = 0
        self._chance = random.Random(7)
        self._states: dict[object, tuple[Tree, frozenset[str], int, int]] = {}

    def _after(self) -> None:
        self.effects += 1
        told = (frozenset(self.told.finished), self.told.published, self.told.pinned)
        for tree in self.disk.crashes(self._chance, mixes=3):
            self._states[frozenset(tree.items()), told] = (tree, *told)

    @property
    def states(self) -> list[tuple[Tree, frozenset[str], int, int]]:
        return list(self._states.values())


def play_and_learn(root: Path, told: Told) -> None:
    """Puts, batches, versions, archives, a bad file, an old match, restarts and much pruning."""
    folder = open_run(root, PRUNED, SetClock())
    spool = spool_of(folder)
    put = 0

    def play(matches: int) -> None:
        nonlocal put
        for _ in range(matches):
            put += 1
            spool.put(episode(f"match {put}"))
            told.finished.add(f"match {put}")

    play(7)
    for matches in (0, 1):
        mind = learner(folder)
        play(matches)
        files.write_atomic(spool.buffer / f"bad {matches}.npz", b"not an episode")
        spool.put(episode(f"old {matches}", finished_at=0.0))
        while mind.work(hurry=True):
            told.published = mind.version


def roll_back(root: Path, told: Told) -> None:
    """Two versions, a rollback to the first, and on from there."""
    folder = open_run(root, KEPT, SetClock())
    spool = spool_of(folder)
    mind = learner(folder)
    for number in range(6):
        spool.put(episode(f"match {number}"))
        told.finished.add(f"match {number}")
        if number == 3:
            folder.pointers.pin("champion", 1, by="rollback")
            told.pinned = 1
        mind.work(hurry=True)
        told.published = mind.version


def recover(root: Path, tree: Tree, config: Config) -> RunFolder:
    build(tree, root)
    folder = open_run(root, config, SetClock())
    work_to_the_end(learner(folder))
    return folder


def cut(tmp_path: Path, scenario: Callable[[Path, Told], None]) -> Cuts:
    root = tmp_path / "run"
    cuts = Cuts(root)
    with files.using(cuts.disk):
        scenario(root, cuts.told)
    return cuts


def test_after_any_power_cut_nothing_finished_is_lost_and_nothing_is_learned_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_TIDY_EVERY", 2)
    cuts = cut(tmp_path, play_and_learn)
    assert cuts.effects > 150
    with quick_folder() as quick, files.using(UnsyncedDisk()):
        root = quick / "after"
        for tree, finished, published, _ in cuts.states:
            folder = recover(root, tree, PRUNED)
            check_registry(folder)
            check_ingested_once(folder, set(finished))
            assert (folder.versions.head() or 0) >= published
            champion = folder.pointers.read("champion")
            assert published == 0 or (champion is not None and champion.version >= published)
            assert all("not a readable" in reason for reason in reasons(folder).values())
            shutil.rmtree(root)


def test_after_any_power_cut_a_rollback_holds(tmp_path: Path) -> None:
    cuts = cut(tmp_path, roll_back)
    with quick_folder() as quick, files.using(UnsyncedDisk()):
        root = quick / "after"
        for tree, finished, published, pinned in cuts.states:
            folder = recover(root, tree, KEPT)
            check_registry(folder)
            ingested = [key for manifest in manifests(folder) for key in manifest.ingested]
            assert len(ingested) == len(set(ingested))
            assert finished <= set(ingested)
            head = folder.versions.head() or 0
            assert head >= published
            champion = folder.pointers.read("champion")
            if pinned:
                assert champion is not None and champion.pinned and champion.version == 1
                abandoned = manifests(folder)[1:3]
                lineage = tally_of(folder, head).ingested
                if head > 3:
                    assert not {key for one in abandoned for key in one.ingested} & lineage.keys()
            shutil.rmtree(root)


class Careless(Disk):
    """Forgets what it was told to sync."""

    def sync(self, path: Path) -> None:
        pass


def test_this_proof_sees_a_missing_sync(tmp_path: Path) -> None:
    root = tmp_path / "run"
    cuts = Cuts(root)
    cuts.disk.sync = Careless().sync  # type: ignore[method-assign]
    with files.using(cuts.disk):
        spool_of(open_run(root, KEPT, SetClock())).put(episode("a"))
    broken = [tree for tree, *_ in cuts.states if b"" in tree.values()]
    assert any(path.startswith("buffer/0") for tree in broken for path in tree)
