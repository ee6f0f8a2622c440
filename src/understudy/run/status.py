"""The status of a run folder, with what its journal lost counted from what is on disk.

A full disk, or a kill at the wrong moment, costs journal entries, but neither the episode nor the
version that they tell of. Nothing is written here: each reading counts again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from understudy.core.arrays import read_bytes
from understudy.core.errors import FileFormatError
from understudy.core.pause import read_pause
from understudy.experience import episode as episodes
from understudy.experience.ledger.recovery import LEDGER
from understudy.experience.spool import files_of
from understudy.legacy.experience import IMPORTED
from understudy.promotion.report import read_promotion
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest
from understudy.supervise.lock import learner_runs
from understudy.telemetry import events
from understudy.telemetry.fold import StatusFold, folders_of, recent_agreement
from understudy.telemetry.journal import Entry, Reader
from understudy.telemetry.promotion_stage import staged
from understudy.telemetry.status import Status, patience

_MATCH = events.MatchFinished


def read_status(folder: RunFolder) -> Status:
    """The status now, from the journal, the episodes, the versions and the learner's lock."""
    manifests = list(_manifests(folder))
    entries = _entries(folder, manifests)
    fold = StatusFold(str(folder.root), patience(folder.config))
    for entry in entries:
        fold.add(entry)
    status = fold.status(
        folders_of(folder.root),
        folder.clock.time(),
        read_pause(folder.root),
        learner_runs=learner_runs(folder.root),
    )
    promotion = read_promotion(folder)
    if promotion is not None:
        promotion = staged(promotion, agreement=recent_agreement(entries))
    return _at_least(msgspec.structs.replace(status, promotion=promotion), manifests)


def read_entries(folder: RunFolder) -> list[Entry]:
    """The journal, with an entry for each match on disk that it lost."""
    return _entries(folder, list(_manifests(folder)))


def _entries(folder: RunFolder, manifests: Sequence[Manifest]) -> list[Entry]:
    entries = Reader(folder.journal).new()
    if (folder.root / LEDGER).is_dir():  # a server journals no matches
        return entries
    return with_lost_matches(entries, folder, manifests)


def with_lost_matches(
    entries: Sequence[Entry], folder: RunFolder, manifests: Iterable[Manifest]
) -> list[Entry]:
    """The entries, and one for each match on disk that has none, in the order of time.

    Manifests name the episodes that were learned from, so of those only the ones that the journal
    lacks are opened. The others are opened only if there are more of them than the journal knows
    of. A lost match whose episode has left the archive cannot be counted.
    """
    journalled = {one.e.id: one.e.saved for one in entries if isinstance(one.e, _MATCH)}
    ingested = folder.versions.ingested_by_pruned()
    for manifest in manifests:
        ingested |= manifest.ingested
    files = files_of(folder.root)
    kept = {key: files.get(name) for key, name in ingested.items() if not _imported(key)}
    others = files.keys() - ingested.values()
    if len(others) > sum(saved and key not in ingested for key, saved in journalled.items()):
        kept |= dict(_identified(files[name] for name in others))
    lost = [path for key, path in kept.items() if key not in journalled and path is not None]
    told = [_corrected(one, kept) for one in entries]
    told += [entry for entry in (_entry(path, folder) for path in lost) if entry is not None]
    return sorted(told, key=lambda one: one.t)


def _identified(paths: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    for path in paths:
        with contextlib.suppress(FileFormatError, OSError):  # in quarantine, or moved this moment
            key = episodes.read_meta(path).id
            if not _imported(key):
                yield key, path


def _imported(key: str) -> bool:
    """Whether this is the id of an import: no match of this run, and journalled as a number."""
    return key.startswith(IMPORTED)


def _corrected(entry: Entry, kept: Collection[str]) -> Entry:
    """The same, but a match whose episode was saved after its entry is a saved one."""
    match entry.e:
        case events.MatchFinished(saved=False) as e if e.id in kept:
            return msgspec.structs.replace(entry, e=msgspec.structs.replace(e, saved=True))
    return entry


def _entry(path: Path, folder: RunFolder) -> Entry | None:
    """What the journal would have said of this episode, but for how long it took."""
    try:
        data = read_bytes(path, limit=episodes.MAX_BYTES)
        episode = episodes.decode(data, folder.spec, what=path.name)
    except (FileFormatError, OSError):
        return None
    event = _MATCH(
        id=episode.meta.id,
        outcome=episode.meta.outcome,
        decisions=len(episode),
        reward=float(episode.rewards.sum()),
        version=int(episode.versions[-1]),
        seconds=0.0,
        saved=True,
        tags=episode.meta.tags,
        fallback=int((~episode.sampled).sum()),
    )
    return Entry(t=episode.meta.finished_at, by="bot", e=event)


def _manifests(folder: RunFolder) -> Iterator[Manifest]:
    for number in folder.versions.numbers():
        with contextlib.suppress(FileFormatError, OSError):  # damaged, or pruned this moment
            yield folder.versions.manifest(number)


def _at_least(status: Status, manifests: Sequence[Manifest]) -> Status:
    """Counts that are lower than what lies on disk are raised to it."""
    told = status.episodes
    ingested = max([told.ingested, *(one.counters.get("ingested", 0) for one in manifests)])
    return msgspec.structs.replace(
        status,
        version=max([status.version, *(one.number for one in manifests)]),
        versions=max(status.versions, len(manifests)),
        files_processed=max(status.files_processed, ingested),
        episodes=msgspec.structs.replace(
            told,
            # A server and `train` write no matches of a bot, and count what they learn from alone.
            written=max(told.written, ingested) if told.written else 0,
            ingested=ingested,
            archived=max(told.archived, status.archive_file_count),
            quarantined=max(told.quarantined, status.quarantine_file_count),
        ),
    )
