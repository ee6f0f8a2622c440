"""Versions: one immutable directory each, committed by one rename.

The rename to the next number is the commit *and* the fence: if the number exists, another learner
won and the loser raises `Fenced`. The head is the highest directory that verifies. A directory that
does not verify is never loaded and never counted, and its number is not used again. What a version
ingested stays known when it goes: `pruned.jsonl` keeps it, up to a bound (`forget_oldest`).
Manifests and pointers are sealed: their checksum is on the line before them, so a reader sees them
whole or not at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.arrays import read_bytes
from understudy.core.errors import Fenced, FileFormatError, RunFolderError
from understudy.core.seals import seal, unseal
from understudy.policy import weights as weight_files
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.registry.comparisons import Comparison
from understudy.registry.scores import Score

SCHEMA = 1
WEIGHTS = "weights.npz"
LEARNER = "learner.npz"
MANIFEST = "manifest.json"
_PRUNED = "pruned.jsonl"
_MAX_MANIFEST = 64 * 2**20
_DIGITS = 8
_NEWEST_BYTES = 2**21
_LEAST_BYTES = 40
"""Of an episode in `pruned.jsonl`."""
_LINE = 1000
_FORGOTTEN = ""
"""In the first line of `pruned.jsonl`, in place of an id."""


class FileSeal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a file of a version must be."""

    bytes: int
    sha256: str


class ReplayEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An episode that may be sampled again: where it lies and how often it was sampled."""

    name: str
    samples: int


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a version is, where it comes from and what it has seen."""

    schema: int = SCHEMA
    number: int
    parent: int | None
    created_at: float
    spec: PolicySpec
    ingested: dict[str, str] = {}
    """Episodes ingested since the parent: id to file name."""
    replay: dict[str, ReplayEntry] = {}
    """Episodes that may be sampled again, by id."""
    counters: dict[str, int] = {}
    """Totals with those of all ancestors (matches, steps, updates); `ingested`: of all versions."""
    metrics: dict[str, float] = {}
    """What the last batch looked like."""
    session: int = 0
    """The first number of its session: from a learner's start, or a rollback, to the next one."""
    mode: str = ""
    """`learn` or `shadow`: the policy or the rules decided in the episode that was ingested last;
    `train`; `import`; empty: not known."""
    scores: tuple[Score, ...] = ()
    """How the versions so far played, of those that are still there, oldest first."""
    comparisons: tuple[Comparison, ...] = ()
    """Behind a server: what the rewards of the last decisions are measured against."""
    files: dict[str, FileSeal] = {}


