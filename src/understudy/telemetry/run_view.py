"""What every screen shows of a run: monitor, doctor, report and exports read this and no more."""

from __future__ import annotations

import msgspec

from understudy.telemetry.journal import Entry
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.status import LearnerState, Learning, LedgerCounts, Status
from understudy.telemetry.trends import Trends


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder of a run."""

    name: str
    """Relative to the run folder."""
    bytes: int
    at: float
    """When it was written, in seconds since 1970."""


class RunFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The newest files of a run, newest first."""

    buffer: tuple[RunFile, ...] = ()
    archive: tuple[RunFile, ...] = ()
    version: RunFile | None = None
    """The folder of the newest version, with the bytes of all its files."""


class AnswerTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds from reading a message to handing its answer to the socket; None: no answer."""

    p50: float | None = None
    p99: float | None = None


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a server that runs says of itself: its `GET /status` (docs/serving.md)."""

    game: str
    gate: str
    version: int
    clients: int = 0
    connections: int = 0
    territories: int = 0
    ledger: LedgerCounts = LedgerCounts()
    decisions: int = 0
    sent: int = 0
    waited: int = 0
    explored: int = 0
    degraded: int = 0
    safe_actions: dict[str, int] = {}
    errors: dict[str, int] = {}
    refusals: dict[str, int] = {}
    mean_reward: float = 0.0
    recent_reward: float = 0.0
    gate_misses: int = 0
    gate_circuit: str = "closed"
    answer_ms: AnswerTimes = AnswerTimes()
    learner: LearnerState = "not started"
    learning: Learning = "off"
    waiting_episodes: int = 0
    paused_since: float | None = None
    problem: str = ""
    by_evidence: PromotionStatus | None = None


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run at one moment. Plain data: it can be sent over a network."""

    status: Status
    trends: Trends = {}
    recent: tuple[Entry, ...] = ()
    """The newest journal entries, oldest first: the lines of a log."""
    files: RunFiles = RunFiles()
    promotion_unread: bool = False
    """Whether the promotion log was left for the next reading: who plays is not known yet."""
    server: ServerStatus | None = None
    """Where the view was made from a server's own words, not from its run folder."""
