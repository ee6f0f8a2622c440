"""WebSocket connections, from the handshake to the close.

A connection never waits for another. It is not read while its own answers are unread (and is closed
if that lasts), while it is over its rate, or while its queue is full. A client that connects again
with its resume key takes over from its earlier connection.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from understudy.server.batching import Batching
from understudy.server.clients import Clients
from understudy.server.handshake import MakeWelcome, accept
from understudy.web.auth import Auth
from understudy.web.refusal import POLICY, Refusal
from understudy.web.ws_protocol import EXTENSION, SLOW_AFTER_S, WsProtocol

HELLO_WITHIN_S = 5.0
_LOOK_EVERY_S = 0.25
"""How often a connection over its rate checks whether its peer is gone."""
TAKEN_OVER = 4001
"""Close code (in the range for applications): the same client connected again."""


class ConnectionCounts(Protocol):
    """What connections need of the session."""

    def joined(self, client: str) -> None:
        """A connection of this client begins."""

    def left(self, client: str) -> None:
        """One of its connections is over."""

    def wait_s(self, client: str, count: int) -> float:
        """Seconds until so many messages are within the rate of this client; 0: they are now."""


@dataclass(eq=False)
class Connection:
    """An open connection of a client."""

    client: str
    ws: WsProtocol
    address: str | None

    def tell(self, messages: Sequence[bytes]) -> None:
        self.ws.tell(messages)


class Connections:
    """The ASGI application of `/ws`."""

    def __init__(
        self,
        session: ConnectionCounts,
        batching: Batching,
        *,
        auth: Auth,
        clients: Clients,
        welcome: MakeWelcome,
        refusals: Counter[str],
        most: int,
        burst: int,
    ) -> None:
        self._session = session
        self._batching = batching
        self._auth = auth
        self._clients = clients
        self._welcome = welcome
        self._refusals = refusals
        self._most = most
        self._burst = burst
        self._in_handshake = 0
        self._open: dict[str, Connection] = {}
        self.slow_readers = 0

    def __len__(self) -> int:
        return len(self._open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection until it is closed."""
        await receive()  # websocket.connect
        headers = Headers(scope=scope)
        refusal = self._auth.refusal(headers)
        if refusal is None and len(self._open) + self._in_handshake >= self._most:
            refusal = Refusal("full", f"{self._most} connections are open, which is the limit")
        spoken, token = self._auth.subprotocol(scope.get("subprotocols", []))
        if refusal is None and token is not None and not self._auth.admits(token):
            refusal = Refusal("unauthorised", "the token is not the right one")
        if refusal is not None:
            self._refusals[refusal.code] += 1
            await _refuse(send, refusal)
            return
        self._in_handshake += 1
        connection: Connection | None = None
        try:
            await send({"type": "websocket.accept", "subprotocol": spoken})
            ws: WsProtocol = scope["extensions"][EXTENSION]["ws"]
            connection = await self._handshake(
                receive, ws, trusted=self._auth.admits(token), address=self._auth.address(scope)
            )
        finally:
            self._in_handshake -= 1
        if connection is not None:
            try:
                await self._talk(connection, receive)
            finally:
                self._leave(connection)

    async def _handshake(
        self, receive: Receive, ws: WsProtocol, *, trusted: bool, address: str | None
    ) -> Connection | None:
        """The connection of an accepted client; None if it left or was refused."""
        try:
            async with asyncio.timeout(None if trusted else HELLO_WITHIN_S):
                message = await receive()
        except TimeoutError:
            words = f"expected a hello with the token within {HELLO_WITHIN_S:g} s"
            self._end(ws, Refusal("unauthorised", words))
            return None
        if message["type"] == "websocket.disconnect":
            return None
        who = accept(message["bytes"], auth=self._auth, clients=self._clients, trusted=trusted)
        if isinstance(who, Refusal):
            self._end(ws, who)
            return None
        connection = Connection(who.client, ws, address)
        before = self._open.get(who.client)
        self._open[who.client] = connection
        if before is not None:
            before.ws.end(TAKEN_OVER, "this client connected again")
        self._session.joined(who.client)
        if who.said_hello:
            ws.tell([self._welcome(who.client, who.id)])
        else:
            self._batching.put(who.client, message["bytes"], connection, address=address)
        return connection

    async def _talk(self, connection: Connection, receive: Receive) -> None:
        ws, client = connection.ws, connection.client
        ws.slow = lambda: self._too_slow(ws)
        read = self._batching.waiting(connection)  # a first message that was no hello
        while True:
            await self._within_rate(connection)  # also of what it sent before it came back
            message: Message = await receive()
            if message["type"] == "websocket.disconnect":
                return
            self._batching.put(client, message["bytes"], connection, address=connection.address)
            read += 1
            if read % self._burst == 0:
                await asyncio.sleep(0)  # else a burst would be read to its end before any answer
            if ws.clogged:
                await ws.writable.wait()  # ends when it is read, or ended for being slow
            await self._batching.room(connection)

    async def _within_rate(self, connection: Connection) -> None:
        """Returns once another message is within the rate of this client, or it is gone."""
        ws, client = connection.ws, connection.client
        while not ws.close_sent and not ws.disconnected:
            count = self._batching.waiting(connection) + 1  # what waits is not counted yet
            wait_s = self._session.wait_s(client, count)
            if wait_s <= 0.0:
                return
            await asyncio.sleep(min(wait_s, _LOOK_EVERY_S))

    def _too_slow(self, ws: WsProtocol) -> None:
        self.slow_readers += 1
        self._end(ws, Refusal("slow_reader", f"answers were left unread for {SLOW_AFTER_S:g} s"))

    def _leave(self, connection: Connection) -> None:
        connection.ws.slow = None
        if self._open.get(connection.client) is connection:  # no other took over
            del self._open[connection.client]
        self._session.left(connection.client)

    def _end(self, ws: WsProtocol, refusal: Refusal) -> None:
        self._refusals[refusal.code] += 1
        ws.tell([refusal.encoded()])
        ws.end(POLICY, refusal.message)


async def _refuse(send: Send, refusal: Refusal) -> None:
    """An HTTP answer that says why, instead of the handshake."""
    headers = [(b"content-type", b"application/json")]
    start = {"type": "websocket.http.response.start", "status": refusal.status, "headers": headers}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": refusal.encoded()})
