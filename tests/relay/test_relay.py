"""Both sides of a relay: matches arrive once, versions arrive whole, one learner writes."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from walk.power import UnsyncedDisk
from walk.toys import check_ingested_once, check_registry, counts, manifests, settings

from relay.makers import CONFIG, FailingStore, Failure, Machine
from understudy.core import files
from understudy.core.errors import Fenced, FileFormatError, RunFolderError
from understudy.core.seals import seal
from understudy.registry.versions import MANIFEST
from understudy.relay import bucket
from understudy.relay import learner as learner_side
from understudy.relay.bucket import BundleKey, DoneBundles
from understudy.relay.player import PlayerSide
from understudy.relay.relay import RelayOptions, RelayProgress, run_relay
from understudy.relay.stores import FolderStore


@pytest.fixture(autouse=True)
def unsynced() -> Iterator[None]:
    """Kills, not power cuts, are what happens here, and syncing takes most of the time."""
    with files.using(UnsyncedDisk()):
        yield


def store_at(tmp_path: Path) -> FolderStore:
    return FolderStore("store", tmp_path / "store")


def champion(machine: Machine) -> int:
    record = machine.folder.pointers.read("champion")
    return 0 if record is None else record.version


def story(players: list[Machine], learner: Machine) -> set[str]:
    """Two machines play twice, one learns; returns the ids of all matches."""
    ids: set[str] = set()
    for round_ in range(2):
        for place, player in enumerate(players):
            names = [f"{place}-{round_}-{number}" for number in range(3)]
            player.play(*names)
            ids.update(names)
            player.look()
        learner.look()
        learner.learn()
        learner.look()
        for player in players:
            player.look()
    return ids


def settle(players: list[Machine], learner: Machine) -> None:
    """What every machine does by itself in the next seconds."""
    for _ in range(3):
        for player in players:
            player.look()
        learner.look()
        learner.learn()
        learner.look()


def check_all(players: list[Machine], learner: Machine, ids: set[str], store: FolderStore) -> None:
    check_ingested_once(learner.folder, ids)
    check_registry(learner.folder)
    assert counts(learner.folder.root)[2] == 0
    assert [one.key for one in store.list(bucket.EPISODES)] == []
    head = learner.folder.versions.head()
    for player in players:
        assert counts(player.folder.root) == (0, 6, 0)
        assert champion(player) == head
        check_registry(player.folder)


def test_matches_go_to_the_learner_and_versions_come_back(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    players = [Machine(tmp_path / f"player{place}", store, "player") for place in range(2)]
    learner = Machine(tmp_path / "learner", store, "learner")
    ids = story(players, learner)
    check_all(players, learner, ids, store)
    assert learner.problems == []
    for player in players:
        here = player.folder.versions
        number = here.head()
        assert number is not None
        assert here.contents(number) == learner.folder.versions.contents(number)


def _asked(tmp_path: Path) -> int:
    counting = FailingStore(tmp_path / "store")
    players = [Machine(tmp_path / f"player{place}", counting, "player") for place in range(2)]
    story(players, Machine(tmp_path / "learner", counting, "learner"))
    return counting.asked


def fail_at(tmp_path: Path, how: Failure, operations: Iterable[int]) -> None:
    for at in operations:
        here = tmp_path / f"{at}"
        store = FailingStore(here / "store", at=at, how=how)
        players = [Machine(here / f"player{place}", store, "player") for place in range(2)]
        learner = Machine(here / "learner", store, "learner")
        ids = story(players, learner)
        settle(players, learner)
        check_all(players, learner, ids, store)
        shutil.rmtree(here)


@pytest.mark.parametrize(("how", "first"), [("before", 0), ("after", 2), ("killed", 4)])
def test_no_failure_of_the_store_loses_or_repeats_a_match(
    tmp_path: Path, how: Failure, first: int
) -> None:
    """The store does not answer, its answer is lost, or the process ends right after it: at every
    sixth operation, each time another one."""
    operations = _asked(tmp_path / "counted")
    assert operations > 60
    fail_at(tmp_path, how, range(first, operations, 6))


@pytest.mark.soak
@pytest.mark.parametrize("how", ["before", "after", "killed"])
def test_no_failure_at_any_operation_loses_or_repeats_a_match(tmp_path: Path, how: Failure) -> None:
    fail_at(tmp_path, how, range(_asked(tmp_path / "counted")))


# --- players -------------------------------------------------------------------------------------


def test_a_bundle_is_bounded_by_matches_and_by_bytes(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    few = Machine(tmp_path / "few", store, "player", settings(relay__bundle_matches=3))
    few.play(*"abcdefg")
    few.look()
    sizes = [len(bucket.decode_bundle(store.get(one.key), what="")) for one in store.list("")]
    assert sorted(sizes) == [1, 3, 3]
    small = Machine(tmp_path / "small", store_at(tmp_path / "2"), "player",
                    settings(relay__bundle_bytes=1))  # fmt: skip
    small.play("a", "b")
    small.look()
    assert len(store_at(tmp_path / "2").list(bucket.EPISODES)) == 2


def test_what_waits_too_long_is_archived_and_said(tmp_path: Path) -> None:
    away = FailingStore(tmp_path / "store", at=0)
    player = Machine(tmp_path / "player", away, "player", settings(relay__waiting_matches=2))
    player.play("a", "b", "c", "d")
    player.side.offline()
    assert counts(player.folder.root) == (2, 2, 0)
    assert player.side.counts.not_sent == 2
    assert "relay.waiting_matches = 2" in player.problems[0]
    player.restart(store_at(tmp_path))
    player.look()
    assert player.side.counts.sent == 2


def test_a_day_offline_is_caught_up_with(tmp_path: Path) -> None:
    store = FailingStore(tmp_path / "store", at=0)
    player = Machine(tmp_path / "player", store, "player")
    learner = Machine(tmp_path / "learner", store_at(tmp_path), "learner")
    names = [f"match {number}" for number in range(50)]
    player.play(*names)
    player.look()
    assert counts(player.folder.root) == (50, 0, 0), "the store did not answer: all wait"
    player.look()
    settle([player], learner)
    check_ingested_once(learner.folder, set(names))
    assert champion(player) == learner.folder.versions.head()


def test_a_copied_run_folder_is_another_machine(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    first = Machine(tmp_path / "first", store, "player")
    first.play("a", "b")
    first.look()
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    second = Machine(tmp_path / "second", store, "player")
    second.play("c")
    first.play("d")
    first.look()
    second.look()
    learner = Machine(tmp_path / "learner", store, "learner")
    settle([first, second], learner)
    check_ingested_once(learner.folder, set("abcd"))
    machines = {BundleKey.parsed(one.key) for one in store.list(bucket.EPISODES)}
    assert machines == set()


def test_a_version_that_comes_damaged_is_not_committed(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    player = Machine(tmp_path / "player", store, "player")
    learner = Machine(tmp_path / "learner", store, "learner")
    player.play("a", "b")
    player.look()
    learner.look()
    learner.learn()
    learner.look()
    key = next(one.key for one in store.list(bucket.VERSIONS) if one.key.endswith("weights.npz"))
    whole = (tmp_path / "store" / key).read_bytes()
    (tmp_path / "store" / key).write_bytes(whole[:-1])
    player.look()
    player.look()
    assert player.folder.versions.numbers() == []
    assert champion(player) == 0
    assert len(player.problems) == 1, "it is told once"
    assert "weights.npz came damaged" in player.problems[0]
    (tmp_path / "store" / key).write_bytes(whole)
    player.look()
    assert champion(player) == 1


def test_a_pin_on_a_players_machine_stays(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    player = Machine(tmp_path / "player", store, "player")
    learner = Machine(tmp_path / "learner", store, "learner")
    story([player], learner)
    first = player.folder.versions.numbers()[0]
    player.folder.pointers.pin("champion", first, by="rollback")
    story([player], learner)
    assert champion(player) == first
    candidate = player.folder.pointers.read("candidate")
    assert candidate is not None and candidate.version == learner.folder.versions.head()


def test_a_rollback_on_the_learners_machine_reaches_the_players(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    player = Machine(tmp_path / "player", store, "player")
    learner = Machine(tmp_path / "learner", store, "learner")
    story([player], learner)
    learner.folder.pointers.pin("champion", 1, by="rollback")
    learner.look()
    player.look()
    assert champion(player) == 1


def test_a_folder_that_learned_by_itself_is_refused(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    player = Machine(tmp_path / "player", store, "player")
    player.play("own")
    player.learn()
    other = Machine(tmp_path / "other", store, "player")
    learner = Machine(tmp_path / "learner", store, "learner")
    story([other], learner)
    learner.folder.pointers.pin("champion", 1, by="rollback")
    learner.look()
    with pytest.raises(RunFolderError, match="has learned by itself"):
        player.look()


# --- learners ------------------------------------------------------------------------------------


def test_of_two_learners_one_is_fenced_off_and_nothing_is_lost(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    player = Machine(tmp_path / "player", store, "player")
    first = Machine(tmp_path / "first", store, "learner")
    second = Machine(tmp_path / "second", store, "learner")
    player.play("a", "b", "c")
    player.look()
    for one in (first, second):
        one.look()
        one.learn()
    first.look()
    assert store.list(bucket.EPISODES) == []
    with pytest.raises(Fenced, match=r"another learner .*has taken over"):
        second.look()
    player.play("d")
    settle([player], first)
    check_ingested_once(first.folder, set("abcd"))
    assert champion(player) == first.folder.versions.head()


def test_a_learner_that_stalled_does_not_commit_under_an_old_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number was used and deleted since, so creating it succeeds once more."""
    monkeypatch.setattr(learner_side, "_COMMITS", 2)
    store = store_at(tmp_path)
    player = Machine(tmp_path / "player", store, "player")
    stalled = Machine(tmp_path / "stalled", store, "learner")
    stalled.look()
    working = Machine(tmp_path / "working", store, "learner")
    for number in range(8):
        player.play(f"{number}")
        settle([player], working)
    assert min(bucket.commit_numbers(store)) > 1
    player.play("last")
    player.look()
    stalled.look()
    stalled.learn()
    with pytest.raises(Fenced):
        stalled.look()
    assert len(store.list(bucket.EPISODES)) == 1, "what the other learner needs is still there"
    settle([player], working)
    check_ingested_once(working.folder, {*map(str, range(8)), "last"})


