"""The files of a pool of snapshots: weights alone, whole or not there, and checked when read.

A file belongs to the pool exactly if the newest committed version lists it, with its checksum; a
file that is not listed is harmless and goes at the next sweep. Nothing here holds weights: memory
stays the same however many snapshots there are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.arrays import read_bytes
from understudy.core.errors import FileFormatError
from understudy.core.opponents import name_of
from understudy.policy import weights as weight_files
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights

_FILE = re.compile(r"step-(\d{9,})\.npz")


class Snapshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A past set of weights: after how many steps it was taken, and what its file must be."""

    steps: int
    sha256: str

    @property
    def name(self) -> str:
        """`step-65536`: how people, tables and ratings call it."""
        return name_of(self.steps)


def leaver(steps: Sequence[int]) -> int:
    """Which of too many snapshots leaves: its index in `steps` [N], ascending, N at least 2.

    The one whose neighbours are nearest to each other, never the first nor the last: what is left
    lies evenly over the whole run, so that early strategies, which a learner forgets how to beat,
    stay among its opponents. Of two snapshots the newer one stays.
    """
    if len(steps) == 2:
        return 0
    gaps = [after - before for before, after in zip(steps, steps[2:], strict=False)]
    return 1 + gaps.index(min(gaps))


class Pool:
    """The snapshots in one folder, for networks of one spec."""

    def __init__(self, folder: Path, spec: PolicySpec) -> None:
        self.folder = folder
        self._spec = spec

    def path(self, steps: int) -> Path:
        """Where a snapshot lies; names sort by age."""
        return self.folder / f"step-{steps:09d}.npz"

    def save(self, steps: int, weights: Weights) -> Snapshot:
        """Make a snapshot durable. What lay there unlisted (a crash, a rollback) is replaced."""
        files.make_folders(self.folder)
        data = weight_files.encode(weights)
        files.write_atomic(self.path(steps), data)
        return Snapshot(steps, hashlib.sha256(data).hexdigest())

    def load(self, snapshot: Snapshot) -> Weights:
        """Weights that are what was saved, fit the spec and are finite; else `FileFormatError`."""
        return weight_files.decode(
            self._spec, self._read(snapshot), what=str(self.path(snapshot.steps))
        )

    def lost(self, snapshots: Collection[Snapshot]) -> list[str]:
        """Those that are not what they were: deleted since, or replaced by another of that name."""
        names = []
        for snapshot in snapshots:
            try:
                self._read(snapshot)
            except FileFormatError:
                names.append(snapshot.name)
        return names

    def check(self, snapshots: Collection[Snapshot]) -> None:
        """A snapshot that is not what is listed is a `FileFormatError`: now, not hours later."""
        for snapshot in snapshots:
            self._read(snapshot)

    def names(self) -> list[str]:
        """Every snapshot that has a file, oldest first, listed or not."""
        return [name_of(steps) for steps in sorted(self._files())]

    def sweep(self, keep: Collection[str]) -> list[str]:
        """Remove the files of all but these, and what was left unfinished; the names removed."""
        if not self.folder.is_dir():
            return []
        files.sweep(self.folder, older_than_s=0.0)  # one learner writes here, and it is calling
        doomed = [steps for steps in sorted(self._files()) if name_of(steps) not in keep]
        for steps in doomed:
            files.remove(self.path(steps))
        return [name_of(steps) for steps in doomed]

    def _read(self, snapshot: Snapshot) -> bytes:
        path = self.path(snapshot.steps)
        try:
            data = read_bytes(path)
        except FileNotFoundError as error:
            raise FileFormatError(_missing(path)) from error
        if hashlib.sha256(data).hexdigest() != snapshot.sha256:
            raise FileFormatError(
                f"{path}: does not match the checksum that the league has of {snapshot.name}; "
                "put the file back as it was, or start a new run"
            )
        return data

    def _files(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        found = (_FILE.fullmatch(path.name) for path in self.folder.iterdir())
        return [int(match[1]) for match in found if match]


def _missing(path: Path) -> str:
    return f"{path}: this snapshot is missing, but the league lists it; put the file back"
