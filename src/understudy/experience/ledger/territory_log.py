"""A track: the decisions of one territory in order, and where segments end among them.

A decision whose reward never came ends a segment, and is in none. Not so where the policy has
memory: later decisions were made with a memory of it, so it stays among them, to be seen and not
learned from, and only the session says where a segment ends, which is where it empties the memory.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec

from understudy.experience.episode import Outcome
from understudy.experience.ledger.records import Closing, Opened, Result


class LoggedDecision(msgspec.Struct, eq=False, gc=False):
    """One decision that has not left yet."""

    opened: Opened
    added: float | None = None
    """Parts of its reward that came before it was closed, summed; None: there were none"""
    closing: Closing | None = None
    cut: bytes | None = None
    """What was seen after it, where a segment has to end with it; empty: unknown"""
    outcome: Result = ""
    """How the territory ended with it, where that was said after it was settled"""
    sealed: bool = False
    """It left in a segment, which the spool may not have yet"""


class Segment(NamedTuple):
    """Consecutive decisions of one territory, to leave as one episode; the last one is settled."""

    entries: tuple[LoggedDecision, ...]
    bootstrap: bytes
    """float32 [F] of what was seen after the last one; empty: nothing was"""
    outcome: Outcome

    @property
    def ids(self) -> tuple[int, ...]:
        """Ascending."""
        return tuple(entry.opened.id for entry in self.entries)


class TerritoryLog:
    """One territory: ended decisions that wait for company, then all later ones in order."""

    __slots__ = ("_enough", "_remembers", "_run", "_segment", "_segment_s", "pending")

    def __init__(self, *, first: int, segment: int, segment_s: float, remembers: bool) -> None:
        """Decisions that its first segment, and each later one, may have; no segment spans more
        than `segment_s`. Neither holds where the policy `remembers`."""
        self._enough = first
        self._remembers = remembers
        self._segment = segment
        self._segment_s = segment_s
        self._run: list[LoggedDecision] = []
        self.pending: deque[LoggedDecision] = deque()

    @property
    def last(self) -> LoggedDecision | None:
        """Its newest decision; None: all of them left."""
        if self.pending:
            return self.pending[-1]
        return self._run[-1] if self._run else None

    def advance(self) -> tuple[list[Segment], list[LoggedDecision]]:
        """What is decided leaves: the segments that have ended, and decisions that are in none."""
        segments: list[Segment] = []
        dropped: list[LoggedDecision] = []
        while True:
            head = self.pending[0] if self.pending else None
            if self._run and (end := self._end_of_run(head)) is not None:
                self._seal(*end, segments, dropped)
            elif head is None or head.closing is None:
                return segments, dropped
            else:
                self.pending.popleft()
                if self._remembers or head.closing.state == "settled":
                    self._run.append(head)
                    continue
                dropped.append(head)
                if self._run:
                    self._seal(head.opened.observation, Outcome.ABORTED, segments, dropped)

    def _end_of_run(self, following: LoggedDecision | None) -> tuple[bytes, Outcome] | None:
        """Bootstrap and outcome, if the last decision of the run is known to be the last."""
        run, last = self._run, self._run[-1]
        assert last.closing is not None
        if last.closing.terminal:
            return b"", Outcome(last.closing.outcome or Outcome.TIE)
        if last.outcome and last.closing.state == "settled":
            return b"", Outcome(last.outcome)
        if last.cut is not None:
            return last.cut, Outcome.ABORTED
        if following is None:
            return None
        full = len(run) >= self._enough
        old = following.opened.at - run[0].opened.at >= self._segment_s
        if ((full or old) and not self._remembers) or following.opened.client != last.opened.client:
            return following.opened.observation, Outcome.ABORTED
        return None

    def _seal(
        self,
        bootstrap: bytes,
        outcome: Outcome,
        segments: list[Segment],
        dropped: list[LoggedDecision],
    ) -> None:
        """The run leaves up to its last settled decision, which bootstraps from what follows."""
        run, self._run, self._enough = self._run, [], self._segment
        while run and (closing := run[-1].closing) is not None and closing.state != "settled":
            bootstrap = run[-1].opened.observation
            dropped.append(run.pop())
        for entry in run:
            entry.sealed = True
        if run:
            segments.append(Segment(tuple(run), bootstrap, outcome))
