"""The newest files of a run folder, listed again only when a folder has changed."""

from __future__ import annotations

import contextlib
import heapq
import os
from pathlib import Path

from understudy.core.files import TEMPORARY
from understudy.telemetry.run_view import RunFile, RunFiles

_COUNT = 3
_DIGITS = 20
"""Nanoseconds since 1970, at the beginning of an episode's name."""


class NewestFiles:
    """Of one run folder. `read` costs three `stat` calls where no file came or went."""

    def __init__(self, root: Path, *, count: int = _COUNT) -> None:
        self._root = root
        self._count = count
        self._episodes: dict[str, tuple[int, tuple[RunFile, ...]]] = {}
        self._version: tuple[int, RunFile | None] = (-1, None)

    def read(self) -> RunFiles:
        return RunFiles(
            buffer=self._newest_episodes("buffer"),
            archive=self._newest_episodes("archive"),
            version=self._newest_version(),
        )

    def _newest_episodes(self, folder: str) -> tuple[RunFile, ...]:
        changed = _changed(self._root / folder)
        known = self._episodes.get(folder)
        if known is None or known[0] != changed:
            # The names begin with the time, so that only the newest files are looked at.
            newest = heapq.nlargest(self._count, _episode_names(self._root / folder))
            found = (_file(self._root, f"{folder}/{name}") for name in newest)
            known = changed, tuple(one for one in found if one is not None)
            self._episodes[folder] = known
        return known[1]

    def _newest_version(self) -> RunFile | None:
        changed = _changed(self._root / "versions")
        if self._version[0] != changed:
            numbers = [name for name in _names(self._root / "versions") if name.isdecimal()]
            newest = max(numbers, default=None)
            found = None if newest is None else _version(self._root, f"versions/{newest}")
            self._version = changed, found
        return self._version[1]


def _changed(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except OSError:  # a folder that is not there yet, or no longer
        return []


def _episode_names(folder: Path) -> list[str]:
    return [
        name for name in _names(folder) if name.endswith(".npz") and not name.startswith(TEMPORARY)
    ]


def _file(root: Path, name: str) -> RunFile | None:
    with contextlib.suppress(OSError):  # moved on this very moment
        found = (root / name).stat()
        digits = name.rpartition("/")[2][:_DIGITS]
        at = int(digits) / 1e9 if len(digits) == _DIGITS and digits.isdecimal() else found.st_mtime
        return RunFile(name=name, bytes=found.st_size, at=at)
    return None


def _version(root: Path, name: str) -> RunFile | None:
    with contextlib.suppress(OSError):  # pruned this very moment
        found = [path.stat() for path in (root / name).iterdir()]
        return RunFile(
            name=name,
            bytes=sum(one.st_size for one in found),
            at=max((one.st_mtime for one in found), default=0.0),
        )
    return None
