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
        "behaviour_kl": 0.002,
        "behaviour_kl_max": 0.3,
        "clip_share": 0.1,
        "gradient_norm": 0.3,
        "learning_rate": 1e-3,
        "samples_per_insert": 4.0,
    }
    return ev.BatchTrained(**(values | changes))


def served(decisions: int = 10, **changes: Any) -> ev.ServerCounted:
    values: dict[str, Any] = {
        "seconds": 10.0,
        "decisions": decisions,
        "sent": decisions // 2,
        "waited": decisions - decisions // 2,
        "answers": (0, 0, decisions),
        "clients": 2,
        "connections": 2,
        "territories": 5,
    }
    return ev.ServerCounted(**(values | changes))


def continuous(batches: int = 2, **changes: Any) -> ev.ContinuousTrained:
    values: dict[str, Any] = {
        "batches": batches,
        "episodes": 3,
        "items": 64,
        "steps": 500,
        "skipped": 12,
        "seconds": 0.02,
        "utilisation": 0.01,
        "buffer": 900,
        "samples_per_insert": 7.5,
        "agreement": 0.9,
        "entropy_share": 0.8,
        "loss": 0.2,
        "policy_loss": 0.01,
        "value_loss": 0.02,
        "entropy": 1.3,
        "kl": 0.015,
        "explained_variance": 0.4,
        "behaviour_kl": 0.002,
        "behaviour_kl_max": 0.3,
        "clip_share": 0.1,
        "gradient_norm": 0.3,
        "learning_rate": 1e-3,
    }
    return ev.ContinuousTrained(**(values | changes))


def published(version: int, matches: int, total: int = 0) -> ev.VersionPublished:
    return ev.VersionPublished(
        version=version, parent=version - 1, matches=matches, promoted=True, total_matches=total
    )


def started(version: int = 0, total: int = 0, pending: int = 0) -> ev.LearnerStarted:
    return ev.LearnerStarted(pid=7, version=version, pending=pending, total_matches=total)


def unit(number: int) -> float:
    """Rewards are multiples of 2**-16: sums of them are exact."""
    return number / 65536


def iteration(
    steps: int, *matches: tuple[str, int, int, dict[str, int]], stage: str = ""
) -> ev.MatchesTrained:
    """An iteration of matches: opponent, score, frames and reward terms in units of 2**-16."""
    results: dict[str, tuple[int, int, int, int]] = {}
    terms: dict[str, dict[str, float]] = {}
    measures: dict[str, dict[str, float]] = {}
    ended = []
    for name, score, frames, parts in matches:
        s, w, d, l = results.get(name, (0, 0, 0, 0))  # noqa: E741
        results[name] = (s + 1, w + (score > 0), d + (score == 0), l + (score < 0))
        for term, value in parts.items():
            own = terms.setdefault(name, {})
            own[term] = own.get(term, 0.0) + unit(value)
        own = measures.setdefault(name, {"damage_dealt": 0.0, "damage_taken": 0.0})
        own["damage_dealt"] += 30.0
        own["damage_taken"] += 20.0
        ended.append((name, score, frames, unit(sum(parts.values()))))
    return ev.MatchesTrained(
        steps=steps, results=results, terms=terms, measures=measures, ended=ended, stage=stage
    )
