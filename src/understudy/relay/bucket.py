"""What lies in the store of a run: its layout, and the formats of its objects.

    run.json                                  what the run is for, and its settings
    commits/00000007.json                     what the learner's side says: the newest one counts
    versions/00000012.TOKEN/weights.npz       a file of a version
    episodes/TIME-MACHINE-00000003.bundle     matches of one machine
    results/MACHINE-00000007-00000012.json    records 7 to 12 of the promotion log of one machine
    promotion/00000001-00000064.TOKEN.part    records 1 to 64 of the promotion log that is judged by
    refused/…                                 bundles that cannot be read

All but the files of versions are sealed (a checksum comes first), and those, and the parts of the
log, are sealed in the commit that names them. Nothing is ever overwritten.

A **commit** is the only word of the learner's side: which versions there are, what the pointers
say, which bundles are done with, and what the promotion log says. Commits are numbered without
gaps, and a number is created once: that is the fence between two learners. Whatever a learner
uploads or deletes follows from a commit that it has made.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from understudy.core.errors import FileFormatError
from understudy.core.seals import seal, unseal
from understudy.gates.promotion.records import Assigned, Declared, Resolved
from understudy.registry.run_folder import Identity
from understudy.registry.versions import FileSeal, seal_of
from understudy.relay.stores import ObjectStore

SCHEMA = 1
RUN = "run.json"
COMMITS = "commits/"
VERSIONS = "versions/"
EPISODES = "episodes/"
RESULTS = "results/"
LOG = "promotion/"
REFUSED = "refused/"
MAX_BUNDLE_BYTES = 256 * 2**20
_MOST_BEYOND = 10_000
_COMMIT = re.compile(rf"{COMMITS}(\d{{8}})\.json")
_BUNDLE = re.compile(rf"{EPISODES}(\d{{20}})-([0-9a-f]{{12}})-(\d{{8}})\.bundle")
_RESULTS = re.compile(rf"{RESULTS}([0-9a-f]{{12}})-(\d{{8}})-(\d{{8}})\.json")
_FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,100}")
_TOKEN = re.compile(r"[0-9a-f]{12}")


class RunRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the run is for, said by the first machine; the others must fit."""

    schema: int = SCHEMA
    identity: Identity
    config: dict[str, Any] = {}
    """For machines that have no run folder yet."""
    served: bool = False
    """Whether a server made it: its learner is the continuous one."""
    by_evidence: bool = False
    """Whether the rules play until evidence says otherwise (mode `shadow` or `auto`); else every
    version becomes the champion (mode `learn`)."""


class StoredVersion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version in the store."""

    number: int
    token: str
    """Of the process that uploaded it"""
    files: dict[str, FileSeal]
    """All files, the manifest among them"""

    def key(self, name: str) -> str:
        return f"{VERSIONS}{self.number:08d}.{self.token}/{name}"


class StoredPointer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pointer, as the learner's run folder has it."""

    version: int
    pinned: bool = False


class StoredRecords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Some records of the promotion log that is judged by, in the store."""

    first: int
    last: int
    token: str
    """Of the process that uploaded them"""
    file: FileSeal

    @property
    def key(self) -> str:
        return f"{LOG}{self.first:08d}-{self.last:08d}.{self.token}.part"


class DoneBundles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The bundles of one machine that need not be kept: a version has learned from their matches,
    or the learner has set them aside."""

    upto: int = 0
    """All up to this number…"""
    beyond: tuple[int, ...] = ()
    """…and these."""

    def has(self, number: int) -> bool:
        return number <= self.upto or number in self.beyond

    def plus(self, number: int) -> DoneBundles:
        beyond = {*self.beyond, number} if number > self.upto else set(self.beyond)
        upto = self.upto
        if len(beyond) > _MOST_BEYOND:
            # A machine sends in the order of its numbers: one that so many others have passed is
            # not in the store any more, or waits in the learner's run folder.
            upto = min(beyond) - 1
        while upto + 1 in beyond:
            upto += 1
            beyond.remove(upto)
        return DoneBundles(upto, tuple(sorted(beyond)))


class Commit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the learner's side says."""

    schema: int = SCHEMA
    sequence: int
    at: float
    machine: str
    """The learner's; see `relay.local`"""
    host: str = ""
    """Its name, for people"""
    token: str
    """Of the process that wrote it"""
    versions: tuple[StoredVersion, ...] = ()
    """Those that the pointers name"""
    pointers: dict[str, StoredPointer] = {}
    done: dict[str, DoneBundles] = {}
    """By machine"""
    log: tuple[StoredRecords, ...] = ()
    """The promotion log, without gaps"""
    taken: dict[str, int] = {}
    """By machine: the last record of its own log that is in `log`, or need not be"""

    @property
    def log_end(self) -> int:
        return self.log[-1].last if self.log else 0

    def version(self, number: int) -> StoredVersion | None:
        return next((one for one in self.versions if one.number == number), None)

    def is_done(self, bundle: BundleKey) -> bool:
        return self.done.get(bundle.machine, DoneBundles()).has(bundle.number)


class BundleKey(NamedTuple):
    """The name of a bundle; ordered by the time of its oldest match, so that no machine is served
    before the others."""

    time_ns: int
    machine: str
    number: int
    """Of this machine, from 1 without gaps"""

    def __str__(self) -> str:
        return f"{EPISODES}{self.time_ns:020d}-{self.machine}-{self.number:08d}.bundle"

    @classmethod
    def parsed(cls, key: str) -> BundleKey | None:
        found = _BUNDLE.fullmatch(key)
        return None if found is None else cls(int(found[1]), found[2], int(found[3]))


