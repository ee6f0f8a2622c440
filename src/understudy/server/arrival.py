"""Whoever opens a socket: not too many at once, and each has to say soon what it wants."""

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
        """uvicorn's, which would wait for ever for a first request, from any number of sockets."""

        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > most + SPARE:
                transport.abort()
                return
            self._deadline = self.loop.call_later(REQUEST_WITHIN_S, self._give_up)

        def handle_websocket_upgrade(self, event: h11.Request) -> None:
            self._stop_waiting()  # its wire waits from here on
            super().handle_websocket_upgrade(event)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def _give_up(self) -> None:
            asked: object = self.cycle  # uvicorn types it as if it were always there
            if asked is None:
                self.transport.abort()

        def _stop_waiting(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()

    return Arrival
