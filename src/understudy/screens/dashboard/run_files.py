"""What lies in a run folder beside its journal: recent episodes, the quarantine, and disk use.

Each reader belongs to one run and is kept in its `PartCache`. It looks at the folders at most every
few seconds, reads a file once, and bounds how many it reads, whatever the age of the run.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from understudy.core.arrays import read_bytes
from understudy.core.errors import FileFormatError
from understudy.experience import episode as episodes
from understudy.experience.served import ServedDecisions
from understudy.experience.spool import (
    IMPORTS,
    QuarantineReason,
    files_of,
    reason_of,
    saved_at,
)
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.screens.dashboard.page import RunReading

T = TypeVar("T")

_EVERY_S = 5.0
_SEGMENTS = 96
"""Newest episodes that are looked at."""
_QUARANTINED = 40
"""Of which the whole reason and the sender are read; of all others the kind of reason."""
_MOST_FILES = 4_000
"""Of one part of a run folder that are counted."""


class _Looking(Generic[T]):
    """A value that is made again when it is asked for, but not more often than every few s."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: tuple[float, T] | None = None

    def read(self, now: float) -> T:
        if self._made is None or not 0.0 <= now - self._made[0] < _EVERY_S:
            self._made = now, self._make()
        return self._made[1]


class RecentDecisions(NamedTuple):
    """The decisions of the newest episodes on disk."""

    episodes: int
    newest: str
    """The name of the last one."""
    decisions: ServedDecisions


class _RecentReader:
    """Keeps what it read of each file: files never change, and leave by age."""

    def __init__(self, root: Path, spec: PolicySpec) -> None:
        self._root = root
        self._spec = spec
        self._kept: dict[str, ServedDecisions | None] = {}

    def read(self) -> RecentDecisions | None:
        found = files_of(self._root, ("archive", "buffer"))
        names = sorted(heapq.nlargest(_SEGMENTS, found))
        kept: dict[str, ServedDecisions | None] = {}
        for name in names:
            with contextlib.suppress(OSError):  # moved this moment: it is read the next time
                kept[name] = self._kept[name] if name in self._kept else self._decoded(found[name])
        self._kept = kept
        known = {name: one for name, one in kept.items() if one is not None}
        if not known:
            return None
        return RecentDecisions(len(known), max(known), ServedDecisions.joined([*known.values()]))

    def _decoded(self, path: Path) -> ServedDecisions | None:
        """None: it is damaged, and `quarantine/` will say so."""
        try:
            data = read_bytes(path, limit=episodes.MAX_BYTES)
            return ServedDecisions.of(episodes.decode(data, self._spec, what=path.name))
        except FileFormatError:
            return None


class SpoolAges(NamedTuple):
    """When the episodes of each folder were saved, in seconds since 1970."""

    buffer: tuple[float, ...]
    archive: tuple[float, ...]
    replay: tuple[float, ...]
    """Those that may be sampled again, by the newest version."""
    samples: tuple[int, ...]
    """How often each of those was sampled."""
    imported: int
    """Files that were ever imported."""


class QuarantinedFile(NamedTuple):
    """A file that was set aside."""

    name: str
    bytes: int
    why: QuarantineReason
    sender: str
    """Client, opponent or other tags of its episode; empty: not known."""


class Quarantine(NamedTuple):
    """What was set aside."""

    kinds: Counter[str]
    """Files by kind of reason."""
    newest: tuple[QuarantinedFile, ...]
    """Newest first."""


class _QuarantineReader:
    def __init__(self, root: Path) -> None:
        self._folder = root / "quarantine"
        self._root = root
        self._reasons: dict[str, QuarantineReason] = {}
        self._files: dict[str, QuarantinedFile] = {}

    def read(self) -> Quarantine:
        found = files_of(self._root, ("quarantine",))
        self._reasons = {
            name: self._reasons.get(name) or reason_of(path) for name, path in found.items()
        }
        kinds = Counter(kind_of_reason(one.reason, name) for name, one in self._reasons.items())
        newest = heapq.nlargest(
            _QUARANTINED, self._reasons, key=lambda name: (self._reasons[name].at, name)
        )
        self._files = {
            name: self._files.get(name) or self._file(found[name], self._reasons[name])
            for name in newest
        }
        return Quarantine(kinds, tuple(self._files.values()))

    def _file(self, path: Path, why: QuarantineReason) -> QuarantinedFile:
        size, sender = 0, ""
        with contextlib.suppress(OSError):
            size = path.stat().st_size
        with contextlib.suppress(FileFormatError, OSError):
            tags = episodes.read_meta(path).tags
            sender = ", ".join(f"{key} {value}" for key, value in tags.items())
        return QuarantinedFile(path.name, size, why, sender)


