from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import msgspec
import pytest
from walk.toys import SPEC, SetClock, Toy, open_run, settings

from understudy.core.errors import Fenced, FileFormatError, RunFolderError
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import LEARNER, WEIGHTS, Manifest, Versions


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return open_run(tmp_path / "run", settings(), SetClock())


def commit(versions: Versions, number: int, parent: int | None = None) -> Manifest:
    manifest = Manifest(number=number, parent=parent, created_at=0.0, spec=SPEC)
    return versions.commit(manifest, Toy(settings()).snapshot())


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def test_a_version_can_be_read_and_played(folder: RunFolder) -> None:
    sealed = commit(folder.versions, 1)
    assert folder.versions.verify(1) == sealed
    assert folder.versions.policy(1).version == 1
    assert (folder.versions.numbers(), folder.versions.head()) == ([1], 1)


def test_the_second_commit_of_a_number_is_fenced_off_and_leaves_nothing(folder: RunFolder) -> None:
    first = commit(folder.versions, 1)
    with pytest.raises(Fenced, match="version 1 exists already"):
        commit(folder.versions, 1, parent=7)
    assert folder.versions.verify(1) == first
    assert names(folder.versions.root) == ["00000001"]


@pytest.mark.parametrize("name", [WEIGHTS, LEARNER, "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "grow", "remove"])
def test_the_head_is_never_a_damaged_version(folder: RunFolder, name: str, damage: str) -> None:
    versions = folder.versions
    commit(versions, 1)
    commit(versions, 2, parent=1)
    path = versions.folder(2) / name
    data = path.read_bytes()
    middle = len(data) // 2
    if damage == "flip":
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    elif damage == "cut":
        path.write_bytes(data[:-1])
    elif damage == "grow":
        path.write_bytes(data + b"\n")
    else:
        path.unlink()
    assert versions.head() == 1
    assert versions.numbers() == [1, 2], "a damaged version keeps its number"
    with pytest.raises((FileFormatError, FileNotFoundError)):
        versions.verify(2)
    if name != LEARNER:
        with pytest.raises((FileFormatError, RunFolderError)):
            versions.policy(2)


def rewrite(path: Path, **changes: object) -> None:
    """Change a manifest and give it a checksum that fits."""
    body = msgspec.json.decode(path.read_bytes().partition(b"\n")[2])
    changed = msgspec.json.encode(body | changes)
    path.write_bytes(hashlib.sha256(changed).hexdigest().encode() + b"\n" + changed)


@pytest.mark.parametrize(
    "changes", [{"number": 7}, {"schema": 99}, {"extra": 1}, {"parent": "one"}, {"files": [1]}]
)
def test_a_manifest_that_does_not_fit_is_refused(
    folder: RunFolder, changes: dict[str, object]
) -> None:
    commit(folder.versions, 1)
    rewrite(folder.versions.folder(1) / "manifest.json", **changes)
    with pytest.raises(FileFormatError, match=r"version 1: manifest\.json"):
        folder.versions.manifest(1)
    assert folder.versions.head() is None


def test_a_copied_version_is_not_another_version(folder: RunFolder) -> None:
    commit(folder.versions, 1)
    shutil.copytree(folder.versions.folder(1), folder.versions.folder(9))
    assert folder.versions.head() == 1


def test_unfinished_and_foreign_things_are_no_versions(folder: RunFolder) -> None:
    commit(folder.versions, 1)
    for name in (".tmp-1-2-3", "notes", "1", "000000010"):
        (folder.versions.root / name).mkdir()
    assert folder.versions.numbers() == [1]


def test_a_version_that_is_not_there_is_named(folder: RunFolder) -> None:
    with pytest.raises(RunFolderError, match=r"version 3 is not in .*there: none"):
        folder.versions.policy(3)
    commit(folder.versions, 1)
    commit(folder.versions, 2)
    with pytest.raises(RunFolderError, match=r"version 3 is not in .*there: 1 to 2"):
        folder.versions.policy(3)


def test_pruning_keeps_the_newest_and_what_is_named(folder: RunFolder) -> None:
    for number in range(1, 9):
        commit(folder.versions, number, parent=number - 1 or None)
    assert folder.versions.prune(keep_newest=3, keep={2}) == [1, 3, 4, 5]
    assert folder.versions.numbers() == [2, 6, 7, 8]
    assert not list(folder.versions.root.glob(".tmp-*"))


def test_what_pruned_versions_ingested_is_remembered(folder: RunFolder) -> None:
    versions = folder.versions
    for number in range(1, 6):
        manifest = Manifest(
            number=number, parent=None, created_at=0.0, spec=SPEC, ingested={str(number): "x.npz"}
        )
        versions.commit(manifest, Toy(settings()).snapshot())
    (versions.folder(2) / "manifest.json").write_bytes(b"rotten")
    assert versions.ingested_by_pruned() == {}
    versions.prune(keep_newest=3, keep=())
    with (versions.root / "pruned.jsonl").open("ab") as file:
        file.write(b'{"cut of\xe2\x82')
    versions.prune(keep_newest=2, keep=())
    assert versions.ingested_by_pruned() == {"1": "x.npz", "3": "x.npz"}


def test_the_oldest_ids_are_forgotten_and_the_time_up_to_which_is_kept(folder: RunFolder) -> None:
    versions = folder.versions
    names = {str(number): f"{number:020d}-x.npz" for number in range(40)}
    with (versions.root / "pruned.jsonl").open("wb") as file:
        for key, name in reversed(names.items()):  # old versions may go last
            file.write(b"\n" + msgspec.json.encode({key: name}) + b"\n")

    def keep(key: str, name: str) -> bool:
        return key == "3"

    assert versions.forgotten() == ""
    assert versions.forget_oldest(most=40, keep=keep) == 0
    versions = Versions(versions.root)  # that remembers at which size it counted
    assert versions.forget_oldest(most=20, keep=keep) == 22
    left = versions.ingested_by_pruned()
    assert left == {key: names[key] for key in names if key == "3" or int(key) > 22}
    assert versions.forgotten() == names["22"]
    assert versions.forget_oldest(most=20, keep=keep) == 0
    assert versions.forget_oldest(most=10, keep=keep) == 9
    assert versions.forgotten() == names["31"]
    assert versions.ingested_by_pruned(newest_only=True) == versions.ingested_by_pruned()


def test_pruning_keeps_the_head_and_its_parent_however_far_back(folder: RunFolder) -> None:
    versions = folder.versions
    for number in range(1, 8):
        commit(versions, number, parent={5: 1}.get(number))
    for number in (6, 7):
        (versions.folder(number) / WEIGHTS).write_bytes(b"")
    assert versions.head() == 5
    versions.prune(keep_newest=1, keep=())
    assert versions.numbers() == [1, 5, 6, 7]
    assert versions.head() == 5
