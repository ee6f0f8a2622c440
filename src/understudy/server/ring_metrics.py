"""`/metrics` of a bot that plays: a small HTTP server on loopback, beside the game.

A thread of its own reads the run's journal every few seconds; a request is answered from what it
read last. Nothing here is called by the bot, so a decision waits for none of it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from understudy.core.clock import Clock
from understudy.core.errors import ConfigError
from understudy.server.metric_families import (
    counter,
    gauge,
    learning_metrics,
    promotion_metrics,
)
from understudy.server.status_poller import StatusPoller
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.status import Patience, Status
from understudy.telemetry.text import complain

LOOPBACK = "127.0.0.1"
_EVERY_S = 3.0
_NAMES = {LOOPBACK, "localhost", "::1"}
_OUTCOMES = {"victory": "wins", "defeat": "defeats", "tie": "ties", "aborted": "aborted"}
_BATCH = ("loss", "entropy", "kl", "explained_variance", "learning_rate", "samples_per_insert")


class RingMetrics(Collector):
    """The figures of a bot and its learner; `text` is the page."""

    def __init__(self) -> None:
        self.run = Status()
        self.promotion: PromotionStatus | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        """In the text format of Prometheus."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing beforehand: what there is depends on the run."""
        return []

    def collect(self) -> Iterator[Metric]:
        run = self.run
        yield gauge(
            "status_read_timestamp_seconds",
            "When these figures were read, in seconds since 1970; 0: not yet.",
            run.at,
        )
        yield from _playing(run)
        yield from _batch(run)
        yield from learning_metrics(run)
        if self.promotion is not None:
            yield from promotion_metrics(self.promotion)


def _playing(run: Status) -> Iterator[Metric]:
    matches = CounterMetricFamily("understudy_matches", "Matches by outcome.", labels=["outcome"])
    for outcome, field in _OUTCOMES.items():
        matches.add_metric([outcome], getattr(run, field))
    yield matches
    yield counter("rules_matches", "Finished matches that the rules played.", run.rules_matches)
    yield counter("rules_wins", "Of those, how many they won.", run.rules_wins)
    yield counter("decisions", "Decisions made.", run.decisions)
    yield counter("fallback_decisions", "Of those, how many the rules made.", run.fallback)
    if run.decision_ms is not None:
        took = GaugeMetricFamily(
            "understudy_decision_seconds",
            "Time of a decision in a usual match.",
            labels=["quantile"],
        )
        took.add_metric(["0.5"], run.decision_ms.p50 / 1e3)
        took.add_metric(["0.99"], run.decision_ms.p99 / 1e3)
        yield took
    if run.win_rate_last is not None:
        yield gauge("win_rate_last", "Of the policy's last fifth of matches.", run.win_rate_last)
    episodes = CounterMetricFamily(
        "understudy_episodes", "Episodes by what became of them.", labels=["state"]
    )
    for state in run.episodes.__struct_fields__:
        episodes.add_metric([state], getattr(run.episodes, state))
    yield episodes
    yield counter("unsaved", "Matches whose episode could not be saved.", run.unsaved)
    yield counter("problems", "Problems, deaths of the learner, bad files.", run.errors)
    yield gauge("version", "The version that the bot holds.", run.playing or 0)
    yield gauge("newest_version", "The newest version published.", run.version)


def _batch(run: Status) -> Iterator[Metric]:
    if run.last_batch is not None:
        for name in _BATCH:
            words = f"{name.replace('_', ' ').capitalize()} of the last batch."
            yield gauge(name, words, getattr(run.last_batch, name))


class MetricsEndpoint:
    """Serves `http://127.0.0.1:PORT/metrics` while its block runs.

    Args:
        port: 0 takes a free one; `self.port` says which.

    Raises:
        ConfigError: The port cannot be used.
    """

    def __init__(self, root: Path, clock: Clock, *, port: int, patience: Patience) -> None:
        if not 0 <= port <= 65535:
            raise ConfigError(f"--metrics {port}: expected a port from 1 to 65535, or 0")
        self.metrics = RingMetrics()
        self._poller = StatusPoller(root, clock, patience)
        self._stop = threading.Event()
        self._complained = False
        handler = type("_Answer", (_Answering,), {"metrics": self.metrics})
        try:
            self._server = _Listener((LOOPBACK, port), handler)
        except OSError as error:
            raise ConfigError(
                f"--metrics {port}: cannot listen on {LOOPBACK}:{port} ({error.strerror}); choose "
                "another port, or 0 for a free one"
            ) from error
        self.port: int = self._server.server_address[1]
        self._threads = [
            threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True),
            threading.Thread(target=self._follow, name="metrics-status", daemon=True),
        ]

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/metrics"

    def __enter__(self) -> MetricsEndpoint:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()

    def _follow(self) -> None:
        while True:
            try:
                self._poller.look(at_once=True)
                self.metrics.run = self._poller.now
            except Exception as error:  # noqa: BLE001  a thread without supervisor
                # The next look may read what this one could not. Until then the page has the old
                # figures, and says when they were read.
                if not self._complained:
                    self._complained = True
                    complain(f"--metrics: cannot read the journal: {_words(error)}")
            if self._stop.wait(_EVERY_S):
                return


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    # On Windows it would let two programs have the same port.
    allow_reuse_address = os.name != "nt"
    _complained = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Without the traceback of the base class: the console is the game's."""
        error = sys.exc_info()[1]
        if error is None or isinstance(error, OSError):
            return  # the other side hung up
        if not self._complained:
            self._complained = True
            complain(f"--metrics: cannot answer: {_words(error)}")


def _words(error: BaseException) -> str:
    return str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"


class _Answering(BaseHTTPRequestHandler):
    """Answers `GET /metrics`, and nothing else."""

    metrics: RingMetrics
    timeout = 5.0

    def do_GET(self) -> None:
        if self._host() not in _NAMES:  # a page of another site that had its name point here
            self._answer(421, "text/plain", b"only as 127.0.0.1 or localhost\n")
        elif self.path.partition("?")[0] != "/metrics":
            self._answer(404, "text/plain", b"only /metrics is here\n")
        else:
            self._answer(200, CONTENT_TYPE_LATEST, self.metrics.text())

    def _host(self) -> str | None:
        """The name that was asked for, without the port; None: that is no name."""
        try:
            return urlsplit(f"//{self.headers.get('Host', '')}").hostname
        except ValueError:  # `[` alone, say
            return None

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: Any) -> None:
        """Nothing: the console is the game's."""
