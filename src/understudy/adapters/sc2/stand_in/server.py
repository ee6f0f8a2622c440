"""The stand-in as a server, and as a socket that needs none.

`serving` is a server of WebSockets at `/sc2api`, as StarCraft II has it:

    async with serving(Scenario(seed=1)) as address, connected(address) as socket:
        await play_from_websocket(socket, Bot(Race.Zerg, ai), realtime=False, portconfig=None)

A `LocalSocket` carries the same bytes without a network.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiohttp import web

from understudy.adapters.sc2.stand_in.connection import GameConnection, Scenario, SocketClosed


@contextlib.asynccontextmanager
async def serving(
    scenario: Scenario = Scenario(),  # noqa: B008  it is immutable
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    quit_asked: asyncio.Event | None = None,
) -> AsyncIterator[str]:
    """A server while the block runs; its address. `quit_asked` is set when a client quits it."""

    async def serve(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=0, autoping=True)
        await socket.prepare(request)
        connection = GameConnection(_numbered(scenario, next(clients)))
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.BINARY:
                break
            try:
                answer = connection.answer(message.data)
            except SocketClosed:
                break
            await socket.send_bytes(answer)
            if connection.over:
                if quit_asked is not None:
                    quit_asked.set()
                break
        await socket.close()
        return socket

    clients = itertools.count()
    app = web.Application()
    app.router.add_get("/sc2api", serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        bound = runner.addresses[0][1]
        yield f"ws://{host}:{bound}/sc2api"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def connected(address: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """An open socket to a game, as `play_from_websocket` takes it."""
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(address, max_msg_size=0) as socket,
    ):
        yield socket


def local_socket(scenario: Scenario = Scenario()) -> Any:  # noqa: B008  it is immutable
    """A `LocalSocket`, untyped: `play_from_websocket` names the class of aiohttp."""
    return LocalSocket(scenario)


class LocalSocket:
    """A socket to a game in this process, with the methods of aiohttp's that burnysc2 calls.

    One serves any number of matches, each with the next seed, where `play_from_websocket` is told
    `should_close=False`.
    """

    def __init__(self, scenario: Scenario = Scenario()) -> None:  # noqa: B008  it is immutable
        self.closed = False
        self._connection = GameConnection(scenario)
        self._answers: deque[bytes] = deque()

    async def send_bytes(self, data: bytes) -> None:
        """Takes a request.

        Raises:
            ConnectionResetError: The socket is closed.
        """
        if self.closed:
            raise ConnectionResetError("Cannot write to closing transport")
        try:
            self._answers.append(self._connection.answer(data))
        except SocketClosed:
            self.closed = True

    async def receive_bytes(self) -> bytes:
        """The answer to the oldest request.

        Raises:
            TypeError: The socket is closed, as aiohttp says it.
        """
        await asyncio.sleep(0)  # other tasks run here, and a Ctrl-C is seen
        if not self._answers:
            raise TypeError("Received message is not bytes: the socket is closed")
        return self._answers.popleft()

    async def close(self) -> None:
        """Closes it; a second call is ignored."""
        self.closed = True


def _numbered(scenario: Scenario, client: int) -> Scenario:
    """Each client of a server has seeds of its own."""
    if scenario.seed is None:
        return scenario
    return scenario._replace(seed=scenario.seed + client)