def test_an_empty_run_folder_takes_a_lost_learner_over(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    player = Machine(tmp_path / "player", store, "player")
    lost = Machine(tmp_path / "lost", store, "learner")
    story([player], lost)
    before = lost.folder.versions.head()
    assert before is not None
    shutil.rmtree(tmp_path / "lost")
    player.play("after")
    player.look()
    heir = Machine(tmp_path / "heir", store, "learner")
    heir.look()
    assert heir.folder.versions.head() == before
    settle([player], heir)
    assert champion(player) == heir.folder.versions.head() == before + 1
    assert set(manifests(heir.folder)[-1].ingested) == {"after"}


def test_a_store_with_versions_of_another_learner_is_refused(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    story(
        [Machine(tmp_path / "player", store, "player")],
        Machine(tmp_path / "learner", store, "learner"),
    )
    other = Machine(tmp_path / "other", store, "learner")
    other.play("own")
    other.learn()
    with pytest.raises(RunFolderError, match="One store is for one learner"):
        other.look()


def test_bundles_that_were_sent_again_are_not_learned_from_again(tmp_path: Path) -> None:
    """A machine was killed before it knew of the answer, and the learner is done meanwhile. The
    learner's machine is lost, too, so that no version is left that names the matches."""
    store = store_at(tmp_path)
    player = Machine(tmp_path / "player", store, "player")
    learner = Machine(tmp_path / "learner", store, "learner")
    player.play("a")
    player.look()
    (again,) = store.list(bucket.EPISODES)
    data = store.get(again.key)
    settle([player], learner)
    store.create(again.key, data)
    heir = Machine(tmp_path / "heir", store, "learner")
    heir.look()
    assert store.list(bucket.EPISODES) == []
    assert counts(heir.folder.root) == (0, 0, 0)


def test_a_damaged_bundle_is_set_aside_and_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner_side, "_DAMAGED_S", 0.0)
    store = store_at(tmp_path)
    player = Machine(tmp_path / "player", store, "player")
    player.play("a")
    player.look()
    bad = {"../../outside.npz": b"x"}
    store.create(str(BundleKey(1, "0" * 12, 1)), bucket.encode_bundle(bad))
    store.create(str(BundleKey(2, "0" * 12, 2)), b"nonsense")
    learner = Machine(tmp_path / "learner", store, "learner")
    settle([player], learner)
    check_ingested_once(learner.folder, {"a"})
    assert len(store.list(bucket.REFUSED)) == 2
    assert store.list(bucket.EPISODES) == []
    assert not list(tmp_path.rglob("outside.npz"))


def test_what_is_no_bundle_is_left_alone_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_at(tmp_path)
    player = Machine(tmp_path / "player", store, "player")
    learner = Machine(tmp_path / "learner", store, "learner")
    player.play("a")
    player.look()
    store.create(f"{bucket.EPISODES}notes.txt", b"hello")
    settle([player], learner)
    check_ingested_once(learner.folder, {"a"})
    monkeypatch.setattr(bucket, "MAX_BUNDLE_BYTES", 10)
    store.create(str(BundleKey(1, "0" * 12, 1)), b"x" * 11)
    settle([player], learner)
    assert len(learner.problems) == 2
    assert all("is left alone" in one for one in learner.problems)
    assert len(store.list(bucket.EPISODES)) == 2


def test_a_full_learner_leaves_matches_in_the_store(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    player = Machine(tmp_path / "player", store, "player")
    player.play(*map(str, range(12)))
    player.look()
    few = settings(relay__waiting_matches=4, learner__batch_matches=2)
    learner = Machine(tmp_path / "learner", store, "learner", few)
    learner.look()
    learner.look()
    assert "does a learner run?" in learner.problems[0]
    settle([player], learner)
    check_ingested_once(learner.folder, set(map(str, range(12))))


def test_old_commits_and_versions_leave_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learner_side, "_COMMITS", 3)
    store = store_at(tmp_path)
    player = Machine(tmp_path / "player", store, "player")
    learner = Machine(tmp_path / "learner", store, "learner")
    for number in range(12):
        player.play(f"{number}")
        settle([player], learner)
    assert len(bucket.commit_numbers(store)) <= 6
    assert len({one.key.split("/")[1] for one in store.list(bucket.VERSIONS)}) <= 6
    assert champion(player) == learner.folder.versions.head()


# --- formats -------------------------------------------------------------------------------------


def test_done_is_a_number_and_what_lies_beyond_it() -> None:
    done = DoneBundles()
    for number in (2, 3, 5, 1):
        done = done.plus(number)
    assert done == DoneBundles(3, (5,))
    assert done.plus(5) == done
    assert done.plus(4) == DoneBundles(5)
    assert [number for number in range(1, 8) if done.has(number)] == [1, 2, 3, 5]


@pytest.mark.parametrize(
    "changes", [{"token": "../../.."}, {"files": {"../x": {"bytes": 1, "sha256": ""}}}]
)
def test_a_commit_cannot_name_files_elsewhere(tmp_path: Path, changes: dict[str, Any]) -> None:
    store = store_at(tmp_path)
    version = {"number": 1, "token": "0" * 12, "files": {MANIFEST: {"bytes": 1, "sha256": ""}}}
    commit = {
        "sequence": 1,
        "at": 0.0,
        "machine": "",
        "token": "0" * 12,
        "versions": [{**version, **changes}],
    }
    store.create(bucket.commit_key(1), seal(msgspec.json.encode(commit)))
    with pytest.raises(FileFormatError, match="no name of a file"):
        bucket.newest_commit(store)


def test_a_players_side_has_no_start(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "player", store_at(tmp_path), "player", CONFIG)
    assert isinstance(machine.side, PlayerSide)
    machine.side.start()
    assert store_at(tmp_path).list("") == []


def test_a_bundle_that_is_gone_for_good_does_not_make_commits_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bucket, "_MOST_BEYOND", 3)
    done = DoneBundles()
    for number in range(2, 9):
        done = done.plus(number)
    assert done == DoneBundles(8)


