from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from understudy.core import files
from understudy.core.files import Disk


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class FailingDisk(Disk):
    """One kind of effect fails with an error of the system."""

    def __init__(self, effect: str, code: int = errno.ENOSPC) -> None:
        def fail(*arguments: object) -> None:
            raise OSError(code, os.strerror(code))

        setattr(self, effect, fail)


@pytest.mark.parametrize("effect", ["write", "sync", "rename"])
def test_a_write_that_fails_leaves_everything_as_it_was(tmp_path: Path, effect: str) -> None:
    path = tmp_path / "it"
    files.write_atomic(path, b"before")
    with files.using(FailingDisk(effect)), pytest.raises(OSError, match="No space left"):
        files.write_atomic(path, b"after")
    assert path.read_bytes() == b"before"
    assert names(tmp_path) == ["it"]


@pytest.mark.parametrize("effect", ["write", "sync", "sync_folder", "rename", "make_folder"])
def test_a_folder_is_committed_whole_or_not_at_all(tmp_path: Path, effect: str) -> None:
    contents = {"a": b"1", "b": b"2"}
    with files.using(FailingDisk(effect)), pytest.raises(OSError, match="No space left"):
        files.commit_folder(tmp_path / "it", contents)
    assert names(tmp_path) == []
    files.commit_folder(tmp_path / "it", contents)
    assert names(tmp_path / "it") == ["a", "b"]


def test_a_folder_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    files.commit_folder(tmp_path / "it", {"a": b"first"})
    with pytest.raises(FileExistsError):
        files.commit_folder(tmp_path / "it", {"a": b"second"})
    assert (tmp_path / "it" / "a").read_bytes() == b"first"
    assert names(tmp_path) == ["it"]


class NoLinks(Disk):
    """A shared folder without hard links."""

    def claim(self, source: Path, target: Path) -> None:
        def refuse(*paths: object) -> None:
            raise OSError(errno.EPERM, "Operation not permitted")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "link", refuse)
            super().claim(source, target)


@pytest.mark.parametrize("disk", [Disk, NoLinks])
def test_of_many_creators_one_wins_and_its_file_is_whole(
    tmp_path: Path, disk: Callable[[], Disk]
) -> None:
    won: list[bytes] = []
    barrier = threading.Barrier(4)

    def create(data: bytes) -> None:
        barrier.wait()
        try:
            files.create_exclusive(tmp_path / "it", data)
        except FileExistsError:
            return
        won.append(data)

    threads = [threading.Thread(target=create, args=(bytes([65 + n]) * 9,)) for n in range(4)]
    with files.using(disk()):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert won == [(tmp_path / "it").read_bytes()]
    assert names(tmp_path) == ["it"]


def test_a_created_file_is_never_seen_half_written(tmp_path: Path) -> None:
    """Else a reader that finds a torn record could not know whether it will be whole soon."""
    seen: list[bytes] = []

    class Watching(Disk):
        def sync(self, path: Path) -> None:
            seen.append(b"".join(one.read_bytes() for one in tmp_path.glob("it")))
            super().sync(path)

    with files.using(Watching()):
        files.create_exclusive(tmp_path / "it", b"whole")
    assert seen == [b""]
    assert (tmp_path / "it").read_bytes() == b"whole"


def test_sweeping_takes_what_was_abandoned_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".tmp-1").write_bytes(b"half")
    (tmp_path / ".tmp-2").mkdir()
    (tmp_path / ".tmp-2" / "inside").write_bytes(b"half")
    (tmp_path / ".tmp-3").write_bytes(b"somebody is writing this now")
    (tmp_path / "whole").write_bytes(b"whole")
    for old in (".tmp-1", ".tmp-2", "whole"):
        os.utime(tmp_path / old, (0, 0))
    assert files.sweep(tmp_path) == 2
    assert names(tmp_path) == [".tmp-3", "whole"]


def test_one_leftover_that_cannot_be_removed_does_not_keep_the_others(tmp_path: Path) -> None:
    class Held(Disk):
        def remove(self, path: Path) -> None:
            if path.name == ".tmp-1":
                raise PermissionError(errno.EACCES, "somebody has it open")
            super().remove(path)

    for name in (".tmp-0", ".tmp-1", ".tmp-2"):
        (tmp_path / name).write_bytes(b"half")
    with files.using(Held()):
        assert files.sweep(tmp_path, older_than_s=0.0) == 2
    assert names(tmp_path) == [".tmp-1"]