class Versions:
    """The versions of one run folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._looked_at = 0
        """The size at which `forget_oldest` last counted."""
        files.make_folders(root)

    def numbers(self) -> list[int]:
        """Every number that is taken, ascending, verified or not."""
        return sorted(
            int(path.name)
            for path in self.root.iterdir()
            if len(path.name) == _DIGITS and path.name.isdecimal()
        )

    def head(self) -> int | None:
        """The highest version that verifies."""
        manifest = self.head_manifest()
        return None if manifest is None else manifest.number

    def head_manifest(self) -> Manifest | None:
        """The manifest of the highest version that verifies."""
        for number in reversed(self.numbers()):
            with contextlib.suppress(FileFormatError, OSError):
                return self.verify(number)
        return None

    def commit(self, manifest: Manifest, contents: Mapping[str, bytes]) -> Manifest:
        """Make a version durable under `manifest.number`; `Fenced` if that number is taken."""
        sealed = msgspec.structs.replace(
            manifest, files={name: seal_of(data) for name, data in contents.items()}
        )
        named = {**contents, MANIFEST: seal(msgspec.json.encode(sealed))}
        try:
            files.commit_folder(self.folder(manifest.number), named)
        except FileExistsError as error:
            raise Fenced(
                f"version {manifest.number} exists already: another learner works on {self.root}"
            ) from error
        return sealed

    def copied(self, number: int, contents: Mapping[str, bytes]) -> Manifest:
        """Commit a version of another run folder: all its files, as `contents` gives them there.

        Raises:
            FileFormatError: They are not what their manifest says.
            FileExistsError: The number is taken.
        """
        manifest = _decoded_manifest(number, contents.get(MANIFEST, b""))
        for name, expected in manifest.files.items():
            if name not in contents or seal_of(contents[name]) != expected:
                raise FileFormatError(f"version {number}: {name} does not match its checksum")
        if contents.keys() != {*manifest.files, MANIFEST}:
            raise FileFormatError(f"version {number}: files that its manifest does not name")
        files.commit_folder(self.folder(number), contents)
        return manifest

    def contents(self, number: int) -> dict[str, bytes]:
        """All files of a version, checked, the manifest among them."""
        manifest = self.manifest(number)
        found = {name: self.read(manifest, name) for name in manifest.files}
        return {**found, MANIFEST: self._manifest_bytes(number)}

    def manifest_seal(self, number: int) -> FileSeal | None:
        """What identifies a version among those of several run folders; None: it is not here."""
        try:
            return seal_of(self._manifest_bytes(number))
        except FileNotFoundError:
            return None

    def manifest(self, number: int) -> Manifest:
        """The manifest of a version; `FileFormatError` if it was tampered with or damaged."""
        return _decoded_manifest(number, self._manifest_bytes(number))

    def _manifest_bytes(self, number: int) -> bytes:
        return read_bytes(self.folder(number) / MANIFEST, limit=_MAX_MANIFEST)

    def verify(self, number: int) -> Manifest:
        """Check every byte of a version against its manifest."""
        manifest = self.manifest(number)
        for name in manifest.files:
            self.read(manifest, name)
        return manifest

    def read(self, manifest: Manifest, name: str) -> bytes:
        """One file of a version, checked against its seal."""
        expected = manifest.files[name]
        try:
            data = read_bytes(self.folder(manifest.number) / name, limit=expected.bytes)
        except FileNotFoundError as error:
            raise FileFormatError(f"version {manifest.number}: {name} is missing") from error
        if seal_of(data) != expected:
            raise FileFormatError(f"version {manifest.number}: {name} does not match its checksum")
        return data

    def existing(self, number: int) -> Manifest:
        """The manifest of a version that a person named."""
        try:
            return self.manifest(number)
        except FileNotFoundError as error:
            raise RunFolderError(
                f"version {number} is not in {self.root} (there: {_some(self.numbers())})"
            ) from error

    def policy(self, number: int) -> Policy:
        """A version, ready to act."""
        manifest = self.existing(number)
        data = self.read(manifest, WEIGHTS)
        weights = weight_files.decode(manifest.spec, data, what=f"version {number}: {WEIGHTS}")
        return Policy(manifest.spec, weights, number)

    def prune(self, *, keep_newest: int, keep: Collection[int]) -> list[int]:
        """Remove old versions: never the head, its parent, nor one of `keep`."""
        numbers = self.numbers()
        spared = {*keep, *numbers[-max(keep_newest, 2) :]}
        head = self.head()
        if head is not None:
            spared |= {head, self.manifest(head).parent or head}
        doomed = [number for number in numbers if number not in spared]
        for number in doomed:
            self._remember(number)
            files.remove_folder(self.folder(number))
        return doomed

    def ingested_by_pruned(self, *, newest_only: bool = False) -> dict[str, str]:
        """What versions ingested that are gone: id to file name, as in a manifest. `newest_only`:
        of those that went last, some ten thousand episodes, which take a moment to read."""
        ingested: dict[str, str] = {}
        decoder = msgspec.json.Decoder(dict[str, str])
        for line in self._pruned_lines(_NEWEST_BYTES if newest_only else None):
            with contextlib.suppress(
                msgspec.MsgspecError, UnicodeDecodeError
            ):  # cut off by a crash, or by `newest_only`
                ingested |= decoder.decode(line)
        ingested.pop(_FORGOTTEN, None)
        return ingested

    def forgotten(self) -> str:
        """The file name of the newest episode that was forgotten; empty: none was."""
        for line in self._pruned_lines()[:1]:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                return msgspec.json.decode(line, type=dict[str, str]).get(_FORGOTTEN, "")
        return ""

    def forget_oldest(self, *, most: int, keep: Callable[[str, str], bool]) -> int:
        """Let `pruned.jsonl` have at most so many episodes; returns how many were forgotten.

        The oldest go, by their file names, which begin with the time, a tenth more than must. The
        first line then names the newest of them: no episode up to that time is ever learned from
        again (`Intake`). One that `keep` (of id and file name) is true of is not forgotten.
        """
        path = self.root / _PRUNED
        size = path.stat().st_size if path.exists() else 0
        # Parsing a million ids takes a second: only where there may be too many, and more than
        # the last time.
        if size < max(most * _LEAST_BYTES, 1.1 * self._looked_at):
            return 0
        self._looked_at = size
        before = self.forgotten()
        ingested = self.ingested_by_pruned()
        if len(ingested) <= most:
            return 0
        by_age = sorted((name, key) for key, name in ingested.items() if not keep(key, name))
        doomed = by_age[: len(ingested) - int(0.9 * most)]
        if not doomed:
            return 0
        for _, key in doomed:
            del ingested[key]
        head = {_FORGOTTEN: max(before, doomed[-1][0])}
        pairs = list(ingested.items())
        lines = [msgspec.json.encode(head)]
        lines += [
            msgspec.json.encode(dict(pairs[begin : begin + _LINE]))
            for begin in range(0, len(pairs), _LINE)
        ]
        files.write_atomic(path, b"\n".join(lines) + b"\n")
        self._looked_at = 0
        return len(doomed)

    def _pruned_lines(self, most_bytes: int | None = None) -> list[bytes]:
        """Those of `pruned.jsonl`, or the last of them."""
        try:
            with (self.root / _PRUNED).open("rb") as file:
                if most_bytes is not None:
                    size = file.seek(0, os.SEEK_END)
                    file.seek(max(0, size - most_bytes))
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def _remember(self, number: int) -> None:
        """A manifest is the proof that its episodes were ingested; it outlives its version."""
        try:
            ingested = self.manifest(number).ingested
        except (FileFormatError, FileNotFoundError):
            return  # damaged: nothing is known of it
        # It begins with a line break, so that it never continues a line that a crash cut off.
        line = b"\n" + msgspec.json.encode(ingested) + b"\n"
        files.append(self.root / _PRUNED, line, synced=True)

    def folder(self, number: int) -> Path:
        """Where a version lies."""
        return self.root / f"{number:0{_DIGITS}d}"


def _decoded_manifest(number: int, data: bytes) -> Manifest:
    what = f"version {number}"
    body = unseal(data)
    if body is None:
        raise FileFormatError(f"{what}: {MANIFEST} does not match its checksum")
    try:
        manifest = msgspec.json.decode(body, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{what}: {MANIFEST}: {error}") from error
    if manifest.schema != SCHEMA or manifest.number != number:
        raise FileFormatError(f"{what}: {MANIFEST} is of schema {manifest.schema} for version "
                              f"{manifest.number}")  # fmt: skip
    return manifest


def seal_of(data: bytes) -> FileSeal:
    """What a file with these bytes must be."""
    return FileSeal(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def _some(numbers: list[int]) -> str:
    if not numbers:
        return "none"
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
