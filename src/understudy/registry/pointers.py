"""Pointers: `candidate` names the newest version, `canary` the one that is tested, `champion` the
one that plays; 0 is the rules.

A pointer is a folder of small numbered records, created exclusively and never changed; the highest
one whose checksum holds is what the pointer says. A rollback *pins*: no automatic rule moves a
pinned pointer, only a person does. Old records are removed, except those that pinned.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Literal

import msgspec

from understudy.core import files
from understudy.core.clock import Clock
from understudy.core.seals import seal, unseal

Name = Literal["candidate", "champion", "canary"]
NAMES: tuple[Name, ...] = ("candidate", "champion", "canary")
LATEST = "latest"
"""The rule by which every version that is committed becomes the candidate, and the champion too
unless the promotion gate moves that."""
PROMOTION = "promotion"
"""The rule by which evidence moves champion and canary."""
RELAY = "relay"
"""The rule by which a player's side follows the pointers of the learner's run folder."""
_DIGITS = 8
_KEEP = 20
_PATIENCE_S = 1.0
_LOOK_AGAIN_S = 0.01


class PointerRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One move of a pointer."""

    sequence: int
    version: int
    pinned: bool
    by: str
    """The rule or the person that moved it: `latest`, `promotion`, `relay`, `rollback`,
    `release`."""
    at: float


class Pointers:
    """The pointers of one run folder."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self.folders = tuple(root / name for name in NAMES)
        for folder in self.folders:
            files.make_folders(folder)

    def read(self, name: Name) -> PointerRecord | None:
        """What the pointer says; a damaged record is as if it were not there."""
        folder = self._root / name
        for sequence in reversed(record_numbers(folder)):
            record = _decode(_path(folder, sequence))
            if record is not None:
                return record
        return None

    def pinned(self, name: Name) -> set[int]:
        """Every version that a person ever pinned this pointer to."""
        folder = self._root / name
        records = (_decode(_path(folder, sequence)) for sequence in record_numbers(folder))
        return {record.version for record in records if record is not None and record.pinned}

    def move(self, name: Name, version: int, *, by: str) -> bool:
        """An automatic rule moves a pointer; False if it is pinned."""
        return self._append(name, version, pinned=False, by=by, forced=False)

    def pin(self, name: Name, version: int, *, by: str) -> None:
        """A person moves a pointer, and no rule may move it until `release`."""
        self._append(name, version, pinned=True, by=by, forced=True)

    def release(self, name: Name) -> None:
        """Let the automatic rule move the pointer again."""
        current = self.read(name)
        if current is not None and current.pinned:
            self._append(name, current.version, pinned=False, by="release", forced=True)

    def _append(self, name: Name, version: int, *, pinned: bool, by: str, forced: bool) -> bool:
        """Create the next record of a pointer; False if it is pinned and the move is not `forced`.

        There is no lock: a record is created exclusively under the next free number, and the mover
        that finds the number taken reads the pointer again. An automatic rule must never move past
        a pin, so it reads the numbers first and the newest record after: a pin that comes in
        between takes the number that the rule is about to create. Only the newest `_KEEP` records
        stay, and those that pinned; so a forced move checks afterwards that its number is not one
        that so many other moves used and cleared away while it was written.
        """
        folder = self._root / name
        patient_until = time.monotonic() + _PATIENCE_S
        while True:
            taken = record_numbers(folder)
            if not forced and _unreadable(folder, taken) and time.monotonic() < patient_until:
                # Where there are no hard links a record has its name before its content: it may be
                # a pin. One that a crash left damaged stays so, and is passed over.
                time.sleep(_LOOK_AGAIN_S)
                continue
            current = self.read(name)
            if current is not None and current.pinned and not forced:
                return False
            if current is not None and (current.version, current.pinned, current.by) == (
                version,
                pinned,
                by,
            ):
                return True
            sequence = max(taken, default=0) + 1
            record = PointerRecord(
                sequence=sequence, version=version, pinned=pinned, by=by, at=self._clock.time()
            )
            try:
                sealed = seal(msgspec.json.encode(record))
                files.create_exclusive(_path(folder, sequence), sealed)
            except FileExistsError:
                continue
            if forced and max(record_numbers(folder)) >= sequence + _KEEP:
                with contextlib.suppress(FileNotFoundError):  # cleared away once more
                    files.remove(_path(folder, sequence))
                continue
            for old in taken[:-_KEEP]:
                kept = _decode(_path(folder, old))
                if kept is None or not kept.pinned:
                    with contextlib.suppress(FileNotFoundError):  # another mover was faster
                        files.remove(_path(folder, old))
            return True


def record_numbers(folder: Path) -> list[int]:
    """The numbers of all records that a folder has as `NNNNNNNN.json`, ascending."""
    # Not `glob`, which takes several times as long: pointers are read before every match.
    names = (path.name for path in folder.iterdir())
    stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def _unreadable(folder: Path, taken: list[int]) -> bool:
    return bool(taken) and _decode(_path(folder, taken[-1])) is None


def _path(folder: Path, sequence: int) -> Path:
    return folder / f"{sequence:0{_DIGITS}d}.json"


def _decode(path: Path) -> PointerRecord | None:
    try:
        body = unseal(path.read_bytes())
    except FileNotFoundError:
        return None
    return None if body is None else msgspec.json.decode(body, type=PointerRecord)
