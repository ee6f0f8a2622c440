"""Looking at a ledger from outside: changes nothing, and a server may go on writing meanwhile."""

from __future__ import annotations

from pathlib import Path

from understudy.experience.ledger.book import Counts
from understudy.experience.ledger.frames import read_frames
from understudy.experience.ledger.log import paths
from understudy.experience.ledger.records import Closing, Header, Opened

LEDGER = "ledger"
"""The folder of it in a run folder: what has one was made by a server."""


def counts_in(folder: Path) -> Counts | None:
    """Decisions by how they ended, as the newest file says it; None: there is no ledger.

    A file begins with where everything stood, so that older ones need not be read.
    """
    if not folder.is_dir():
        return None
    totals = Counts()
    for path in reversed(paths(folder)):
        try:
            found = _counted(path.read_bytes())
        except FileNotFoundError:  # a server that goes on removes old files, never the newest
            continue
        if found is not None:
            totals = found
            break
    ended = totals.settled + totals.expired + totals.superseded + totals.orphaned
    return totals._replace(open=max(totals.opened - ended, 0))


def _counted(data: bytes) -> Counts | None:
    """Totals at the end of one file; None: its beginning cannot be read."""
    totals: dict[str, int] = {}
    for piece in read_frames(data):
        for record in piece if not isinstance(piece, str) else ():
            match record:
                case Header():
                    totals = {name: getattr(record, name) for name in Counts._fields[:-1]}
                case Opened() if totals:
                    totals["opened"] += 1
                case Closing(state=state) if totals:
                    totals[state] += 1
    return Counts(**totals) if totals else None