def refused(monkeypatch: pytest.MonkeyPatch, where: object, name: str) -> None:
    """Windows, where somebody has the file open for a moment."""
    effect, left = getattr(where, name), 3

    def refuse(*arguments: object) -> object:
        nonlocal left
        left -= 1
        if left >= 0:
            raise PermissionError(errno.EACCES, "somebody has it open")
        return effect(*arguments)

    monkeypatch.setattr(files, "_WINDOWS", True)
    monkeypatch.setattr(where, name, refuse)


def test_on_windows_a_name_is_claimed_patiently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(monkeypatch, Path, "rename")
    files.create_exclusive(tmp_path / "it", b"whole")
    assert (tmp_path / "it").read_bytes() == b"whole" and names(tmp_path) == ["it"]


def test_on_windows_a_folder_is_removed_patiently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.commit_folder(tmp_path / "it", {"a": b"1"})
    refused(monkeypatch, shutil, "rmtree")
    files.remove_folder(tmp_path / "it")
    assert names(tmp_path) == []


def test_a_removed_folder_is_gone_at_once_for_readers(tmp_path: Path) -> None:
    files.commit_folder(tmp_path / "it", {"a": b"1"})

    class Interrupted(Disk):
        def remove_folder(self, path: Path) -> None:
            raise KeyboardInterrupt

    with files.using(Interrupted()), pytest.raises(KeyboardInterrupt):
        files.remove_folder(tmp_path / "it")
    assert not (tmp_path / "it").exists()
    assert files.sweep(tmp_path, older_than_s=0.0) == 1
    assert names(tmp_path) == []


def test_making_folders_twice_is_fine(tmp_path: Path) -> None:
    files.make_folders(tmp_path / "a" / "b")
    files.make_folders(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_a_folder_that_refuses_writes_is_found_out(tmp_path: Path) -> None:
    files.check_writable(tmp_path)
    assert names(tmp_path) == []
    with files.using(FailingDisk("write", errno.EROFS)), pytest.raises(OSError, match="Read-only"):
        files.check_writable(tmp_path)


def test_appended_lines_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "lines"

    def write(number: int) -> None:
        for _ in range(50):
            files.append(path, b"%d\n" % number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.read_bytes().split()) == sorted([b"0", b"1", b"2", b"3"] * 50)


def test_half_an_appended_line_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last free bytes of a disk are filled without a word."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:5]))
    with pytest.raises(OSError, match="No space left"):
        files.append(tmp_path / "lines", b"a whole line\n")


def test_a_file_that_is_held_open_is_appended_to_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "log"
    files.hold(path)
    files.append(path, b"one ")
    files.append(path, b"two ")
    files.sync(path, name=True)
    assert path.read_bytes() == b"one two "
    files.release(path)
    files.append(path, b"three")
    assert path.read_bytes() == b"one two three"
    files.release(path)  # again: nothing happens


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be removed on Windows")
def test_a_file_that_was_removed_while_it_was_held_is_not_written_to_for_ever(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log"
    files.hold(path)
    files.remove(path, synced=True)
    files.hold(path)
    files.append(path, b"new")
    files.release(path)
    assert path.read_bytes() == b"new"


def test_a_file_in_pieces_has_its_name_when_it_is_whole(tmp_path: Path) -> None:
    made = files.AtomicFile(tmp_path / "it")
    made.write(b"one ")
    made.write(b"two")
    assert not (tmp_path / "it").exists() and made.size == 7
    made.commit()
    assert (tmp_path / "it").read_bytes() == b"one two"
    assert names(tmp_path) == ["it"]


@pytest.mark.parametrize("leave", [files.AtomicFile.commit, files.AtomicFile.discard])
def test_a_file_in_pieces_that_was_left_takes_no_more(
    tmp_path: Path, leave: Callable[[files.AtomicFile], None]
) -> None:
    made = files.AtomicFile(tmp_path / "it")
    leave(made)
    before = names(tmp_path)
    with pytest.raises(ValueError, match="after commit or discard"):
        made.write(b"late")
    assert names(tmp_path) == before


@pytest.mark.parametrize("effect", ["append", "sync", "rename"])
def test_a_file_in_pieces_that_fails_leaves_everything_as_it_was(
    tmp_path: Path, effect: str
) -> None:
    files.write_atomic(tmp_path / "it", b"before")
    made = files.AtomicFile(tmp_path / "it")
    with files.using(FailingDisk(effect)), pytest.raises(OSError, match="No space left"):
        made.write(b"after")
        made.commit()
    made.discard()
    assert (tmp_path / "it").read_bytes() == b"before"
    assert names(tmp_path) == ["it"]
