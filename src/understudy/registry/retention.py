"""Retention: which versions are kept, and why; pruning removes all others.

`reasons` is the policy, a pure function. Without bound are kept the newest versions, the head and
its parent, what a pointer names, what a person ever pinned as champion and what the promotion needs
(`note_needed`). Within `registry.keep_bytes` are kept besides: the best, the last of each mode and
session, and a history that is thinned with age. The history depends on the versions alone and not
on the clock: where the bytes suffice, pruning after every version leaves what pruning once at the
end would leave.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

import msgspec

from understudy.core import files
from understudy.core.errors import FileFormatError
from understudy.core.seals import seal, unseal
from understudy.registry.pointers import NAMES
from understudy.registry.run_folder import RunFolder
from understudy.registry.scores import Score, best_versions
from understudy.registry.versions import Manifest

GOOD = "good"
"""A counter of versions: the last version that a learner can go back to after a collapse."""
_BEST = 5
_SESSIONS = 20
_HISTORY = (("day", 86_400.0, 365), ("hour", 3_600.0, 24), ("minute", 60.0, 60))
"""The last version of each of the newest so many days, hours and minutes that have any."""


class VersionFacts(NamedTuple):
    """What the policy needs to know of a version."""

    number: int
    created_at: float
    bytes: int
    session: int = 0
    mode: str = ""


class NeededVersions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the promotion may play next: champion, former champions and canary.

    The pointers do not say all of it: a pin hides the champion of the log, and policy `latest`
    moves the pointer with every version.
    """

    sequence: int = 0
    """The record of the promotion log after which it is so."""
    versions: tuple[int, ...] = ()
    """Ascending."""


def needed(folder: RunFolder) -> NeededVersions:
    """What the promotion noted last; nothing in a run without promotion.

    Raises:
        FileFormatError: The note is damaged.
    """
    path = _needed_path(folder)
    try:
        body = unseal(path.read_bytes())
    except FileNotFoundError:
        return NeededVersions()
    if body is None:
        raise FileFormatError(f"{path}: damaged; a bot that opens the run writes it again")
    return msgspec.json.decode(body, type=NeededVersions)


def note_needed(folder: RunFolder, sequence: int, versions: Iterable[int]) -> None:
    """Keep these versions from now on, as record `sequence` says, and no longer the ones before.

    A process that has read less of the log than the one that wrote the note leaves it.
    """
    now = NeededVersions(sequence, tuple(sorted(versions)))
    try:
        before = needed(folder)
    except FileFormatError:
        before = NeededVersions(versions=(-1,))
    if before.versions != now.versions and before.sequence <= sequence:
        files.write_atomic(_needed_path(folder), seal(msgspec.json.encode(now)))


def _needed_path(folder: RunFolder) -> Path:
    return folder.promotion / "needed.json"


def reasons(
    versions: Sequence[VersionFacts],
    *,
    keep_newest: int,
    keep_bytes: int,
    named: Mapping[int, Sequence[str]],
    best: Sequence[int] = (),
) -> dict[int, tuple[str, ...]]:
    """The versions to keep, each with why; a version that is not among them may go.

    `named` are versions that stay whatever they cost, with their reasons; `best` are the best ones,
    best first. The other reasons take turns until `keep_bytes` are spent: a small bound leaves a
    little of each reason, and a larger one keeps all that the smaller one keeps.
    """
    newest_first = sorted(versions, key=lambda one: one.number, reverse=True)
    facts = {one.number: one for one in versions}
    kept: dict[int, list[str]] = {
        number: list(named[number]) for number in facts if named.get(number)
    }
    for one in newest_first[:keep_newest]:
        kept.setdefault(one.number, []).append("newest")
    spent = 0
    for number, reason in _wanted(newest_first, [n for n in best if n in facts]):
        if number not in kept:
            spent += facts[number].bytes
            if spent > keep_bytes:
                break
        kept.setdefault(number, []).append(reason)
    return {number: tuple(why) for number, why in sorted(kept.items())}


def kept(folder: RunFolder) -> dict[int, tuple[str, ...]]:
    """The versions of a run folder that pruning keeps, each with why; damaged ones are left out."""
    manifests = dict(_readable(folder))
    head = folder.versions.head()
    named: dict[int, list[str]] = {}
    for name in NAMES:
        record = folder.pointers.read(name)
        if record is not None:
            named.setdefault(record.version, []).append(name)
    for version in folder.pointers.pinned("champion"):
        named.setdefault(version, []).append("pinned")
    for version in needed(folder).versions:
        named.setdefault(version, []).append("promotion")
    if head is not None:
        parent, good = manifests[head].parent, manifests[head].counters.get(GOOD)
        for number, why in ((head, "head"), (parent, "parent"), (good, "good")):
            if number:
                named.setdefault(number, []).append(why)
    return reasons(
        [_facts(manifest) for manifest in manifests.values()],
        keep_newest=max(folder.config.registry.keep_versions, 2),
        keep_bytes=folder.config.registry.keep_bytes,
        named=named,
        best=best_versions(() if head is None else manifests[head].scores, manifests)[:_BEST],
    )


def prune(folder: RunFolder) -> list[int]:
    """Remove every version that nothing keeps; none while it cannot be read what is needed."""
    newest = folder.config.registry.keep_versions
    if len(folder.versions.numbers()) <= newest:  # reading all manifests would be for nothing
        return []
    try:
        keep = kept(folder)
    except FileFormatError:
        return []
    return folder.versions.prune(keep_newest=newest, keep=keep)


def scores_of(folder: RunFolder) -> tuple[Score, ...]:
    """How the versions of a run played, as its head knows it."""
    head = folder.versions.head_manifest()
    return () if head is None else head.scores


def _wanted(newest_first: Sequence[VersionFacts], best: Sequence[int]) -> Iterable[tuple[int, str]]:
    """Versions with a reason, in the order in which they are kept: each reason in turn."""
    modes = _last_of_each(newest_first, lambda one: one.mode or None)
    sessions = _last_of_each(newest_first, lambda one: one.session or None, limit=_SESSIONS)
    turns = [
        [(number, "best") for number in best],
        [(one.number, f"mode {one.mode}") for one in modes],
        [(one.number, "session") for one in sessions],
    ]
    for name, width_s, limit in _HISTORY:
        last = _last_of_each(newest_first, _time_bucket(width_s), limit=limit)
        turns.append([(one.number, name) for one in last])
    for turn in zip_longest(*turns):
        yield from (wanted for wanted in turn if wanted is not None)


def _time_bucket(width_s: float) -> Callable[[VersionFacts], Hashable]:
    return lambda one: one.created_at // width_s


def _last_of_each(
    newest_first: Sequence[VersionFacts],
    group: Callable[[VersionFacts], Hashable],
    *,
    limit: int | None = None,
) -> list[VersionFacts]:
    """The newest version of each group, of the newest `limit` groups; None is not a group."""
    last: dict[Hashable, VersionFacts] = {}
    for one in newest_first:
        if (key := group(one)) is not None:
            last.setdefault(key, one)
    return list(islice(last.values(), limit))


def _readable(folder: RunFolder) -> Iterable[tuple[int, Manifest]]:
    for number in folder.versions.numbers():
        try:
            yield number, folder.versions.manifest(number)
        except (FileFormatError, FileNotFoundError):
            continue


def _facts(manifest: Manifest) -> VersionFacts:
    return VersionFacts(
        manifest.number,
        manifest.created_at,
        sum(file.bytes for file in manifest.files.values()),
        manifest.session,
        manifest.mode,
    )
