"""The status of a live session, and the counts behind it."""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

import msgspec

from understudy.experience.ledger import DecisionCounts
from understudy.gates.worker import Circuit

_RECENT = 1_000
"""About how many settled decisions the recent mean covers."""


class SegmentCounts(NamedTuple):
    """Assigned segments since this start, by how they ended."""

    finished: int = 0
    fault: int = 0
    void: int = 0


class LiveStatus(msgspec.Struct, frozen=True, kw_only=True):
    """At one moment; the ledger counts since the run began, everything else since this start."""

    game: str
    gate: str
    version: int
    clients: int
    """Connected now"""
    territories: int
    """Active ones, without those that were evicted"""
    ledger: DecisionCounts
    decisions: int
    """Answers to new observations, all of them"""
    sent: int
    """Of these: to be executed, the explored ones among them"""
    waited: int
    explored: int
    degraded: int
    """Answered with the safe action"""
    unrecorded: int
    """Degraded and not in the ledger: it could not write, or there was no room or rate left"""
    duplicates: int
    errors: dict[str, int]
    """Refused messages by code"""
    ledger_errors: int
    settled: int
    mean_reward: float
    """Of decisions settled since this start"""
    recent_reward: float
    """The same, of the last thousand or so"""
    safe_actions: dict[str, int] = {}
    """Degraded answers by cause: `overload`, `disk`, `territories` (no room), `rate`,
    `gate_deadline`, `error` (the policy or the gate raised)"""
    evictions: int = 0
    """Idle territories that made room for others"""
    gate_misses: int = 0
    """Deadlines that a custom gate missed"""
    gate_circuit: Circuit = "closed"
    """`open`: a custom gate missed its deadline several times in a row and is not asked"""
    promotion: Literal["latest", "auto"] = "latest"
    decided_by: dict[str, int] = {}
    """With promotion `auto`: decisions by the role of the player: `rules`, `champion`, `canary`,
    `practice`, `holdout`, `newest`"""
    playing: dict[str, int] = {}
    """With promotion `auto`: territories with an assigned segment, by the role of its player; the
    incumbent decides all others"""
    segments: SegmentCounts | None = None
    """With promotion `auto`: assigned segments by how they ended"""


class SessionCounts:
    """Counts that only grow, and two means."""

    def __init__(self) -> None:
        self.decisions = 0
        self.sent = 0
        self.waited = 0
        self.explored = 0
        self.degraded = 0
        self.safe_actions: Counter[str] = Counter()
        self.unrecorded = 0
        self.duplicates = 0
        self.ledger_errors = 0
        self.errors: Counter[str] = Counter()
        self.settled = 0
        self._total = 0.0
        self._recent = 0.0

    def reward(self, reward: float) -> None:
        self.settled += 1
        self._total += reward
        self._recent += (reward - self._recent) / min(self.settled, _RECENT)

    @property
    def mean_reward(self) -> float:
        """0 before there is any."""
        return self._total / self.settled if self.settled else 0.0

    @property
    def recent_reward(self) -> float:
        """0 before there is any."""
        return self._recent