class ResultsKey(NamedTuple):
    """The name of records that a machine sent: the first and the last by the numbers of its own
    log. Names may overlap, where an answer was lost."""

    machine: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{RESULTS}{self.machine}-{self.first:08d}-{self.last:08d}.json"

    @classmethod
    def parsed(cls, key: str) -> ResultsKey | None:
        found = _RESULTS.fullmatch(key)
        return None if found is None else cls(found[1], int(found[2]), int(found[3]))


class SentRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A declaration, or a match that is over."""

    number: int
    record: Declared | Assigned
    result: Resolved | None = None


class SentRecords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Records of one machine, in the order of its log."""

    schema: int = SCHEMA
    records: tuple[SentRecord, ...]


class _LogPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    schema: int
    bodies: list[bytes]


class _Bundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    schema: int
    episodes: dict[str, bytes]


R = TypeVar("R", RunRecord, Commit, SentRecords, _LogPart, _Bundle)


def encode_bundle(episodes: dict[str, bytes]) -> bytes:
    """Files of the spool by name; the same bytes for the same files."""
    return seal(msgspec.msgpack.encode(_Bundle(SCHEMA, episodes)))


def decode_bundle(data: bytes, *, what: str) -> dict[str, bytes]:
    """The files of a bundle; `FileFormatError` if it is damaged."""
    return _decoded(data, _Bundle, what=what, decode=msgspec.msgpack.decode).episodes


def encode(record: RunRecord | Commit | SentRecords) -> bytes:
    return seal(msgspec.json.encode(record))


def decode_sent(data: bytes, *, what: str) -> SentRecords:
    """What a machine sent of its log; `FileFormatError` if it is damaged."""
    return _decoded(data, SentRecords, what=what)


def encode_log_part(bodies: list[bytes]) -> bytes:
    return seal(msgspec.msgpack.encode(_LogPart(SCHEMA, bodies)))


def read_version(store: ObjectStore, stored: StoredVersion) -> dict[str, bytes]:
    """The files of a version; FileNotFoundError where it is gone, FileFormatError where it came
    damaged."""
    contents = {name: store.get(stored.key(name)) for name in stored.files}
    for name, data in contents.items():
        if seal_of(data) != stored.files[name]:
            raise FileFormatError(f"{store.name}: version {stored.number}: {name} came damaged")
    return contents


def read_log_part(store: ObjectStore, stored: StoredRecords) -> list[bytes]:
    """The bodies of these records; FileNotFoundError where they are gone, FileFormatError where
    they came damaged."""
    data = store.get(stored.key)
    what = f"{store.name}: {stored.key}"
    if seal_of(data) != stored.file:
        raise FileFormatError(f"{what} came damaged")
    bodies = _decoded(data, _LogPart, what=what, decode=msgspec.msgpack.decode).bodies
    if len(bodies) != stored.last - stored.first + 1:
        raise FileFormatError(f"{what}: {len(bodies)} records")
    return bodies


def read_run(store: ObjectStore) -> RunRecord | None:
    """What the run in this store is for; None where there is none."""
    try:
        return _decoded(store.get(RUN), RunRecord, what=f"{store.name}: {RUN}")
    except FileNotFoundError:
        return None


def commit_key(sequence: int) -> str:
    return f"{COMMITS}{sequence:08d}.json"


def commit_numbers(store: ObjectStore) -> list[int]:
    """The commits that are kept, ascending."""
    found = (_COMMIT.fullmatch(one.key) for one in store.list(COMMITS))
    return sorted(int(one[1]) for one in found if one is not None)


def read_commit(store: ObjectStore, sequence: int) -> Commit:
    """One commit; FileNotFoundError where it is gone, FileFormatError where it is damaged."""
    key = commit_key(sequence)
    what = f"{store.name}: {key}"
    commit = _decoded(store.get(key), Commit, what=what)
    if commit.sequence != sequence:
        raise FileFormatError(f"{what}: it is commit {commit.sequence}")
    for version in commit.versions:
        if not _TOKEN.fullmatch(version.token) or not all(map(_FILE.fullmatch, version.files)):
            raise FileFormatError(f"{what}: no name of a file of version {version.number}")
    if not all(_TOKEN.fullmatch(one.token) for one in commit.log):
        raise FileFormatError(f"{what}: no name of a part of the promotion log")
    return commit


def newest_commit(store: ObjectStore, known: Commit | None = None) -> Commit | None:
    """What the learner's side says now; None: nothing yet. `known` is not read again."""
    while numbers := commit_numbers(store):
        if known is not None and numbers[-1] == known.sequence:
            return known
        try:
            return read_commit(store, numbers[-1])
        except FileNotFoundError:  # many others since the listing
            continue
    return None


def _decoded(
    data: bytes, kind: type[R], *, what: str, decode: Callable[..., R] = msgspec.json.decode
) -> R:
    body = unseal(data)
    if body is None:
        raise FileFormatError(f"{what} does not match its checksum")
    try:
        record = decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{what}: {error}; a newer Understudy may have written it") from error
    if record.schema != SCHEMA:
        raise FileFormatError(f"{what}: schema {record.schema}, this program reads {SCHEMA}")
    return record
