"""Serving a live game until somebody says stop.

Everything that is answered is in the ledger first; whatever dies, the next start goes on from it.
Ending answers what is in flight, says goodbye, writes everything down and lets the learner finish.
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
from understudy.server import listening
from understudy.server.app import Server
from understudy.server.listening import Listening, address, bound
from understudy.server.metrics import quantile
from understudy.session.status import LiveStatus
from understudy.supervise.interrupts import Interrupts
from understudy.telemetry.status import Status
from understudy.telemetry.text import complain

_SHOW_EVERY_S = 0.5
_FILES = 256
"""Sockets and files besides those of the clients, amply."""


class Pulse(NamedTuple):
    """How a server does, for whoever shows it."""

    elapsed_s: float
    decisions_s: float
    """Since the last pulse"""
    p99_ms: float | None
    """Of the answers since then"""
    live: LiveStatus
    connections: int
    learner: str


@dataclass(frozen=True)
class Served:
    """What came of it."""

    address: str
    seconds: float
    live: LiveStatus
    answer_ms: tuple[float | None, float | None]
    """p50 and p99 of all answers"""
    status: Status
    code: int
    """How the process should end: 130 after Ctrl-C, 143 after SIGTERM"""

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
    service: ServeOptions, *, started: Callable[[str], None], show: Callable[[Pulse], None]
) -> Served:
    """Serve until Ctrl-C or SIGTERM; pressed again, Ctrl-C does not wait for the learner.

    `started` hears the address once clients can connect, `show` how it goes, twice a second.
    """
    admission = service.door()
    _allow_files(service.config.live.max_clients)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # Products of a few rows: a second maths thread only spins. Measured beside other work on two
    # cores, a decision of a batch of 20 takes 0.15 ms of CPU with one thread, and 0.87 with two.
    with contextlib.ExitStack() as stack, threadpool_limits(1), Interrupts() as ending:
        at = stack.enter_context(contextlib.closing(bound(service.host, service.port)))
        desk = ServerWiring(service, admission, stack)
        where = address(at, tls=service.tls is not None)
        screen = _Screen(desk.server, service, show)
        began = time.monotonic()

        def beat() -> None:
            desk.server.beat(time.monotonic())
            screen.beat(desk.following.now.learner)
            listener.should_exit = ending.asked

        listener = Listening(
            desk.server.app,
            max_message_bytes=service.config.live.max_message_bytes,
            max_clients=service.config.live.max_clients,
            tls=service.tls,
            beat=beat,
        )
        remember(service.run)
        with _unread():
            started(where)
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C once more: nothing is waited for
            with ending.held(), _frozen():
                listener.listen(at)
            desk.close()
        live, counts = desk.session.status(), desk.server.batching.latency.counts
        percentiles = (_ms(quantile(counts, 0.5)), _ms(quantile(counts, 0.99)))
        seconds = time.monotonic() - began
    desk.following.look(at_once=True)
    return Served(where, seconds, live, percentiles, desk.following.now, ending.code)


def _allow_files(max_clients: int) -> None:
    wanted = max_clients + _FILES
    allowed = listening.allow(wanted)
    if allowed < wanted:
        complain(
            f"only {allowed} files and sockets may be open at one time, and live.max_clients = "
            f"{max_clients} connections may need {wanted}: raise that limit (ulimit -n {wanted}), "
            "or lower that setting"
        )


class _Screen:
    """Makes pulses of counts."""

    def __init__(
        self, server: Server, service: ServeOptions, show: Callable[[Pulse], None]
    ) -> None:
        self._server = server
        self._show = show
        self._began = self._shown = time.monotonic()
        self._decisions = 0
        self._counts: Sequence[int] = [0] * len(server.batching.latency.counts)

    def beat(self, learner: str) -> None:
        """Show one, if it is time."""
        now = time.monotonic()
        if now - self._shown < _SHOW_EVERY_S:
            return
        live, counts = self._server.session.status(), list(self._server.batching.latency.counts)
        fresh = [new - old for new, old in zip(counts, self._counts, strict=True)]
        pulse = Pulse(
            elapsed_s=now - self._began,
            decisions_s=(live.decisions - self._decisions) / (now - self._shown),
            p99_ms=_ms(quantile(fresh, 0.99)),
            live=live,
            connections=len(self._server.connections),
            learner=learner,
        )
        with _unread():
            self._show(pulse)
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
    """A full disk behind stderr or a terminal that is gone: whoever plays wants answers still."""
    return contextlib.suppress(OSError, ValueError)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds
