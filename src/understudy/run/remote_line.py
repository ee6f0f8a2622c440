"""A line to a server: what was asked is answered, over a new connection if the old one breaks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from understudy.core.errors import UnderstudyError
from understudy.live import protocol

_PATIENCE_S = 30.0
"""How long a server may be away, to be restarted, before a client gives up."""
_RETRY_S = 0.25
_IN_FLIGHT = 32
"""Messages without an answer at one time: a server lets only so many of a connection wait."""


class _Id(msgspec.Struct):
    id: int | str | None = None


class _Refused(msgspec.Struct, tag="error"):
    code: str
    message: str


_WELCOME: msgspec.json.Decoder[protocol.Welcome | _Refused] = msgspec.json.Decoder(
    protocol.Welcome | _Refused
)
_ID = msgspec.json.Decoder(_Id)


class Line:
    """Asks and waits. Requests get ids of the line's own, so answers may come in any order."""

    welcome: protocol.Welcome

    def __init__(self, url: str, *, token: str | None = None) -> None:
        self._url, self._token = url, token
        self._socket: ClientConnection
        self._next = 0
        self._resume: tuple[str, str] | None = None
        self.reconnects = 0

    async def __aenter__(self) -> Self:
        await self._connect(patience_s=0.0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._socket.close()

    async def ask(
        self, messages: Sequence[msgspec.Struct], *, within_s: float
    ) -> list[tuple[bytes, float] | None]:
        """An answer and its seconds for each message; None where there was none in time."""
        first = self._next
        self._next += len(messages)
        waiting = {
            first + i: msgspec.json.encode(msgspec.structs.replace(one, id=first + i))
            for i, one in enumerate(messages)
        }
        answers: list[tuple[bytes, float] | None] = [None] * len(messages)
        while waiting:
            try:
                await self._exchange(waiting, answers, first, within_s)
                break
            except ConnectionClosed:
                await self._connect(patience_s=_PATIENCE_S)
                self.reconnects += 1
        return answers

    async def _exchange(
        self,
        waiting: dict[int, bytes],
        answers: list[tuple[bytes, float] | None],
        first: int,
        within_s: float,
    ) -> None:
        """Send what waits and collect answers until all are in, or the time is up."""
        unsent = deque(waiting)
        sent: dict[int, float] = {}
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while waiting:
                    while unsent and len(sent) < _IN_FLIGHT:
                        number = unsent.popleft()
                        sent[number] = time.perf_counter()
                        await self._socket.send(waiting[number], text=True)
                    data = await self._socket.recv(decode=False)
                    answered = _ID.decode(data).id
                    if answered is None and sent:
                        # Refused unread (too many messages a second): answers come in order.
                        answered = next(iter(sent))
                    if isinstance(answered, int) and waiting.pop(answered, None) is not None:
                        took_s = time.perf_counter() - sent.pop(answered)
                        answers[answered - first] = (data, took_s)

    async def _connect(self, *, patience_s: float) -> None:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                self._socket = await connect(self._url, compression=None, open_timeout=5)
                await self._introduce()
                return
            except (OSError, InvalidHandshake, ConnectionClosed, TimeoutError) as error:
                if time.monotonic() >= deadline:
                    raise UnderstudyError(
                        f"{self._url}: no server answers there ({error}); start one with "
                        "`understudy serve territory`"
                    ) from error
            await asyncio.sleep(_RETRY_S)

    async def _introduce(self) -> None:
        """Say who we are; after a break, with the key that makes us the same client again."""
        client, resume = self._resume or (None, None)
        hello = protocol.Hello(
            protocol=protocol.PROTOCOL, client=client, resume=resume, token=self._token
        )
        await self._socket.send(protocol.encode(hello), text=True)
        async with asyncio.timeout(5):
            answer = _WELCOME.decode(await self._socket.recv(decode=False))
        if isinstance(answer, _Refused):
            raise UnderstudyError(f"{self._url}: {answer.code}: {answer.message}")
        self.welcome = answer
        if answer.resume is not None:
            self._resume = (answer.client, answer.resume)
