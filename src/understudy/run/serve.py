"""Serving a live game until Ctrl-C or SIGTERM: the socket, signals, progress and summary.

`run.server_wiring` has the parts behind the socket. Every decision is in the ledger before it is
answered, so the next start continues after any crash. Stopping answers messages in flight, closes
connections, writes everything and lets the learner finish.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from understudy.registry.run_folder import remember
from understudy.run.server_wiring import ServeOptions, ServerWiring
from understudy.session.status import LiveStatus
from understudy.supervise.interrupts import Interrupts
from understudy.telemetry.latency import quantile
from understudy.telemetry.status import Status
from understudy.telemetry.text import complain
from understudy.web import listening
from understudy.web.listening import Listening, address, bound

_SHOW_EVERY_S = 0.5
_FILES = 256
"""More than enough sockets and files besides those of the clients."""


class ServeProgress(NamedTuple):
    """The progress of a server, for display."""

    elapsed_s: float
    decisions_s: float
    """Since the last `ServeProgress`"""
    p99_ms: float | None
    """Of the answers since then"""
    live: LiveStatus
    connections: int
    learner: str
    plays: str = ""
    """Who decides, by evidence; empty: the newest version, without it"""
    news: tuple[str, ...] = ()
    """Verdicts since the last `ServeProgress`"""


@dataclass(frozen=True)
class ServeSummary:
    """The summary of a finished server."""

    address: str
    seconds: float
    live: LiveStatus
    answer_ms: tuple[float | None, float | None]
    """p50 and p99 of all answers"""
    status: Status
    code: int
    """The exit code: 130 after Ctrl-C, 143 after SIGTERM"""

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        p50, p99 = self.answer_ms
        return {
            "run": self.status.run,
            "address": self.address,
            "seconds": self.seconds,
            **msgspec.structs.asdict(self.live),
            "ledger": self.live.ledger._asdict(),
            "answer_ms": {"p50": p50, "p99": p99},
            "versions": self.status.versions,
            "episodes": msgspec.to_builtins(self.status.episodes),
            "interrupted": self.code != 0,
        }


def serve(
    options: ServeOptions, *, started: Callable[[str], None], show: Callable[[ServeProgress], None]
) -> ServeSummary:
    """Serve until Ctrl-C or SIGTERM; a second Ctrl-C does not wait for the learner.

    `started` gets the address once clients can connect, `show` the progress twice a second.
    """
    auth = options.auth()
    _allow_files(options.config.live.max_clients)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # Products of a few rows: a second maths thread only spins. Measured beside other work on two
    # cores, a decision of a batch of 20 takes 0.15 ms of CPU with one thread, and 0.87 with two.
    with contextlib.ExitStack() as stack, threadpool_limits(1), Interrupts() as ending:
        at = stack.enter_context(contextlib.closing(bound(options.host, options.port)))
        wiring = ServerWiring(options, auth, stack)
        where = address(at, tls=options.tls is not None)
        progress = _Progress(wiring, show)
        began = time.monotonic()

        def beat() -> None:
            wiring.server.beat(time.monotonic())
            progress.beat(wiring.status_poller.now.learner)
            listener.should_exit = ending.asked

        listener = Listening(
            wiring.server.app,
            max_message_bytes=options.config.live.max_message_bytes,
            max_clients=options.config.live.max_clients,
            tls=options.tls,
            beat=beat,
        )
        remember(options.run)
        with _unread():
            started(where)
        with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C: do not wait
            with ending.held(), _frozen():
                listener.listen(at)
            wiring.close()
        live, counts = wiring.session.status(), wiring.server.batching.latency.counts
        percentiles = (_ms(quantile(counts, 0.5)), _ms(quantile(counts, 0.99)))
        seconds = time.monotonic() - began
    wiring.status_poller.look(at_once=True)
    return ServeSummary(where, seconds, live, percentiles, wiring.status_poller.now, ending.code)


def _allow_files(max_clients: int) -> None:
    wanted = max_clients + _FILES
    allowed = listening.allow(wanted)
    if allowed < wanted:
        complain(
            f"only {allowed} files and sockets may be open at one time, and live.max_clients = "
            f"{max_clients} connections may need {wanted}: raise that limit (ulimit -n {wanted}), "
            "or lower that setting"
        )


class _Progress:
    """Shows the progress of a server, from its counts."""

    def __init__(self, wiring: ServerWiring, show: Callable[[ServeProgress], None]) -> None:
        self._wiring = wiring
        server = self._server = wiring.server
        self._show = show
        self._began = self._shown = time.monotonic()
        self._decisions = 0
        self._counts: Sequence[int] = [0] * len(server.batching.latency.counts)

    def beat(self, learner: str) -> None:
        """Show the progress, if it is time."""
        now = time.monotonic()
        if now - self._shown < _SHOW_EVERY_S:
            return
        live, counts = self._server.session.status(), list(self._server.batching.latency.counts)
        fresh = [new - old for new, old in zip(counts, self._counts, strict=True)]
        progress = ServeProgress(
            elapsed_s=now - self._began,
            decisions_s=(live.decisions - self._decisions) / (now - self._shown),
            p99_ms=_ms(quantile(fresh, 0.99)),
            live=live,
            connections=len(self._server.connections),
            learner=learner,
            plays=self._wiring.plays(),
            news=self._wiring.take_news(),
        )
        with _unread():
            self._show(progress)
        self._shown, self._decisions, self._counts = now, live.decisions, counts


@contextlib.contextmanager
def _frozen() -> Iterator[None]:
    """The garbage collector skips the objects that exist now, which are mostly modules.

    A full collection visits every tracked object, and no message is answered meanwhile: 40 ms for
    these alone (ADR 0023).
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _unread() -> contextlib.suppress:
    """Ignores a full disk behind stderr and a terminal that is gone: the server goes on."""
    return contextlib.suppress(OSError, ValueError)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds
