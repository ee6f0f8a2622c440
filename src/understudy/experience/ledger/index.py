"""The index: the state of every decision in memory, by id, by territory and by second.

No I/O and no clock. Two invariants: opened = settled + expired + superseded + orphaned + open, and
every settled decision is in exactly one segment, beside its neighbours of the same territory.
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
"""The state of at least so many ended decisions is known."""


class DecisionCounts(NamedTuple):
    """Decisions since the ledger began, across restarts."""

    opened: int = 0
    settled: int = 0
    expired: int = 0
    superseded: int = 0
    orphaned: int = 0
    open: int = 0


class EndedDecision(msgspec.Struct, frozen=True, gc=False):
    """What the index keeps of a decision that ended."""

    state: Ending
    client: str | None
    """None: the file that opened it is gone"""


class DecisionIndex:
    """Decisions of all territories. `check_opening` and `new_of` raise; the changes never do."""

    def __init__(
        self,
        *,
        segment: int,
        segment_s: float = math.inf,
        stagger: bool = False,
        remembers: bool = False,
        remembered: int = REMEMBERED,
    ) -> None:
        """`segment`, `segment_s`: the most decisions and seconds of a segment. `stagger`: the first
        segment of each territory is shorter by a hash of its name, so that territories that begin
        together do not end their segments together. `remembers`: the policy has memory, and only
        cuts end a segment (`territory_log`)."""
        self._segment = segment
        self._segment_s = segment_s
        self._stagger = stagger
        self._remembers = remembers
        self._remembered = remembered
        self.live: dict[int, LoggedDecision] = {}
        """Decisions that the files still have to keep."""
        self._open: dict[int, LoggedDecision] = {}
        self._by_second: dict[int, set[int]] = {}
        self._logs: dict[str, TerritoryLog] = {}
        self._ended: dict[int, EndedDecision] = {}
        self._ended_before: dict[int, EndedDecision] = {}
        self._totals: dict[str, int] = dict.fromkeys(("opened", *ENDINGS), 0)

    # --- questions -----------------------------------------------------------------------------

    @property
    def counts(self) -> DecisionCounts:
        return DecisionCounts(**self._totals, open=len(self._open))

    def opened(self, key: int) -> Opened | None:
        """The decision, if it is open."""
        entry = self._open.get(key)
        return entry.opened if entry is not None else None

    def added(self, key: int) -> float | None:
        """The sum of rewards added to an open decision; None: there were none."""
        entry = self._open.get(key)
        return entry.added if entry is not None else None

    def state_of(self, key: int) -> Ending | None:
        """How the decision ended, if the index still knows."""
        ended = self._ended_as(key)
        return ended.state if ended is not None else None

    def client_of(self, key: int) -> str | None:
        """The client of a decision, if the index still knows."""
        entry = self._open.get(key)
        if entry is not None:
            return entry.opened.client
        ended = self._ended_as(key)
        return ended.client if ended is not None else None

    def open_of(self, territory: str) -> list[Opened]:
        """The open decisions of a territory, oldest first."""
        log = self._logs.get(territory)
        if log is None:
            return []
        return [entry.opened for entry in log.pending if entry.closing is None]

    def territories(self) -> dict[str, str]:
        """Territories with decisions in no segment yet -> the client of the newest one."""
        return {
            name: log.last.opened.client for name, log in self._logs.items() if log.last is not None
        }

    def older_than(self, at: float) -> list[Opened]:
        """Open decisions from before `at`, by id.

        Searched by second: wall time may jump back, so ids are not in order of time.
        """
        keys = [
            key for second in self._by_second if second <= at for key in self._by_second[second]
        ]
        found = (self._open[key].opened for key in sorted(keys))
        return [opened for opened in found if opened.at < at]

    def check_opening(self, entries: Sequence[Opened]) -> None:
        """Raises InputError unless all of them are new and in order."""
        newest: dict[str, int] = {}
        for entry in entries:
            log = self._logs.get(entry.territory)
            last = log.last.opened.id if log is not None and log.last is not None else 0
            if entry.id <= newest.get(entry.territory, last):
                raise InputError(
                    f"id: {entry.id} is not the newest of territory {entry.territory!r}"
                )
            newest[entry.territory] = entry.id
            if entry.id in self.live or self.state_of(entry.id) is not None:
                raise InputError(f"id: decision {entry.id} was opened before")

    def new_of(self, closings: Iterable[Closing]) -> list[Closing]:
        """The first closing of each open decision; InputError for an unknown decision."""
        new: dict[int, Closing] = {}
        for closing in closings:
            if closing.id in self._open:
                new.setdefault(closing.id, closing)
            elif self.state_of(closing.id) is None:
                raise InputError(f"id: no decision {closing.id} is open")
        return list(new.values())

    def last_of(self, territory: str) -> LoggedDecision | None:
        """The newest decision that is in no segment yet."""
        log = self._logs.get(territory)
        return log.last if log is not None else None

    # --- changes -------------------------------------------------------------------------------

    def open(self, entries: Iterable[Opened]) -> list[Segment]:
        """Adds decisions; returns the segments that end because of them."""
        segments: list[Segment] = []
        for opened in entries:
            self._totals["opened"] += 1
            entry = LoggedDecision(opened)
            self._add(entry)
            segments += self._advance(opened.territory)
        return segments

    def add(self, parts: Iterable[Added]) -> None:
        """Adds to the rewards of open decisions."""
        for part in parts:
            entry = self._open[part.id]
            entry.added = (entry.added or 0.0) + part.reward

    def close(self, closings: Iterable[Closing]) -> list[Segment]:
        """Ends open decisions (`new_of`); returns the segments that end because of them."""
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
        """Ends the segment of its territory with this decision, and the territory if `outcome`."""
        entry.cut, entry.outcome = bootstrap, outcome
        return self._advance(entry.opened.territory)

    def spooled(self, segment: Segment) -> None:
        """Forgets the decisions of a segment that the spool has."""
        for entry in segment.entries:
            del self.live[entry.opened.id]

    def restore(
        self,
        entries: Sequence[LoggedDecision],
        ended: Mapping[int, EndedDecision],
        totals: Mapping[str, int],
    ) -> list[Segment]:
        """Takes over what recovery read, entries by id; adjusts `opened` to the invariant."""
        self._ended.update(ended)
        for entry in entries:
            self._add(entry)
        self._totals |= totals
        closed = sum(self._totals[state] for state in ENDINGS)
        self._totals["opened"] = closed + len(self._open)
        return [one for territory in list(self._logs) for one in self._advance(territory)]

    # --- inside --------------------------------------------------------------------------------

    def _add(self, entry: LoggedDecision) -> None:
        opened = entry.opened
        self.live[opened.id] = entry
        if entry.sealed:
            return
        if entry.closing is None:
            self._open[opened.id] = entry
            self._by_second.setdefault(int(opened.at), set()).add(opened.id)
        log = self._logs.get(opened.territory)
        if log is None:
            log = self._logs[opened.territory] = TerritoryLog(
                first=self._first_length(opened.territory),
                segment=self._segment,
                segment_s=self._segment_s,
                remembers=self._remembers,
            )
        log.pending.append(entry)

    def _first_length(self, territory: str) -> int:
        """The most decisions of the first segment of a territory."""
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
        log = self._logs[territory]
        segments, dropped = log.advance()
        for entry in dropped:
            del self.live[entry.opened.id]
        if log.last is None:
            del self._logs[territory]
        return segments
