"""The book: which decisions are open, how the others ended, and which of them belong together.

No I/O and no clock. The invariant: opened = settled + expired + superseded + orphaned + open, and
every settled decision leaves in exactly one segment, beside its neighbours of the same territory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

import msgspec

from understudy.core.errors import InputError
from understudy.experience.ledger.records import ENDINGS, Added, Closing, Ending, Opened, Result
from understudy.experience.ledger.territory_log import LoggedDecision, Segment, TerritoryLog

REMEMBERED = 100_000
"""Closed decisions at least whose state is still known."""


class DecisionCounts(NamedTuple):
    """Decisions since the ledger began, across restarts."""

    opened: int = 0
    settled: int = 0
    expired: int = 0
    superseded: int = 0
    orphaned: int = 0
    open: int = 0


class EndedDecision(msgspec.Struct, frozen=True, gc=False):
    """What is remembered of a decision that is over."""

    state: Ending
    client: str | None
    """None: the file that opened it is gone"""


class DecisionIndex:
    """All territories. Check first, write down, then change: nothing here can fail halfway."""

    def __init__(
        self,
        *,
        segment: int,
        segment_s: float = math.inf,
        stagger: bool = False,
        remembers: bool = False,
        remembered: int = REMEMBERED,
    ) -> None:
        """`segment_s`: no segment spans more; `stagger`: territories that began together do not
        all end their segments together, since the first one of each is shorter; `remembers`: the
        policy has memory, and only cuts end a segment (`track`)."""
        self._segment = segment
        self._segment_s = segment_s
        self._stagger = stagger
        self._remembers = remembers
        self._remembered = remembered
        self.live: dict[int, LoggedDecision] = {}
        """Everything that the ledger's files still have to keep."""
        self._open: dict[int, LoggedDecision] = {}
        self._by_second: dict[int, set[int]] = {}
        self._tracks: dict[str, TerritoryLog] = {}
        self._ended: dict[int, EndedDecision] = {}
        self._ended_before: dict[int, EndedDecision] = {}
        self._totals: dict[str, int] = dict.fromkeys(("opened", *ENDINGS), 0)

    # --- questions -----------------------------------------------------------------------------

    @property
    def counts(self) -> DecisionCounts:
        """Of all decisions, by how they ended."""
        return DecisionCounts(**self._totals, open=len(self._open))

    def opened(self, key: int) -> Opened | None:
        """A decision that is still open."""
        entry = self._open.get(key)
        return entry.opened if entry is not None else None

    def added(self, key: int) -> float | None:
        """The parts of an open decision's reward so far."""
        entry = self._open.get(key)
        return entry.added if entry is not None else None

    def state_of(self, key: int) -> Ending | None:
        """How it ended, if that is still known."""
        ended = self._ended_as(key)
        return ended.state if ended is not None else None

    def client_of(self, key: int) -> str | None:
        """Whose decision it is or was, if that is still known."""
        entry = self._open.get(key)
        if entry is not None:
            return entry.opened.client
        ended = self._ended_as(key)
        return ended.client if ended is not None else None

    def open_of(self, territory: str) -> list[Opened]:
        """Its open decisions, oldest first."""
        track = self._tracks.get(territory)
        if track is None:
            return []
        return [entry.opened for entry in track.pending if entry.closing is None]

    def territories(self) -> dict[str, str]:
        """Those with decisions that did not leave yet, and the client of the newest."""
        return {
            name: track.last.opened.client
            for name, track in self._tracks.items()
            if track.last is not None
        }

    def older_than(self, at: float) -> list[Opened]:
        """Open decisions from before `at`, by id.

        Found by the second they were made in, since wall time may jump and ids then do not tell.
        """
        keys = [
            key for second in self._by_second if second <= at for key in self._by_second[second]
        ]
        found = (self._open[key].opened for key in sorted(keys))
        return [opened for opened in found if opened.at < at]

    def check_opening(self, entries: Sequence[Opened]) -> None:
        """InputError unless all of them are new and in order."""
        newest: dict[str, int] = {}
        for entry in entries:
            track = self._tracks.get(entry.territory)
            last = track.last.opened.id if track is not None and track.last is not None else 0
            if entry.id <= newest.get(entry.territory, last):
                raise InputError(
                    f"id: {entry.id} is not the newest of territory {entry.territory!r}"
                )
            newest[entry.territory] = entry.id
            if entry.id in self.live or self.state_of(entry.id) is not None:
                raise InputError(f"id: decision {entry.id} was opened before")

    def new_of(self, closings: Iterable[Closing]) -> list[Closing]:
        """The first for each open decision; InputError for one that nobody knows."""
        new: dict[int, Closing] = {}
        for closing in closings:
            if closing.id in self._open:
                new.setdefault(closing.id, closing)
            elif self.state_of(closing.id) is None:
                raise InputError(f"id: no decision {closing.id} is open")
        return list(new.values())

    def last_of(self, territory: str) -> LoggedDecision | None:
        """The newest decision that did not leave in a segment yet."""
        track = self._tracks.get(territory)
        return track.last if track is not None else None

    # --- changes -------------------------------------------------------------------------------

    def open(self, entries: Iterable[Opened]) -> list[Segment]:
        """New decisions; returns the segments that end because of them."""
        segments: list[Segment] = []
        for opened in entries:
            self._totals["opened"] += 1
            entry = LoggedDecision(opened)
            self._add(entry)
            segments += self._advance(opened.territory)
        return segments

    def add(self, parts: Iterable[Added]) -> None:
        """Parts of rewards; all of these decisions are open."""
        for part in parts:
            entry = self._open[part.id]
            entry.added = (entry.added or 0.0) + part.reward

    def close(self, closings: Iterable[Closing]) -> list[Segment]:
        """Decisions end; all of them are open (`new_of`)."""
        segments: list[Segment] = []
        for closing in closings:
            entry = self._open.pop(closing.id)
            entry.closing = closing
            self._forget_second(entry.opened)
            self._totals[closing.state] += 1
            self._remember(closing.id, EndedDecision(closing.state, entry.opened.client))
            segments += self._advance(entry.opened.territory)
        return segments

    def cut(self, entry: LoggedDecision, bootstrap: bytes, outcome: Result = "") -> list[Segment]:
        """The segment of its territory ends with this decision, and so may the territory."""
        entry.cut, entry.outcome = bootstrap, outcome
        return self._advance(entry.opened.territory)

    def spooled(self, segment: Segment) -> None:
        """The spool has it: it need not be kept here."""
        for entry in segment.entries:
            del self.live[entry.opened.id]

    def restore(
        self,
        entries: Sequence[LoggedDecision],
        ended: Mapping[int, EndedDecision],
        totals: Mapping[str, int],
    ) -> list[Segment]:
        """What was read from disk, entries by id; totals are made to balance with what is open."""
        self._ended.update(ended)
        for entry in entries:
            self._add(entry)
        self._totals |= totals
        closed = sum(self._totals[state] for state in ENDINGS)
        self._totals["opened"] = closed + len(self._open)
        return [one for territory in list(self._tracks) for one in self._advance(territory)]

    # --- inside --------------------------------------------------------------------------------

    def _add(self, entry: LoggedDecision) -> None:
        opened = entry.opened
        self.live[opened.id] = entry
        if entry.sealed:
            return
        if entry.closing is None:
            self._open[opened.id] = entry
            self._by_second.setdefault(int(opened.at), set()).add(opened.id)
        track = self._tracks.get(opened.territory)
        if track is None:
            track = self._tracks[opened.territory] = TerritoryLog(
                first=self._first(opened.territory),
                segment=self._segment,
                segment_s=self._segment_s,
                remembers=self._remembers,
            )
        track.pending.append(entry)

    def _first(self, territory: str) -> int:
        """How long the first segment of a territory may be."""
        return 1 + crc32(territory.encode()) % self._segment if self._stagger else self._segment

    def _forget_second(self, opened: Opened) -> None:
        second = int(opened.at)
        keys = self._by_second[second]
        keys.remove(opened.id)
        if not keys:
            del self._by_second[second]

    def _ended_as(self, key: int) -> EndedDecision | None:
        return self._ended.get(key) or self._ended_before.get(key)

    def _remember(self, key: int, ended: EndedDecision) -> None:
        if len(self._ended) >= self._remembered:
            self._ended_before, self._ended = self._ended, {}
        self._ended[key] = ended

    def _advance(self, territory: str) -> list[Segment]:
        """Move what is decided from the front of a territory into segments."""
        track = self._tracks[territory]
        segments, dropped = track.advance()
        for entry in dropped:
            del self.live[entry.opened.id]
        if track.last is None:
            del self._tracks[territory]
        return segments
