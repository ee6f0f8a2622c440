"""The application: a session, and around it authentication, connections and pages.

Everything runs in the thread of one event loop; the session is never called from anywhere else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from understudy.core.config import LiveConfig
from understudy.server.batching import Batching, Receiver
from understudy.server.clients import Clients
from understudy.server.connection import ConnectionCounts, Connections
from understudy.server.counting import EVERY_S, ServerCounts, counted, worth_telling
from understudy.server.http import Http, Pages
from understudy.server.metrics import Metrics, MetricsReading
from understudy.session import protocol
from understudy.session.protocol import Error, RequestId
from understudy.session.status import LiveStatus
from understudy.telemetry.events import ServerCounted
from understudy.telemetry.latency import quantile
from understudy.telemetry.promotion_status import PromotionStatus
from understudy.telemetry.status import Status, stalled
from understudy.web.auth import Auth
from understudy.web.refusal import Code, Refusal

_TICK_S = 1.0
_CODES: dict[int, Code] = {404: "not_found", 405: "bad_method"}


class LiveSession(Receiver, ConnectionCounts, Protocol):
    """A session, as far as the server uses it (`session.Session`)."""

    def welcome(
        self, client: str, *, resume: str | None = None, request: RequestId | None = None
    ) -> bytes:
        """The answer to the hello of a client."""

    def refused(self, client: str, address: str | None) -> Error | None:
        """The error for a message of this client that is beyond a rate."""

    def tick(self) -> None:
        """Ends what has waited too long."""

    def status(self) -> LiveStatus: ...


class Server:
    """The application (`app`), its counts, and its heartbeat."""

    def __init__(
        self,
        session: LiveSession,
        *,
        config: LiveConfig,
        auth: Auth,
        clients: Clients,
        run: Callable[[], Status],
        promotion: Callable[[], PromotionStatus | None] = lambda: None,
        problem: Callable[[str, Exception], None],
        tell: Callable[[ServerCounted], None] = lambda event: None,
    ) -> None:
        self.session = session
        self.refusals: Counter[str] = Counter()
        """Of the server itself, by code; the session counts its own."""
        self.batching = Batching(session, queue=config.queue, problem=problem)
        self._clients = clients
        self._run = run
        self._promotion = promotion
        self._problem = problem
        self._tell = tell
        self._ticked = 0.0
        self._counted: tuple[float, ServerCounts | None] | None = None
        """When it was last counted, and what; None: not since the start."""
        self._told: ServerCounted | None = None
        self.connections = Connections(
            session,
            self.batching,
            auth=auth,
            clients=clients,
            welcome=self._welcome,
            refusals=self.refusals,
            most=config.max_clients,
            burst=max(config.queue // 2, 1),
        )
        http = Http(
            self.batching,
            auth=auth,
            clients=clients,
            welcome=self._welcome,
            refused=session.refused,
            refusals=self.refusals,
            pages=Pages(
                status=self.status,
                ready=self._ready,
                metrics=Metrics(self.reading).text,
                schema=lambda: protocol.schema_text().encode(),
            ),
            max_bytes=config.max_message_bytes,
            most=config.max_clients,
        )

        async def explain(request: Request, error: Exception) -> Response:
            status = error.status_code if isinstance(error, HTTPException) else 500
            words = error.detail if isinstance(error, HTTPException) else "it was noted"
            return http.refused(Refusal(_CODES.get(status, "internal"), words))

        self.app = Starlette(
            routes=[WebSocketRoute("/ws", self.connections), *http.routes()],
            middleware=[Middleware(_Guarded, auth=auth, refused=http.refused)],
            exception_handlers={HTTPException: explain, Exception: explain},
        )

    def beat(self, now: float) -> None:
        """Call this several times a second, in the thread of the loop."""
        if now - self._ticked >= _TICK_S:
            self._ticked = now
            try:
                self.session.tick()
            except Exception as error:  # noqa: BLE001  whatever it is, connections are answered on
                self._problem("the session's tick failed", error)
        if self._counted is None:
            self._counted = now, None
        elif now - self._counted[0] >= EVERY_S:
            self.count(now)

    def count(self, now: float) -> None:
        """Tell what was answered since the last time, if anything."""
        began, before = self._counted or (now, None)
        counts = ServerCounts(
            live=self.session.status(),
            answers=tuple(self.batching.latency.counts),
            connections=len(self.connections),
            refusals=dict(self.refusals),
        )
        event = counted(before, counts, seconds=now - began)
        self._counted = now, counts
        if worth_telling(event, self._told):
            self._told = event
            self._tell(event)

    def reading(self) -> MetricsReading:
        return MetricsReading(
            live=self.session.status(),
            latency=self.batching.latency,
            batches=self.batching.batches,
            connections=len(self.connections),
            slow_readers=self.connections.slow_readers,
            refusals=self.refusals,
            run=self._run(),
            promotion=self._promotion(),
        )

    def status(self) -> dict[str, object]:
        """The session's status, with that of the server and the learner."""
        live, counts = self.session.status(), self.batching.latency.counts
        p50, p99 = quantile(counts, 0.5), quantile(counts, 0.99)
        return {
            **msgspec.structs.asdict(live),
            "ledger": live.ledger._asdict(),
            "connections": len(self.connections),
            "refusals": dict(self.refusals),
            "slow_readers": self.connections.slow_readers,
            "answer_ms": {"p50": _ms(p50), "p99": _ms(p99)},
            **_learning(self._run()),
            **_by_evidence(self._promotion()),
        }

    def _welcome(self, client: str, request: RequestId | None) -> bytes:
        key = self._clients.resume_key(client)
        return self.session.welcome(client, resume=key, request=request)

    def _ready(self) -> tuple[bool, dict[str, object]]:
        # Ready means able to decide: a stalled learner must not take players off this server.
        return True, {"version": self.session.status().version, **_learning(self._run())}


def _learning(run: Status) -> dict[str, object]:
    """The learner's state, and what is wrong with it."""
    stall = stalled(run)
    return {
        "learner": run.learner,
        "learning": run.learning,
        "waiting_episodes": run.buffer_file_count,
        **({} if run.paused_since is None else {"paused_since": run.paused_since}),
        **({"problem": stall} if stall else {}),
    }


def _by_evidence(status: PromotionStatus | None) -> dict[str, object]:
    """Who plays by evidence, with every share and test."""
    return {} if status is None else {"by_evidence": msgspec.to_builtins(status)}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


class _Guarded:
    """Middleware that answers requests which `Auth` refuses, and closes their socket: further bytes
    of such a peer are not to be trusted. `Connections` refuses WebSockets."""

    def __init__(self, app: ASGIApp, *, auth: Auth, refused: Callable[[Refusal], Response]) -> None:
        self._app = app
        self._auth = auth
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._auth.refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        response = self._refused(refusal)
        response.headers["Connection"] = "close"
        await response(scope, receive, send)
