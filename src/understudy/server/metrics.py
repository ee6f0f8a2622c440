"""`/metrics` for Prometheus.

Every figure is read when it is asked for. Names of territories and clients are never labels: they
come from outside and are unbounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from understudy.server.metric_families import (
    counter,
    gauge,
    learning_metrics,
    promotion_metrics,
)
from understudy.session.status import LiveStatus
from understudy.telemetry.latency import BOUNDS_S, Latency
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.status import Status


class MetricsReading(NamedTuple):
    """All figures at one moment."""

    live: LiveStatus
    latency: Latency
    batches: int
    connections: int
    slow_readers: int
    refusals: dict[str, int]
    """By code, of the server itself"""
    run: Status
    """What the journals say of the run and its learner; a second or two old"""
    promotion: PromotionStatus | None = None
    """None: the newest version decides, without evidence"""


class Metrics(Collector):
    """The collector; `text` is the page."""

    def __init__(self, read: Callable[[], MetricsReading]) -> None:
        self._read = read
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        """In the text format of Prometheus."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing beforehand: registering must not read anything."""
        return []

    def collect(self) -> Iterator[Metric]:
        now = self._read()
        yield from _serving(now)
        yield from _decisions(now.live)
        yield from learning_metrics(now.run)
        yield from _by_evidence(now)


def _serving(now: MetricsReading) -> Iterator[Metric]:
    yield gauge("connections", "WebSockets that are open.", now.connections)
    yield gauge("clients", "Clients that are connected.", now.live.clients)
    yield gauge("territories", "Active territories.", now.live.territories)
    yield counter("evictions", "Idle territories that made room.", now.live.evictions)
    yield counter("batches", "Calls of the session; messages that wait share one.", now.batches)
    yield counter("slow_readers", "Connections ended for unread answers.", now.slow_readers)
    latency = HistogramMetricFamily(
        "understudy_answer_seconds", "From reading a message to writing its answer."
    )
    sums = [*accumulate(now.latency.counts)]
    bounds = [*map(str, BOUNDS_S), "+Inf"]
    latency.add_metric([], [*zip(bounds, sums, strict=True)], sum_value=now.latency.total_s)
    yield latency
    errors = CounterMetricFamily(
        "understudy_errors", "Messages and connections refused.", labels=["code"]
    )
    for code in sorted({**now.live.errors, **now.refusals}):
        errors.add_metric([code], now.live.errors.get(code, 0) + now.refusals.get(code, 0))
    yield errors


def _decisions(live: LiveStatus) -> Iterator[Metric]:
    yield counter("decisions", "Answers to new observations.", live.decisions)
    verdicts = CounterMetricFamily(
        "understudy_verdicts", "What the decision gate said, or was overruled.", labels=["verdict"]
    )
    verdicts.add_metric(["send"], live.sent - live.explored)
    verdicts.add_metric(["wait"], live.waited)
    verdicts.add_metric(["explored"], live.explored)
    yield verdicts
    yield counter("degraded", "Answers with the safe action.", live.degraded)
    safe = CounterMetricFamily(
        "understudy_safe_actions", "Degraded answers by cause.", labels=["cause"]
    )
    for cause, count in sorted(live.safe_actions.items()):
        safe.add_metric([cause], count)
    yield safe
    yield counter("gate_misses", "Deadlines that a custom gate missed.", live.gate_misses)
    circuit = float(live.gate_circuit != "closed")
    yield gauge("gate_circuit_open", "Whether the gate is not asked: it was late.", circuit)
    yield counter("duplicates", "Observations answered as before.", live.duplicates)
    yield counter("unrecorded", "Answers that the ledger has not.", live.unrecorded)
    yield counter("ledger_errors", "Times that the ledger could not write.", live.ledger_errors)
    states = GaugeMetricFamily(
        "understudy_ledger", "Decisions of the run by what became of them.", labels=["state"]
    )
    for state, count in live.ledger._asdict().items():
        states.add_metric([state], count)
    yield states
    yield gauge("version", "The version that decides now.", live.version)
    yield gauge("reward_mean", "Mean reward of decisions settled here.", live.mean_reward)
    yield gauge("reward_recent", "The same of the last thousand or so.", live.recent_reward)


def _by_evidence(now: MetricsReading) -> Iterator[Metric]:
    if now.promotion is None:
        return
    decided = CounterMetricFamily(
        "understudy_decided", "Decisions by the role of the player.", labels=["role"]
    )
    for role, count in sorted(now.live.decided_by.items()):
        decided.add_metric([role], count)
    yield decided
    if now.live.segments is not None:
        endings = CounterMetricFamily(
            "understudy_segments", "Assigned segments by how they ended.", labels=["ending"]
        )
        for ending, count in now.live.segments._asdict().items():
            endings.add_metric([ending], count)
        yield endings
    yield from promotion_metrics(now.promotion)
