"""Reading the files of a ledger: all of them when a process starts, or the counters alone.

Reading changes nothing. Damaged bytes and records that do not fit the run are reported and left
out; only a file of another schema is an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from understudy.core.errors import FileFormatError
from understudy.experience.episode import Outcome
from understudy.experience.ledger.index import DecisionCounts, EndedDecision
from understudy.experience.ledger.records import (
    ENDINGS,
    SCHEMA,
    Added,
    Carried,
    Closing,
    Cut,
    Header,
    Opened,
    Record,
    Sealed,
    Spooled,
    check_opened,
    read_frames,
)
from understudy.experience.ledger.store import LogFile, log_paths
from understudy.experience.ledger.territory_log import LoggedDecision, Segment
from understudy.policy.spec import PolicySpec

LEDGER = "ledger"
"""The name of its folder in a run folder. Only a server makes one."""


def is_served(run: Path) -> bool:
    """Whether a run folder is a server's: it learns from segments, not from matches."""
    return (run / LEDGER).is_dir()


@dataclass
class Recovered:
    """The state of a ledger as its files tell it."""

    entries: dict[int, LoggedDecision] = field(default_factory=dict)
    sealed: dict[int, Sealed] = field(default_factory=dict)
    """First decision -> an episode that the spool may not have"""
    ended: dict[int, EndedDecision] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("opened", *ENDINGS), 0))
    next_id: int = 1

    def segments(self) -> list[tuple[Segment, float]]:
        """Sealed segments that the spool may not have, each with the time of sealing."""
        found = []
        for record in self.sealed.values():
            entries = tuple(self.entries[key] for key in record.ids)
            segment = Segment(entries, record.bootstrap, Outcome(record.outcome))
            found.append((segment, record.at))
        return found


def recover(
    files: Sequence[LogFile], spec: PolicySpec, *, tell: Callable[[str], None]
) -> Recovered:
    """Reads all files, oldest first, and sets the `ids` of each."""
    found = Recovered()
    for file in files:
        for piece in read_frames(file.path.read_bytes()):
            if isinstance(piece, str):
                tell(f"{file.path.name}: {piece}")
                continue
            opened = [one for one in piece if isinstance(one, Opened)]
            wrong = check_opened(opened, spec)
            if wrong:
                tell(f"{file.path.name}: {len(opened)} decisions do not fit this run: {wrong}")
                continue
            for record in piece:
                key = _apply(found, record, where=file.path.name)
                if key:
                    file.ids.append(key)
    _drop_impossible(found, tell)
    return found


def _apply(found: Recovered, record: Record, *, where: str) -> int:
    """Applies one record; returns the decision that needs its file, 0 for none."""
    entries = found.entries
    match record:
        case Opened():
            found.totals["opened"] += 1
            entries[record.id] = LoggedDecision(record)
            found.next_id = max(found.next_id, record.id + 1)
            return record.id
        case Carried():
            entry = entries[record.opened.id] = LoggedDecision(record.opened)
            entry.closing, entry.cut = record.closing, record.bootstrap
            entry.outcome, entry.added = record.outcome, record.added
            found.next_id = max(found.next_id, record.opened.id + 1)
            return record.opened.id
        case Closing():
            # Counted also if the file that opened it is gone: the header counts the opening.
            found.totals[record.state] += 1
            closed = entries.get(record.id)
            client = closed.opened.client if closed is not None else None
            found.ended[record.id] = EndedDecision(record.state, client)
            if closed is not None:
                closed.closing = record
        case Added():
            if record.id in entries:
                entry = entries[record.id]
                entry.added = (entry.added or 0.0) + record.reward
        case Cut():
            if record.id in entries:
                entries[record.id].cut = record.bootstrap
                entries[record.id].outcome = record.outcome
        case Sealed():
            found.sealed[record.ids[0]] = record
        case Spooled():
            for first in record.firsts:
                sealed = found.sealed.pop(first, None)
                for key in sealed.ids if sealed is not None else ():
                    entries.pop(key, None)
        case Header():
            if record.schema != SCHEMA:
                raise FileFormatError(
                    f"{where}: ledger of schema {record.schema}, this program reads {SCHEMA}"
                )
            found.next_id = max(found.next_id, record.next_id)
            found.totals = {name: getattr(record, name) for name in found.totals}
    return 0


def _drop_impossible(found: Recovered, tell: Callable[[str], None]) -> None:
    """Marks sealed decisions, and removes segments that lost a decision or a reward to damage.

    The spool may have the episode, so the rest of it must not become part of another one.
    """
    for first, record in list(found.sealed.items()):
        entries = [found.entries.get(key) for key in record.ids]
        if all(entry is not None and entry.closing is not None for entry in entries):
            for entry in entries:
                assert entry is not None
                entry.sealed = True
            continue
        tell(f"segment {first} lost a decision to damage: its {len(entries)} are left out")
        del found.sealed[first]
        for key in record.ids:
            found.entries.pop(key, None)


def counts_in(folder: Path) -> DecisionCounts | None:
    """Decisions by how they ended; None: there is no ledger.

    A file begins with the counters at its start, so the newest one is enough. A server may keep
    writing meanwhile.
    """
    if not folder.is_dir():
        return None
    totals = DecisionCounts()
    for path in reversed(log_paths(folder)):
        try:
            found = _counted(path.read_bytes())
        except FileNotFoundError:  # a server removes old files, never the newest
            continue
        if found is not None:
            totals = found
            break
    ended = totals.settled + totals.expired + totals.superseded + totals.orphaned
    return totals._replace(open=max(totals.opened - ended, 0))


class TerritoryCounts(NamedTuple):
    """The decisions of one territory that ended, in the newest file of a ledger."""

    client: str
    ended: int = 0
    settled: int = 0


def territories_in(folder: Path) -> dict[str, TerritoryCounts]:
    """By territory, from the newest file alone: one file is bounded, however old the run is."""
    paths = log_paths(folder) if folder.is_dir() else []
    found: dict[str, TerritoryCounts] = {}
    opened: dict[int, str] = {}
    data = b""
    with contextlib.suppress(FileNotFoundError):  # a server removes old files
        data = paths[-1].read_bytes() if paths else b""
    for piece in read_frames(data):
        for record in piece if not isinstance(piece, str) else ():
            one = record.opened if isinstance(record, Carried) else record
            if isinstance(one, Opened):
                opened[one.id] = one.territory
                found.setdefault(one.territory, TerritoryCounts(one.client))
            elif isinstance(one, Closing) and one.id in opened:
                name = opened.pop(one.id)
                kept = found[name]
                settled = kept.settled + (one.state == "settled")
                found[name] = TerritoryCounts(kept.client, kept.ended + 1, settled)
    return found


def _counted(data: bytes) -> DecisionCounts | None:
    """The counters at the end of one file; None: its header cannot be read."""
    totals: dict[str, int] = {}
    for piece in read_frames(data):
        for record in piece if not isinstance(piece, str) else ():
            match record:
                case Header():
                    totals = {name: getattr(record, name) for name in DecisionCounts._fields[:-1]}
                case Opened() if totals:
                    totals["opened"] += 1
                case Closing(state=state) if totals:
                    totals[state] += 1
    return DecisionCounts(**totals) if totals else None
