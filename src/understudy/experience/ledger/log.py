"""The ledger's files: `00000001.log`, `00000002.log` and on, only ever appended to.

A file is removed when nothing in it is needed, and only after every file before it. So whatever a
record refers to is in the same file or an earlier one, for as long as either of them is there.
Appending survives SIGKILL at once and a power cut after `sync`.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from understudy.core import files
from understudy.experience.ledger.records import Header, Record, frame

_SUFFIX = ".log"
_DIGITS = 8


@dataclass(eq=False)
class LogFile:
    """One file, and the decisions that it has to be kept for."""

    path: Path
    size: int = 0
    ids: deque[int] = field(default_factory=deque)

    def needed(self, live: Container[int]) -> bool:
        """Whether a decision in it is still needed; forgets those that are not."""
        while self.ids and self.ids[0] not in live:
            self.ids.popleft()
        return bool(self.ids)


class Log:
    """All files, oldest first; the last one is appended to. Every call under the ledger's lock."""

    def __init__(self, folder: Path, *, rotate_bytes: int, header: Callable[[], Header]) -> None:
        self._folder = folder
        self._rotate_bytes = rotate_bytes
        self._header = header
        self.files: list[LogFile] = [LogFile(path, path.stat().st_size) for path in paths(folder)]
        self._current: LogFile | None = None
        """None: the next append begins a file. Nothing is appended to a file of an earlier process,
        nor after a write that failed: what half a record at the end looks like stays unambiguous.
        """
        self._dirty: list[LogFile] = []
        self._new_name = False

    def append(self, records: Sequence[Record], ids: Iterable[int] = ()) -> None:
        """Write records in one go; the file is kept for as long as one of `ids` is needed."""
        data = frame(records)
        if self._current is not None and self._current.size >= self._rotate_bytes:
            self.end()
        current = self._current = self._current or self._begin()
        try:
            files.append(current.path, data)
        except OSError:
            self.end()
            raise
        current.size += len(data)
        current.ids.extend(ids)
        if current not in self._dirty:
            self._dirty.append(current)

    def end(self) -> None:
        """The next append begins a file."""
        if self._current is not None:
            files.release(self._current.path)
            self._current = None

    def take_dirty(self) -> tuple[list[LogFile], bool]:
        """Files with something that was not synced, and whether one of them is new."""
        dirty, new_name = self._dirty, self._new_name
        self._dirty, self._new_name = [], False
        return dirty, new_name

    def put_back(self, dirty: list[LogFile]) -> None:
        """They could not be synced after all."""
        self._dirty = dirty + [one for one in self._dirty if one not in dirty]
        self._new_name = True

    def take_done(self, live: Container[int]) -> list[LogFile]:
        """Files, oldest first, that nothing needs any more."""
        done = 0
        while done < len(self.files) - 1 and not self.files[done].needed(live):
            done += 1
        taken, self.files = self.files[:done], self.files[done:]
        return taken

    def _begin(self) -> LogFile:
        number = _number(self.files[-1].path) + 1 if self.files else 1
        path = self._folder / f"{number:0{_DIGITS}d}{_SUFFIX}"
        data = frame([self._header()])
        try:
            files.hold(path)
            files.append(path, data)
        except OSError:
            files.release(path)
            with contextlib.suppress(OSError):
                files.remove(path)
            raise
        self.files.append(LogFile(path, len(data)))
        self._new_name = True
        return self.files[-1]


def paths(folder: Path) -> list[Path]:
    """The files of a ledger, oldest first."""
    return sorted(_log_files(folder), key=_number)


def _log_files(folder: Path) -> Iterator[Path]:
    for path in folder.glob(f"*{_SUFFIX}"):
        if path.stem.isdecimal() and path.is_file():
            yield path


def _number(path: Path) -> int:
    return int(path.stem)