def kind_of_reason(reason: str, name: str) -> str:
    """A reason without what differs from file to file: its name, figures and names after it."""
    head = reason.removeprefix(f"{name}: ").partition(":")[0].strip()
    words = [word for word in head.split() if not any(char.isdigit() for char in word)]
    return " ".join(words) or "other"


class DiskPart(NamedTuple):
    """A part of a run folder."""

    name: str
    files: int
    bytes: int
    more: bool = False
    """Whether it has more files, which were not counted."""


class _DiskReader:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._versions: dict[str, tuple[int, int]] = {}
        """Files and bytes of each version, which never change."""

    def read(self) -> tuple[DiskPart, ...]:
        parts, files, total = [], 0, 0
        with contextlib.suppress(OSError), os.scandir(self._root) as entries:
            for entry in entries:
                if entry.name == "versions":
                    parts.append(self._of_versions(Path(entry.path)))
                elif entry.is_dir(follow_symlinks=False):
                    parts.append(_part(entry.name, Path(entry.path)))
                else:
                    files, total = files + 1, total + _size(entry)
        parts.append(DiskPart("other files", files, total))
        return tuple(sorted((one for one in parts if one.files), key=lambda one: -one.bytes))

    def _of_versions(self, folder: Path) -> DiskPart:
        with contextlib.suppress(OSError):
            names = [one.name for one in folder.iterdir() if one.name.isdecimal()]
            self._versions = {
                name: self._versions.get(name) or _part(name, folder / name)[1:3] for name in names
            }
        counts = self._versions.values()
        return DiskPart("versions", sum(one for one, _ in counts), sum(one for _, one in counts))


def _part(name: str, folder: Path) -> DiskPart:
    count = total = 0
    for size in _sizes(folder):
        if count == _MOST_FILES:
            return DiskPart(name, count, total, more=True)
        count, total = count + 1, total + size
    return DiskPart(name, count, total)


def _sizes(folder: Path) -> Iterator[int]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _sizes(Path(entry.path))
            else:
                yield _size(entry)


def _size(entry: os.DirEntry[str]) -> int:
    with contextlib.suppress(OSError):  # gone this moment
        found = entry.stat(follow_symlinks=False)
        return found.st_size if stat.S_ISREG(found.st_mode) else 0
    return 0


def recent_decisions(reading: RunReading) -> RecentDecisions | None:
    """Of the newest episodes on disk; None: there are none."""
    folder = reading.folder
    return looked(reading, "recent", lambda: _RecentReader(folder.root, folder.spec).read)


def quarantine(reading: RunReading) -> Quarantine:
    return looked(reading, "quarantine", lambda: _QuarantineReader(reading.folder.root).read)


def disk_use(reading: RunReading) -> tuple[DiskPart, ...]:
    """The parts of the run folder, the largest first."""
    return looked(reading, "disk", lambda: _DiskReader(reading.folder.root).read)


def spool_ages(reading: RunReading) -> SpoolAges:
    folder = reading.folder
    return looked(reading, "ages", lambda: lambda: _ages(folder))


def looked(reading: RunReading, name: str, make: Callable[[], Callable[[], T]]) -> T:
    """What a reader of this run found. `make` makes the reader, once; a second is not asked more
    often than every few seconds."""
    looking = reading.cache.read(f"run_files.{name}", 0, lambda: _Looking(make()))
    return looking.read(reading.status.at)


def _ages(folder: RunFolder) -> SpoolAges:
    head = None
    for number in reversed(folder.versions.numbers()):
        with contextlib.suppress(FileFormatError, OSError):
            head = folder.versions.manifest(number)
            break
    replay: Mapping[str, int] = {}
    if head is not None:
        replay = {one.name: one.samples for one in head.replay.values()}
    return SpoolAges(
        buffer=_saved(files_of(folder.root, ("buffer",))),
        archive=_saved(files_of(folder.root, ("archive",))),
        replay=_saved(replay),
        samples=tuple(replay.values()),
        imported=_lines(folder.root / IMPORTS),
    )


def _saved(names: Mapping[str, object]) -> tuple[float, ...]:
    """Files that a user put there say no time, and are left out."""
    return tuple(t for t in map(saved_at, names) if t)


def _lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(piece.count(b"\n") for piece in iter(lambda: file.read(2**20), b""))
    except OSError:
        return 0


def action_counts(decisions: ServedDecisions) -> list[tuple[tuple[int, ...], int]]:
    """Every action that occurs with its count, the most frequent first."""
    used, counts = np.unique(decisions.actions, axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [(tuple(int(part) for part in used[at]), int(counts[at])) for at in order]
