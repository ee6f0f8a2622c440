"""Forgetting a client: what it taught is set aside, and no version learns from it any more.

Nothing is deleted: episodes go to quarantine with the reason beside them. What a version learned
from them before stays in that version; the report says where to go back to.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from understudy.core import files
from understudy.core.clock import Clock
from understudy.core.errors import FileFormatError
from understudy.experience.episode import Episode
from understudy.experience.spool import Spool
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal


@dataclass
class Forgotten:
    """What became of a client's episodes."""

    run: Path
    client: str
    waiting: int = 0
    """Episodes that nothing had been learned from"""
    archived: int = 0
    """Episodes that were learned from, or were too old for it"""
    decisions: int = 0
    learned_by: int | None = None
    """The first version that is kept and learned from one of them"""
    unread: list[str] = field(default_factory=list)
    """Files that could not be read: their client is unknown"""

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "run": str(self.run),
            "client": self.client,
            "waiting": self.waiting,
            "archived": self.archived,
            "decisions": self.decisions,
            "learned_by": self.learned_by,
            "unread": self.unread,
        }


def forget(run: Path, client: str, *, clock: Clock) -> Forgotten:
    """Set aside every waiting and archived episode of a client (its `client` tag).

    May run beside a learner and a server: a file that the learner moves meanwhile is found where it
    went, since the buffer is looked through before the archive.
    """
    folder = RunFolder.load(run, clock)
    spool = Spool(folder.root, folder.spec, clock)
    journal = Journal(folder.journal, "forget", clock)
    report = Forgotten(folder.root, client)
    keys: set[str] = set()
    for where in (spool.buffer, spool.archived):
        for path in sorted(where.glob("*.npz")):
            episode = _read(spool, path, report)
            if episode is None or episode.meta.tags.get("client") != client:
                continue
            reason = f"client {client} was forgotten"
            if not _set_aside(spool, path, reason, at=clock.time()):
                continue
            journal.write(events.EpisodeQuarantined(name=path.name, reason=reason))
            keys.add(episode.meta.id)
            report.decisions += len(episode)
            if where == spool.buffer:
                report.waiting += 1
            else:
                report.archived += 1
    report.learned_by = _first_learner(folder, keys)
    return report


def _read(spool: Spool, path: Path, report: Forgotten) -> Episode | None:
    load = spool.load if path.parent == spool.buffer else spool.load_archived
    try:
        return load(path.name)
    except FileNotFoundError:
        return None  # the learner was faster: it is in the archive, or pruned
    except (FileFormatError, OSError):
        report.unread.append(path.name)
        return None


def _set_aside(spool: Spool, path: Path, reason: str, *, at: float) -> bool:
    """Into quarantine, the reason first; False if it was moved meanwhile."""
    note = spool.quarantined / f"{path.name}.reason.json"
    files.write_atomic(note, msgspec.json.encode({"reason": reason, "at": at}))
    try:
        files.move(path, spool.quarantined / path.name)
    except FileNotFoundError:
        files.remove(note)
        return False
    return True


def _first_learner(folder: RunFolder, keys: set[str]) -> int | None:
    """The first version that is kept and ingested one of these episodes."""
    for number in folder.versions.numbers() if keys else ():
        try:
            manifest = folder.versions.manifest(number)
        except FileFormatError:
            continue  # `models list` tells of it
        if keys & manifest.ingested.keys():
            return number
    return None
