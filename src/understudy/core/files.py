"""Every durable write of the project, in one place.

The promise: a name that a reader matches always names a whole file or directory. Data is written
under a temporary name, fsynced, renamed, and the folder is fsynced, so that neither SIGKILL nor a
power cut leaves half of anything under a real name. Readers load all bytes and close the file.

All effects go through one `Disk`, so that a test can record them and cut the power after each one,
with unsynced data dropped (tests/core/test_power_cut.py).
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

TEMPORARY = ".tmp-"
"""The prefix of unfinished files and folders; no reader matches it."""

_PATIENCE_S = 2.0
_ABANDONED_AFTER_S = 3600.0
_counter = itertools.count()


class Disk:
    """The effects on a file system that durable writing is made of."""

    def write(self, path: Path, data: bytes) -> None:
        """Writes a file without syncing it."""
        path.write_bytes(data)

    def claim(self, source: Path, target: Path) -> None:
        """Gives a file another name; FileExistsError if that is taken. May keep the old name."""
        if _WINDOWS:
            _patiently(lambda: source.rename(target))  # fails there if the name is taken
            return
        try:
            os.link(source, target)
        except FileExistsError:
            raise
        except OSError:  # a shared folder without hard links: the same, but not in one step
            with target.open("xb") as file:
                file.write(source.read_bytes())
                file.flush()
                os.fsync(file.fileno())

    def append(self, path: Path, data: bytes) -> None:
        """Appends bytes to a file, in one write."""
        held = _held.get(path)
        descriptor = _open_to_append(path) if held is None else held
        try:
            if os.write(descriptor, data) < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        finally:
            if held is None:
                os.close(descriptor)

    def sync(self, path: Path) -> None:
        """Syncs the content of a file."""
        descriptor = os.open(path, os.O_RDWR | _BINARY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_folder(self, path: Path) -> None:
        """Syncs the names in a folder (POSIX only)."""
        if not _WINDOWS:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Replaces a file; fails on a folder that is there already."""
        _patiently(lambda: source.replace(target) if source.is_file() else source.rename(target))

    def remove(self, path: Path) -> None:
        _patiently(path.unlink)

    def make_folder(self, path: Path) -> None:
        path.mkdir()

    def remove_folder(self, path: Path) -> None:
        _patiently(lambda: shutil.rmtree(path))


_WINDOWS = os.name == "nt"
_BINARY: int = getattr(os, "O_BINARY", 0)
_disk = Disk()
_held: dict[Path, int] = {}
"""Files that are kept open, and their descriptors."""


@contextlib.contextmanager
def using(disk: Disk) -> Iterator[None]:
    """Sends all effects through another disk inside the block."""
    global _disk  # noqa: PLW0603  swapped by tests alone
    before, _disk = _disk, disk
    try:
        yield
    finally:
        _disk = before


def write_atomic(path: Path, data: bytes) -> None:
    """Writes or replaces a file, whole and synced, or leaves everything as it was."""
    temporary = _temporary_beside(path)
    try:
        _disk.write(temporary, data)
        _disk.sync(temporary)
        _disk.rename(temporary, path)
    except OSError:
        _discard(temporary)
        raise
    _disk.sync_folder(path.parent)


class AtomicFile:
    """A file that is written piece by piece and gets its name once it is whole and synced.

    Leave it by `commit` or `discard`; a process that dies before leaves what `sweep` removes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = _temporary_beside(path)
        _disk.write(self._temporary, b"")
        self._left = False
        self.size = 0
        """Bytes written so far."""

    def write(self, data: bytes) -> None:
        """Append a piece, of a few megabytes at most; ValueError after `commit` or `discard`."""
        if self._left:  # the disk would make the temporary file anew
            raise ValueError(f"{self._path}: written to after commit or discard")
        _disk.append(self._temporary, data)
        self.size += len(data)

    def commit(self) -> None:
        """Give the file its name, and replace an older one of that name."""
        self._left = True
        try:
            _disk.sync(self._temporary)
            _disk.rename(self._temporary, self._path)
        except OSError:
            self.discard()
            raise
        _disk.sync_folder(self._path.parent)

    def discard(self) -> None:
        """Remove what was written."""
        self._left = True
        _discard(self._temporary)


def create_exclusive(path: Path, data: bytes) -> None:
    """Creates a file, whole and synced; FileExistsError if the name is taken."""
    temporary = _temporary_beside(path)
    try:
        _disk.write(temporary, data)
        _disk.sync(temporary)
        _disk.claim(temporary, path)
    finally:
        _discard(temporary)
    _disk.sync_folder(path.parent)


def commit_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Creates a folder with these files, whole and synced; FileExistsError if the name is taken."""
    temporary = _temporary_beside(path)
    _disk.make_folder(temporary)
    try:
        for name, data in files.items():
            _disk.write(temporary / name, data)
            _disk.sync(temporary / name)
        _disk.sync_folder(temporary)
        _disk.rename(temporary, path)
    except OSError as error:
        _discard(temporary)
        if path.exists():
            raise FileExistsError(str(path)) from error
        raise
    _disk.sync_folder(path.parent)


