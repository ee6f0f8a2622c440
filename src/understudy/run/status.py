"""Matches that the journal of a run lost, counted from what is on disk.

A full disk, or a kill at the wrong moment, costs journal entries, but neither the episode nor the
version that they tell of. Nothing is written here.

A summary knows the ids of the newest 10,000 matches. Where a run has more, losses are looked for
among the episodes that were saved since the oldest of those; earlier ones are not looked for any
more. The archive keeps 5,000 episodes by default, so that an episode on disk is rarely older.
"""

from __future__ import annotations

import contextlib
import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from understudy.core.arrays import read_bytes
from understudy.core.errors import FileFormatError
from understudy.experience import episode as episodes
from understudy.experience.ledger.recovery import is_served
from understudy.experience.spool import files_of, saved_at
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest
from understudy.telemetry import events
from understudy.telemetry.journal import Entry, Reader
from understudy.telemetry.status import Status
from understudy.telemetry.summary import JournalFolds, KnownMatch


def stream_entries(folder: RunFolder) -> Iterator[Entry]:
    """Every entry of the journal, in the order of time, and then one for each match on disk that it
    lost. What retention deleted is not among them."""
    known: dict[str, KnownMatch] = {}
    for entry in Reader(folder.journal).stream():
        if isinstance(entry.e, events.MatchFinished):
            known[entry.e.id] = KnownMatch(entry.t, entry.e.saved)
        yield entry
    yield from lost_matches(folder, known, since=0.0).entries


class LostMatches(NamedTuple):
    """What the journal of a run does not say of its matches."""

    entries: tuple[Entry, ...] = ()
    """Of matches that it does not name, in the order of time."""
    saved: frozenset[str] = frozenset()
    """Ids of matches whose episode was saved after their entry said that it was not."""


def lost_matches(
    folder: RunFolder, known: Mapping[str, KnownMatch], *, since: float
) -> LostMatches:
    """Compare the spool of a run with the matches that its journal names.

    Manifests name the episodes that were learned from, so of those only the ones that the journal
    lacks are opened. The others are opened only if there are more of them than the journal knows
    of. A lost match whose episode has left the archive cannot be counted.

    Args:
        folder: The run; that of a server journals no matches, and has lost none.
        known: The newest matches of the journal, by id.
        since: Only episodes that were saved later are looked at; 0: all.
    """
    if is_served(folder.root):
        return LostMatches()
    files = {
        name: path
        for name, path in files_of(folder.root).items()
        if not since or saved_at(name) > since
    }
    ingested = _ingested(folder, since)
    kept = {key: files.get(name) for key, name in ingested.items() if not _imported(key)}
    others = files.keys() - ingested.values()
    if len(others) > sum(one.saved and key not in ingested for key, one in known.items()):
        kept |= dict(_identified(files[name] for name in others))
    lost = [path for key, path in kept.items() if key not in known and path is not None]
    entries = [entry for entry in (_entry(path, folder) for path in lost) if entry is not None]
    return LostMatches(
        entries=tuple(sorted(entries, key=lambda one: one.t)),
        saved=frozenset(key for key, one in known.items() if not one.saved and key in kept),
    )


def with_lost(folds: JournalFolds, lost: LostMatches, *, run: str) -> JournalFolds:
    """Other folds, with what was lost; these where nothing was. Lost matches are at their time
    among the recent entries, whose own order stays."""
    entries = [one for one in lost.entries if _id(one) not in folds.matches]
    saved = [key for key in lost.saved if key in folds.matches and not folds.matches[key].saved]
    if not entries and not saved:
        return folds
    summary = folds.state()
    now = summary.status.now
    summary.status.now = msgspec.structs.replace(
        now,
        run=run,
        unsaved=max(now.unsaved - len(saved), 0),
        episodes=msgspec.structs.replace(now.episodes, written=now.episodes.written + len(saved)),
    )
    whole = JournalFolds(run, folds.patience, summary)
    for entry in entries:
        whole.add(entry)
    recent = heapq.merge(folds.recent, entries, key=lambda one: one.t)
    whole.recent = deque(recent, maxlen=folds.recent.maxlen)
    return whole


def _id(entry: Entry) -> str:
    assert isinstance(entry.e, events.MatchFinished)
    return entry.e.id


def _ingested(folder: RunFolder, since: float) -> dict[str, str]:
    """Episodes that versions ingested, id to file name: those saved since, and maybe others."""
    found = folder.versions.ingested_by_pruned(newest_only=bool(since))
    for number in reversed(folder.versions.numbers()):
        with contextlib.suppress(FileFormatError, OSError):  # damaged, or pruned this moment
            manifest = folder.versions.manifest(number)
            if manifest.created_at < since:
                break
            found |= manifest.ingested
    return found


def _identified(paths: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    for path in paths:
        with contextlib.suppress(FileFormatError, OSError):  # in quarantine, or moved this moment
            key = episodes.read_meta(path).id
            if not _imported(key):
                yield key, path


def _imported(key: str) -> bool:
    """Whether this is the id of an import: no match of this run, and journalled as a number."""
    return key.startswith(episodes.IMPORTED)


def _entry(path: Path, folder: RunFolder) -> Entry | None:
    """What the journal would have said of this episode, but for how long it took."""
    try:
        data = read_bytes(path, limit=episodes.MAX_BYTES)
        episode = episodes.decode(data, folder.spec, what=path.name)
    except (FileFormatError, OSError):
        return None
    event = events.MatchFinished(
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


def newest_manifest(folder: RunFolder) -> Manifest | None:
    """Of the highest version whose manifest can be read; None: there is none."""
    for number in reversed(folder.versions.numbers()):
        with contextlib.suppress(FileFormatError, OSError):  # damaged, or pruned this moment
            return folder.versions.manifest(number)
    return None


def at_least(status: Status, newest: Manifest | None, versions: int) -> Status:
    """Counts that are lower than what lies on disk are raised to it: by the newest version and by
    how many versions there are."""
    told = status.episodes
    counted = 0 if newest is None else newest.counters.get("ingested", 0)
    ingested = max(told.ingested, counted)
    return msgspec.structs.replace(
        with_versions(status, 0 if newest is None else newest.number, versions),
        files_processed=max(status.files_processed, ingested),
        episodes=msgspec.structs.replace(
            told,
            # A server and `train` write no matches of a bot, and count what they learn from alone;
            # what is learned on another machine is from other bots, too.
            written=max(told.written, ingested)
            if told.written and not status.relay_to
            else told.written,
            ingested=ingested,
            archived=max(told.archived, status.archive_file_count),
            quarantined=max(told.quarantined, status.quarantine_file_count),
        ),
    )


def with_versions(status: Status, newest: int, count: int) -> Status:
    """The same for versions alone; those that a relay brought are in no journal."""
    return msgspec.structs.replace(
        status, version=max(status.version, newest), versions=max(status.versions, count)
    )
