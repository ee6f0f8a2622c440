"""Entries that the tests of telemetry are made of."""

from __future__ import annotations

from typing import Any

from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry


class FixedClock:
    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


def at(t: float, event: ev.Event, by: str = "bot") -> Entry:
    return Entry(t=t, by=by, e=event)


def match(outcome: str = "victory", **changes: Any) -> ev.MatchFinished:
    values: dict[str, Any] = {
        "id": "m",
        "outcome": outcome,
        "decisions": 10,
        "reward": 1.0,
        "version": 1,
        "seconds": 2.0,
        "saved": True,
    }
    return ev.MatchFinished(**(values | changes))


def batch(matches: int = 3, **changes: Any) -> ev.BatchTrained:
    values: dict[str, Any] = {
        "matches": matches,
        "replayed": 2,
        "steps": 150,
        "seconds": 1.12,
        "loss": 0.0456,
        "policy_loss": 0.01,
        "value_loss": 0.02,
        "entropy": 1.3,
        "kl": 0.015,
        "explained_variance": 0.4,
        "first_ratio": 1.0,
        "clip_share": 0.1,
        "gradient_norm": 0.3,
        "learning_rate": 1e-3,
        "samples_per_insert": 4.0,
    }
    return ev.BatchTrained(**(values | changes))


def published(version: int, matches: int, total: int = 0) -> ev.VersionPublished:
    return ev.VersionPublished(
        version=version, parent=version - 1, matches=matches, promoted=True, total_matches=total
    )


def started(version: int = 0, total: int = 0, pending: int = 0) -> ev.LearnerStarted:
    return ev.LearnerStarted(pid=7, version=version, pending=pending, total_matches=total)