def append(path: Path, data: bytes, *, synced: bool = False) -> None:
    """Appends bytes in one write, which survives SIGKILL, and if synced a power cut."""
    _disk.append(path, data)
    if synced:
        _disk.sync(path)
        _disk.sync_folder(path.parent)


def hold(path: Path) -> None:
    """Keeps a file open for appending until `release`.

    Opening and closing a file release the GIL, and another thread may keep it for 5 ms each time:
    too long for an answer.
    """
    release(path)
    _held[path] = _open_to_append(path)


def release(path: Path) -> None:
    """Closes a held file; Windows cannot remove it before."""
    descriptor = _held.pop(path, None)
    if descriptor is not None:
        os.close(descriptor)


def sync(path: Path, *, name: bool = False) -> None:
    """Syncs what was appended to a file, and with `name` the folder that holds its name."""
    _disk.sync(path)
    if name:
        _disk.sync_folder(path.parent)


def move(source: Path, target: Path) -> None:
    """Renames a file without syncing: the caller finishes the move after a crash."""
    _disk.rename(source, target)


def remove(path: Path, *, synced: bool = False) -> None:
    """Removes a file; if synced, no power cut restores it."""
    _disk.remove(path)
    if synced:
        _disk.sync_folder(path.parent)


def remove_folder(path: Path) -> None:
    """Removes a folder so that no reader sees half of it."""
    doomed = _temporary_beside(path)
    _disk.rename(path, doomed)
    _disk.sync_folder(path.parent)  # else a power cut could keep the name and lose the content
    _disk.remove_folder(doomed)


def check_writable(folder: Path) -> None:
    """Writes a probe: permissions alone tell little on Windows, network shares and full disks."""
    probe = _temporary_beside(folder / "probe")
    _disk.write(probe, b"?")
    _disk.remove(probe)


def make_folders(path: Path) -> None:
    """Makes a folder and its parents, synced; existing ones are fine."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        try:
            _disk.make_folder(folder)
        except FileExistsError:
            continue
        _disk.sync_folder(folder.parent)


def sweep(folder: Path, *, older_than_s: float = _ABANDONED_AFTER_S) -> int:
    """Removes unfinished files of ended processes; returns how many."""
    swept = 0
    for path in folder.glob(f"{TEMPORARY}*"):
        try:
            if time.time() - path.stat().st_mtime < older_than_s:
                continue
            if path.is_dir():
                _disk.remove_folder(path)
            else:
                _disk.remove(path)
        except OSError:
            continue  # removed by another process, or open in one: harmless
        swept += 1
    return swept


def _open_to_append(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _BINARY, 0o644)


def _temporary_beside(path: Path) -> Path:
    return path.parent / f"{TEMPORARY}{os.getpid()}-{next(_counter)}-{time.monotonic_ns():x}"


def _discard(temporary: Path) -> None:
    """Best effort: no reader matches the name, so leaving it behind is harmless."""
    with contextlib.suppress(OSError):
        if temporary.is_dir():
            _disk.remove_folder(temporary)
        elif temporary.exists():
            _disk.remove(temporary)


def _patiently(effect: Callable[[], object]) -> None:
    """Retries for a moment: Windows refuses to move or remove files that are open."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            effect()
        except PermissionError:
            if not _WINDOWS or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
