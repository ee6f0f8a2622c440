"""The spool: the durable queue of episodes, `buffer/` to `archive/` or `quarantine/`.

When `put` returns, the episode survives a power cut. File names are made here, from time and
chance: nothing that a bot or a file says about itself ever becomes a name.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.arrays import read_bytes
from understudy.core.clock import Clock
from understudy.core.config import SpoolConfig
from understudy.experience import episode as episodes
from understudy.experience.episode import Episode
from understudy.policy.spec import PolicySpec

_SUFFIX = ".npz"


class Counts(msgspec.Struct, frozen=True):
    """How many files lie where."""

    buffer: int
    archive: int
    quarantine: int


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
        """Keep an episode for ever (or until it was learned from); returns its name."""
        name = f"{int(self._clock.time() * 1e9):020d}-{secrets.token_hex(8)}{_SUFFIX}"
        files.write_atomic(self.buffer / name, episodes.encode(episode))
        return name

    def pending(self) -> list[str]:
        """Names in the buffer, oldest first."""
        return _names(self.buffer)

    def load(self, name: str) -> Episode:
        """An episode of the buffer; `FileFormatError` if it is not a good one."""
        return self._read(self.buffer / name)

    def load_archived(self, name: str) -> Episode:
        """An episode that was learned from before; FileNotFoundError if it was pruned."""
        return self._read(self.archived / name)

    def archive(self, name: str) -> None:
        """Learned from: out of the buffer. May be called again after a crash."""
        _move_if_there(self.buffer / name, self.archived / name)

    def quarantine(self, name: str, reason: str) -> None:
        """Not to be learned from: set aside with a reason beside it."""
        note = msgspec.json.encode({"reason": reason, "at": self._clock.time()})
        files.write_atomic(self.quarantined / f"{name}.reason.json", note)
        _move_if_there(self.buffer / name, self.quarantined / name)

    def counts(self) -> Counts:
        """How many episodes lie where."""
        return Counts(
            buffer=len(_names(self.buffer)),
            archive=len(_names(self.archived)),
            quarantine=len(_names(self.quarantined)),
        )

    def prune(self, limits: SpoolConfig, *, keep: Collection[str]) -> int:
        """Remove the oldest archived episodes beyond the limits, but none of `keep`."""
        names = _names(self.archived)
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

    def _read(self, path: Path) -> Episode:
        data = read_bytes(path, limit=episodes.MAX_BYTES)
        return episodes.decode(data, self._spec, what=path.name)


def _names(folder: Path) -> list[str]:
    return sorted(
        path.name
        for path in folder.iterdir()
        if path.suffix == _SUFFIX and not path.name.startswith(files.TEMPORARY) and path.is_file()
    )


def _move_if_there(source: Path, target: Path) -> None:
    try:
        files.move(source, target)
    except FileNotFoundError:
        if source.exists():  # then it is the target's folder that is missing
            raise
