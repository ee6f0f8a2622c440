"""The spool: the durable queue of episodes, `buffer/` to `archive/` or `quarantine/`.

When `put` returns, the episode survives a power cut. File names are made here, from the time and
random bytes; no text of a bot or a file becomes a name. A file that a user put into the buffer
keeps its name if that is plain, and else gets a new one.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.arrays import read_bytes
from understudy.core.clock import Clock
from understudy.core.config import RetentionConfig, SpoolConfig
from understudy.core.errors import FileFormatError
from understudy.experience import episode as episodes
from understudy.experience.episode import Episode
from understudy.policy.spec import PolicySpec

_SUFFIX = ".npz"
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,116}\.npz")
"""A name that every file can hold, short enough to append a suffix."""
_REASON = ".reason.json"
_LONGEST_REASON = 2**16
IMPORTS = "imported.txt"
"""In the run folder: one line for each file that was imported."""


class QuarantineReason(msgspec.Struct, frozen=True):
    """Why a file was set aside, and when, in seconds since 1970; 0: not known."""

    reason: str = "no reason was written"
    at: float = 0.0


class Spool:
    """One spool in one run folder; any number of bots may put, one learner takes."""

    def __init__(self, root: Path, spec: PolicySpec, clock: Clock) -> None:
        self.buffer = root / "buffer"
        self.archived = root / "archive"
        self.quarantined = root / "quarantine"
        self._spec = spec
        self._clock = clock
        for folder in (self.buffer, self.archived, self.quarantined):
            files.make_folders(folder)
        files.sweep(self.buffer)

    def put(self, episode: Episode) -> str:
        """Writes an episode to the buffer; returns its name."""
        name = self._new_name()
        files.write_atomic(self.buffer / name, episodes.encode(episode))
        return name

    def put_copy(self, name: str, data: bytes) -> bool:
        """Write the file of an episode that another spool had under this name; False: it is or was
        here already. What is in it is checked when it is loaded.

        Raises:
            FileFormatError: The name is not one that a spool gives.
        """
        if not _PLAIN.fullmatch(name) or name.startswith("."):
            raise FileFormatError(f"{name!a}: no name of an episode")
        if any((one / name).exists() for one in (self.buffer, self.archived, self.quarantined)):
            return False
        files.write_atomic(self.buffer / name, data)
        return True

    def pending(self) -> list[str]:
        """Names in the buffer, oldest first."""
        return sorted(name for name in _names(self.buffer) if _PLAIN.fullmatch(name))

    def adopt(self) -> dict[str, str]:
        """Renames files of the buffer whose names are not plain; new name -> old name."""
        renamed = {}
        for odd in [name for name in _names(self.buffer) if not _PLAIN.fullmatch(name)]:
            name = self._new_name()
            with contextlib.suppress(OSError):  # another process has it open: tried again later
                files.move(self.buffer / odd, self.buffer / name)
                renamed[name] = ascii(odd)
        return renamed

    def load(self, name: str) -> Episode:
        """An episode of the buffer; `FileFormatError` if it is not a good one."""
        return self._read(self.buffer / name)

    def load_archived(self, name: str) -> Episode:
        """An episode that was learned from before; FileNotFoundError if it was pruned."""
        return self._read(self.archived / name)

    def archive(self, name: str) -> None:
        """Moves an episode that was learned from to the archive. May be repeated after a crash."""
        _move_if_there(self.buffer / name, self.archived / name)

    def quarantine(self, name: str, reason: str) -> None:
        """Moves an episode to the quarantine, with a reason beside it."""
        note = msgspec.json.encode(QuarantineReason(reason, self._clock.time()))
        files.write_atomic(self.quarantined / f"{name}{_REASON}", note)
        for folder in (self.buffer, self.archived):
            _move_if_there(folder / name, self.quarantined / name)

    def prune(self, limits: SpoolConfig, *, keep: Collection[str]) -> int:
        """Removes the oldest archived episodes beyond the limits, but none of `keep`."""
        names = sorted(_names(self.archived))
        sizes = {name: (self.archived / name).stat().st_size for name in names}
        count, total = len(names), sum(sizes.values())
        oldest_ns = (self._clock.time() - limits.archive_age_s) * 1e9
        removed = 0
        for name in names:
            expired = name[:20].isdecimal() and int(name[:20]) < oldest_ns
            if not expired and count <= limits.archive_matches and total <= limits.archive_bytes:
                break
            if name not in keep:
                files.remove(self.archived / name)
                count, total, removed = count - 1, total - sizes[name], removed + 1
        return removed

    def prune_quarantine(self, limits: RetentionConfig) -> int:
        """Removes what was quarantined first, beyond the limits, with its reason; returns how many
        episodes."""
        found = []
        for name in _names(self.quarantined):
            path, reason = self.quarantined / name, self.quarantined / f"{name}{_REASON}"
            with contextlib.suppress(FileNotFoundError):
                since = (reason if reason.exists() else path).stat().st_mtime
                found.append((since, name, path.stat().st_size))
        total, removed = sum(size for _, _, size in found), 0
        for _, name, size in sorted(found):
            few = len(found) - removed <= limits.quarantine_files
            if few and total <= limits.quarantine_bytes:
                break
            for path in (self.quarantined / name, self.quarantined / f"{name}{_REASON}"):
                with contextlib.suppress(FileNotFoundError):
                    files.remove(path)
            total, removed = total - size, removed + 1
        return removed

    def _new_name(self) -> str:
        return f"{int(self._clock.time() * 1e9):020d}-{secrets.token_hex(8)}{_SUFFIX}"

    def _read(self, path: Path) -> Episode:
        data = read_bytes(path, limit=episodes.MAX_BYTES)
        return episodes.decode(data, self._spec, what=path.name)


def saved_at(name: str) -> float:
    """When an episode was saved, by its file name, in seconds since 1970; 0: that does not say."""
    return int(name[:20]) / 1e9 if name[:20].isdecimal() and len(name) > 20 else 0.0


def files_of(
    root: Path, folders: Collection[str] = ("buffer", "archive", "quarantine")
) -> dict[str, Path]:
    """Every episode in the spool of a run folder, by name. Changes nothing there."""
    paths = [root / name for name in folders]
    return {name: one / name for one in paths if one.is_dir() for name in _names(one)}


def reason_of(path: Path) -> QuarantineReason:
    """Why a file lies in quarantine; one that cannot be read says so itself."""
    try:
        data = read_bytes(path.with_name(f"{path.name}{_REASON}"), limit=_LONGEST_REASON)
        return msgspec.json.decode(data, type=QuarantineReason)
    except FileNotFoundError:
        return QuarantineReason()
    except (OSError, FileFormatError, msgspec.MsgspecError, UnicodeDecodeError):
        return QuarantineReason("its reason cannot be read")


def _names(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:  # a path and a stat for each would be slow with 10^5 files
        for entry in entries:
            name = entry.name
            if name.endswith(_SUFFIX) and not name.startswith(files.TEMPORARY) and _is_file(entry):
                yield name


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads nowhere
        return False


def _move_if_there(source: Path, target: Path) -> None:
    try:
        files.move(source, target)
    except FileNotFoundError:
        if source.exists():  # then it is the target's folder that is missing
            raise
