"""The log of one territory: its decisions in order, and where segments end among them.

Without memory a segment is a run of settled decisions: a decision that ended in another way belongs
to no segment and ends the one before it. With memory, later decisions depend on earlier ones, so
unsettled decisions stay in the segment as inputs without a reward, and a segment ends only where
the session empties the memory (`Ledger.cut`).

A segment has one player. It ends where the rules begin to play and where they stop, so that credit
for what one player does never passes through decisions of the other: the value of the observation
in between stands for what follows.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import msgspec

from understudy.experience.episode import Outcome
from understudy.experience.ledger.records import Closing, Opened, Result


class LoggedDecision(msgspec.Struct, eq=False, gc=False):
    """A decision that the spool does not have yet."""

    opened: Opened
    added: float | None = None
    """The sum of `Added` rewards; None: there were none"""
    closing: Closing | None = None
    cut: bytes | None = None
    """Where a segment has to end with it: the next observation; empty: unknown"""
    outcome: Result = ""
    """Of its `Cut`: how the territory ended with it"""
    sealed: bool = False
    """It is part of a segment that ended"""


class Segment(NamedTuple):
    """Consecutive decisions of one territory that become one episode; the last one is settled."""

    entries: tuple[LoggedDecision, ...]
    bootstrap: bytes
    """float32 [F] of the observation after the last decision; empty: there is none"""
    outcome: Outcome

    @property
    def ids(self) -> tuple[int, ...]:
        """Ascending."""
        return tuple(entry.opened.id for entry in self.entries)


def _player(entry: LoggedDecision) -> tuple[str, bool]:
    """The client, and whether its rules play."""
    return entry.opened.client, entry.opened.rules


class TerritoryLog:
    """The run of ended decisions of the next segment, then all later decisions in order."""

    __slots__ = ("_limit", "_remembers", "_run", "_segment", "_segment_s", "pending")

    def __init__(self, *, first: int, segment: int, segment_s: float, remembers: bool) -> None:
        """`first`, `segment`: the most decisions of the first and of each later segment.
        `segment_s`: the most seconds. None of them applies to decisions of a policy that
        `remembers`."""
        self._limit = first
        self._remembers = remembers
        self._segment = segment
        self._segment_s = segment_s
        self._run: list[LoggedDecision] = []
        self.pending: deque[LoggedDecision] = deque()

    @property
    def last(self) -> LoggedDecision | None:
        """The newest decision; None: all of them are in segments."""
        if self.pending:
            return self.pending[-1]
        return self._run[-1] if self._run else None

    def advance(self) -> tuple[list[Segment], list[LoggedDecision]]:
        """Removes and returns the segments that ended, and the decisions that belong to none."""
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
        """Bootstrap observation and outcome, if the segment ends here; None: it goes on."""
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
        full = len(run) >= self._limit
        old = following.opened.at - run[0].opened.at >= self._segment_s
        bounded = last.opened.rules or not self._remembers
        if ((full or old) and bounded) or _player(following) != _player(last):
            return following.opened.observation, Outcome.ABORTED
        return None

    def _seal(
        self,
        bootstrap: bytes,
        outcome: Outcome,
        segments: list[Segment],
        dropped: list[LoggedDecision],
    ) -> None:
        """Ends the segment with its last settled decision, bootstrapped from the one after it."""
        run, self._run, self._limit = self._run, [], self._segment
        while run and (closing := run[-1].closing) is not None and closing.state != "settled":
            bootstrap = run[-1].opened.observation
            dropped.append(run.pop())
        for entry in run:
            entry.sealed = True
        if run:
            segments.append(Segment(tuple(run), bootstrap, outcome))
