"""What a relay has done so far, for its progress line and its summary."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class RelayCounts:
    """Counts of one process; matches that a crash lets it send twice count twice."""

    sent: int = 0
    """Matches, or segments of a server"""
    received: int = 0
    """Those that were new here"""
    bundles: int = 0
    """Sent or received"""
    bytes: int = 0
    """Of these bundles"""
    versions: int = 0
    """Uploaded or fetched"""
    version: int = 0
    """The champion, as the learner's side says; 0: none"""
    waiting: int = 0
    """In `buffer/`"""
    not_sent: int = 0
    """Archived without being sent, since too many waited"""
    judged: int = 0
    """Assigned matches, or segments of a server, that were sent or received with their results,
    in mode `auto`"""
    refused: int = 0
    """Bundles that could not be read"""

    def as_dict(self) -> dict[str, int]:
        return asdict(self)
