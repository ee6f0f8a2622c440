"""A track: the decisions of one territory in order, and where segments end among them."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from understudy.experience.episode import Outcome
from understudy.experience.ledger.records import Closing, Opened, Result


class Entry:
    """One decision that has not left yet."""

    __slots__ = ("added", "closing", "cut", "opened", "outcome", "sealed")

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.added: float | None = None
        """Parts of its reward that came before it was closed, summed; None: there were none"""
        self.closing: Closing | None = None
        self.cut: bytes | None = None
        """What was seen after it, where a segment has to end with it; empty: unknown"""
        self.outcome: Result = ""
        """How the territory ended with it, where that was said after it was settled"""
        self.sealed = False
        """It left in a segment, which the spool may not have yet"""


class Segment(NamedTuple):
    """Consecutive settled decisions of one territory, to leave as one episode."""

    entries: tuple[Entry, ...]
    bootstrap: bytes
    """float32 [F] of what was seen after the last one; empty: nothing was"""
    outcome: Outcome

    @property
    def ids(self) -> tuple[int, ...]:
        """Ascending."""
        return tuple(entry.opened.id for entry in self.entries)


class Track:
    """One territory: settled decisions that wait for company, then all later ones in order."""

    __slots__ = ("_enough", "_run", "_segment", "_segment_s", "pending")

    def __init__(self, *, first: int, segment: int, segment_s: float) -> None:
        """Decisions that its first segment, and each later one, may have; no segment spans more
        than `segment_s`."""
        self._enough = first
        self._segment = segment
        self._segment_s = segment_s
        self._run: list[Entry] = []
        self.pending: deque[Entry] = deque()

    @property
    def last(self) -> Entry | None:
        """Its newest decision; None: all of them left."""
        if self.pending:
            return self.pending[-1]
        return self._run[-1] if self._run else None

    def advance(self) -> tuple[list[Segment], list[Entry]]:
        """What is decided leaves: the segments that have ended, and decisions that are in none."""
        segments: list[Segment] = []
        dropped: list[Entry] = []
        while True:
            head = self.pending[0] if self.pending else None
            if self._run and (segment := self._ended_run(head)) is not None:
                segments.append(segment)
            elif head is not None and head.closing is not None:
                self.pending.popleft()
                if head.closing.state == "settled":
                    self._run.append(head)
                    continue
                dropped.append(head)
                if self._run:
                    segments.append(self._sealed(head.opened.observation))
            else:
                return segments, dropped

    def _ended_run(self, following: Entry | None) -> Segment | None:
        """The segment, if its last decision is known to be the last."""
        run, last = self._run, self._run[-1]
        assert last.closing is not None
        if last.closing.terminal:
            return self._sealed(b"", Outcome(last.closing.outcome or Outcome.TIE))
        if last.outcome:
            return self._sealed(b"", Outcome(last.outcome))
        if last.cut is not None:
            return self._sealed(last.cut)
        if following is None:
            return None
        full = len(run) >= self._enough
        old = following.opened.at - run[0].opened.at >= self._segment_s
        if full or old or following.opened.client != last.opened.client:
            return self._sealed(following.opened.observation)
        return None

    def _sealed(self, bootstrap: bytes, outcome: Outcome = Outcome.ABORTED) -> Segment:
        run, self._run, self._enough = self._run, [], self._segment
        for entry in run:
            entry.sealed = True
        return Segment(tuple(run), bootstrap, outcome)
