"""uvicorn's HTTP protocol with a limit on open sockets and on the time for each request."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_WITHIN_S = 10.0
SPARE = 64
"""Sockets beyond the limit of clients: for requests, and to answer that the server is full."""


def http_protocol(most: int) -> type[H11Protocol]:
    """The protocol class for uvicorn (`http=`), with at most so many open sockets.

    uvicorn's own waits for ever for a request to end, on any number of sockets.
    """

    class HttpProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > most + SPARE:
                transport.abort()
                return
            self._wait()

        def on_response_complete(self) -> None:
            self._wait()  # first, since the next request may be here and may be an upgrade
            super().on_response_complete()

        def handle_websocket_upgrade(self, event: h11.Request) -> None:
            self._stop_waiting()  # `WsProtocol` has its own limits
            super().handle_websocket_upgrade(event)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _give_up(self) -> None:
            if not self.cycle or self.cycle.response_complete:
                self.transport.abort()

        def _wait(self) -> None:
            """For a whole request from now on; a body has its own time limit (`Http`)."""
            self._stop_waiting()
            self._deadline = self.loop.call_later(REQUEST_WITHIN_S, self._give_up)

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()

    return HttpProtocol
