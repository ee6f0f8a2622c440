"""Whoever opens a socket: not too many at once, and each has to say soon what it wants.

That holds for its first request and for each one after it.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_WITHIN_S = 10.0
SPARE = 64
"""Sockets beyond the limit of clients, for requests and for those who are told that it is full."""


def arrivals(most: int) -> type[H11Protocol]:
    """What uvicorn makes for every socket (`http=`), with a limit of so many open ones."""

    class Arrival(H11Protocol):
        """uvicorn's, which would wait for ever for a request to end, on any number of sockets."""

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
            self._stop_waiting()  # its wire waits from here on
            super().handle_websocket_upgrade(event)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _give_up(self) -> None:
            if not self.cycle or self.cycle.response_complete:
                self.transport.abort()

        def _wait(self) -> None:
            """From now on for a whole request; a body has a time of its own."""
            self._stop_waiting()
            self._deadline = self.loop.call_later(REQUEST_WITHIN_S, self._give_up)

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()

    return Arrival