# --- a relay at work -----------------------------------------------------------------------------


class FullDisk(UnsyncedDisk):
    """Has no room for what a relay notes, while it is full."""

    full = True

    def write(self, path: Path, data: bytes) -> None:
        if self.full and path.parent.name == "relay" and b'"names":["' in data:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(path, data)


def test_a_full_disk_is_told_once_and_waited_for(tmp_path: Path) -> None:
    player = Machine(tmp_path / "player", store_at(tmp_path), "player", CONFIG)
    player.play("a", "b")
    shutil.rmtree(player.folder.root / "relay")
    disk, said, looks = FullDisk(), list[str](), list[RelayProgress]()

    def show(progress: RelayProgress) -> None:
        looks.append(progress)
        disk.full = len(looks) < 3

    with files.using(disk):
        run_relay(
            RelayOptions(run=player.folder.root, url=str(tmp_path / "store")),
            stop=lambda: bool(looks) and looks[-1].counts.sent == 2,
            show=show,
            say=said.append,
        )
    assert "No space left on device" in looks[0].trouble
    assert [words for words in said if "No space left" in words] == [said[0]]
    assert "works again after 3 failed looks" in said[1]
    assert counts(player.folder.root) == (0, 2, 0)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_bounds_are_kept_before_the_store_answers(tmp_path: Path) -> None:
    config = settings(relay__waiting_matches=2, relay__poll_s=0.05)
    player = Machine(tmp_path / "player", store_at(tmp_path), "player", config)
    shutil.rmtree(player.folder.root / "relay")
    options = RelayOptions(run=player.folder.root, url=str(tmp_path / "store"), once=True)
    run_relay(options, stop=lambda: False)
    shutil.rmtree(tmp_path / "store")
    (tmp_path / "store").symlink_to(tmp_path / "store")  # a folder that cannot be read: a loop
    player.play("a", "b", "c", "d", "e")
    looks = list[RelayProgress]()
    run_relay(replace(options, once=False), stop=lambda: bool(looks), show=looks.append)
    assert counts(player.folder.root) == (2, 3, 0)
    assert looks[-1].counts.not_sent == 3
