"""One WebSocket from its handshake to its end: who it is, then message in, message out.

A connection never waits for another. It is not read while its own answers lie unread, and is ended
if that lasts; nor while it is over its rate, or its line is full. A name that comes back with its
key takes over from the connection it had.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from understudy.server.auth import Auth
from understudy.server.batching import Batching
from understudy.server.clients import Clients
from understudy.server.handshake import Greeting, greet
from understudy.server.refusal import POLICY, Refusal
from understudy.server.ws_protocol import EXTENSION, SLOW_AFTER_S, WsProtocol

HELLO_WITHIN_S = 5.0
_LOOK_EVERY_S = 0.25
"""How often a connection over its rate looks whether it is gone."""
TAKEN_OVER = 4001
"""Close code (of the range for applications): the same client connected again."""


class Room(Protocol):
    """What connections need of the session."""

    def joined(self, client: str) -> None:
        """A connection of this client begins."""

    def left(self, client: str) -> None:
        """One of its connections is over."""

    def wait_s(self, client: str, count: int) -> float:
        """Seconds until so many messages are within the rate of this client; 0: they are now."""


@dataclass(eq=False)
class Connection:
    """An open one, and whose it is."""

    client: str
    wire: WsProtocol
    address: str | None

    def tell(self, messages: Sequence[bytes]) -> None:
        """Answers."""
        self.wire.tell(messages)


class Connections:
    """The ASGI application of `/ws`."""

    def __init__(
        self,
        room: Room,
        batching: Batching,
        *,
        door: Auth,
        clients: Clients,
        greeting: Greeting,
        refusals: Counter[str],
        most: int,
        burst: int,
    ) -> None:
        self._room = room
        self._batching = batching
        self._door = door
        self._clients = clients
        self._greeting = greeting
        self._refusals = refusals
        self._most = most
        self._burst = burst
        self._arriving = 0
        self._open: dict[str, Connection] = {}
        self.slow_readers = 0

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The whole life of one."""
        await receive()  # websocket.connect
        headers = Headers(scope=scope)
        refusal = self._door.refusal(headers)
        if refusal is None and len(self._open) + self._arriving >= self._most:
            refusal = Refusal("full", f"{self._most} connections are open, which is the limit")
        spoken, token = self._door.subprotocol(scope.get("subprotocols", []))
        if refusal is None and token is not None and not self._door.admits(token):
            refusal = Refusal("unauthorised", "the token is not the right one")
        if refusal is not None:
            self._refusals[refusal.code] += 1
            await _turn_away(send, refusal)
            return
        self._arriving += 1
        connection: Connection | None = None
        try:
            await send({"type": "websocket.accept", "subprotocol": spoken})
            wire: WsProtocol = scope["extensions"][EXTENSION]["wire"]
            connection = await self._arrive(
                receive, wire, trusted=self._door.admits(token), address=self._door.address(scope)
            )
        finally:
            self._arriving -= 1
        if connection is not None:
            try:
                await self._talk(connection, receive)
            finally:
                self._leave(connection)

    async def _arrive(
        self, receive: Receive, wire: WsProtocol, *, trusted: bool, address: str | None
    ) -> Connection | None:
        """Who it is; None if it left or was turned away."""
        try:
            async with asyncio.timeout(None if trusted else HELLO_WITHIN_S):
                message = await receive()
        except TimeoutError:
            words = f"expected a hello with the token within {HELLO_WITHIN_S:g} s"
            self._end(wire, Refusal("unauthorised", words))
            return None
        if message["type"] == "websocket.disconnect":
            return None
        who = greet(message["bytes"], door=self._door, clients=self._clients, trusted=trusted)
        if isinstance(who, Refusal):
            self._end(wire, who)
            return None
        connection = Connection(who.client, wire, address)
        before = self._open.get(who.client)
        self._open[who.client] = connection
        if before is not None:
            before.wire.end(TAKEN_OVER, "this client connected again")
        self._room.joined(who.client)
        if who.said_hello:
            wire.tell([self._greeting(who.client, who.id)])
        else:
            self._batching.put(who.client, message["bytes"], connection, address=address)
        return connection

    async def _talk(self, connection: Connection, receive: Receive) -> None:
        wire, client = connection.wire, connection.client
        wire.slow = lambda: self._too_slow(wire)
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
            if wire.clogged:
                await wire.writable.wait()  # ends when it is read, or ended for being slow
            await self._batching.room(connection)

    async def _within_rate(self, connection: Connection) -> None:
        """Returns once another message is within the rate of this client, or it is gone."""
        wire, client = connection.wire, connection.client
        while not wire.close_sent and not wire.disconnected:
            count = self._batching.waiting(connection) + 1  # what waits is not counted yet
            wait_s = self._room.wait_s(client, count)
            if wait_s <= 0.0:
                return
            await asyncio.sleep(min(wait_s, _LOOK_EVERY_S))

    def _too_slow(self, wire: WsProtocol) -> None:
        self.slow_readers += 1
        self._end(wire, Refusal("slow_reader", f"answers were left unread for {SLOW_AFTER_S:g} s"))

    def _leave(self, connection: Connection) -> None:
        connection.wire.slow = None
        if self._open.get(connection.client) is connection:  # nobody took over
            del self._open[connection.client]
        self._room.left(connection.client)

    def _end(self, wire: WsProtocol, refusal: Refusal) -> None:
        self._refusals[refusal.code] += 1
        wire.tell([refusal.encoded()])
        wire.end(POLICY, refusal.message)


async def _turn_away(send: Send, refusal: Refusal) -> None:
    """No handshake, but an HTTP answer that says why."""
    headers = [(b"content-type", b"application/json")]
    start = {"type": "websocket.http.response.start", "status": refusal.status, "headers": headers}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": refusal.encoded()})
