"""uvicorn's WebSocket protocol, with what ASGI cannot express.

Answers are written at once, many in one write; sending never waits. A connection can be closed even
if its peer reads nothing: the close frame is sent, and soon after the socket is aborted. A message
that is too long is answered before the connection is closed. Input is parsed piece by piece, as the
application takes messages: a peer that sends much delays only itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN

from understudy.web.refusal import Refusal

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveEvent

EXTENSION = "understudy.ws"
"""The ASGI extension with the protocol object: `scope["extensions"][EXTENSION]["ws"]`."""

LINGER_S = 2.0
"""Time for a peer to read why it is disconnected."""

_LAST_ANSWERS_S = 0.05
"""Far more than the one or two turns of the loop that answering takes."""

_LONGEST_REASON = 123
"""Bytes that fit in a close frame; a message before it can say more."""

_PIECE_BYTES = 1024
"""Bytes that are parsed at a time. A transport reads up to 256 KB at once; parsing 256 KB of short
messages takes 120 ms, for each socket that floods, in one turn of the loop."""

SLOW_AFTER_S = 5.0
"""How long answers may stay unread while the write buffer is full."""


class WsProtocol(WebSocketsSansIOProtocol):
    """The protocol class for uvicorn (`ws=WsProtocol`)."""

    slow: Callable[[], None] | None = None
    """Called if the peer does not read for `SLOW_AFTER_S`."""
    _slow_timer: asyncio.TimerHandle | None = None
    _unparsed: memoryview = memoryview(b"")
    """Input after the piece that was parsed last; the transport is paused meanwhile."""
    _frames_parsed = 0

    def tell(self, messages: Iterable[bytes]) -> None:
        """Send text messages now; messages to a peer that is gone are dropped."""
        if self.conn.state is not OPEN or self.transport.is_closing():
            return
        for message in messages:
            self.conn.send_text(message)
        self._write()

    @property
    def clogged(self) -> bool:
        """Whether the write buffer is full."""
        return not self.writable.is_set()

    def end(self, code: int, reason: str) -> None:
        """Close; the socket is aborted if the peer does not answer in time."""
        if self.close_sent or self.disconnected:
            return
        if self.conn.state is OPEN:
            self.conn.send_close(code, _short(reason))
            self._write()
        self._linger()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})

    # --- overrides of uvicorn --------------------------------------------------------------------

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["extensions"][EXTENSION] = {"ws": self}

    def data_received(self, data: bytes) -> None:
        """Parse the first piece; the others follow as the application takes messages."""
        # A transport that is paused may still hand over what TLS had decrypted.
        self._unparsed = memoryview(bytes(self._unparsed) + data)
        self._parse()

    async def receive(self) -> ASGIReceiveEvent:
        message = await self.queue.get()
        if self.queue.empty():
            self._parse()
        return message

    def handle_events(self) -> None:
        """Count frames, also those that the application does not get to see."""
        self._frames_parsed += len(self.conn.events)
        super().handle_events()

    def send_receive_event_to_app(self) -> None:
        """Text stays bytes: the session decodes JSON and checks its UTF-8, in one pass."""
        self.curr_msg_data_type = "bytes"
        super().send_receive_event_to_app()

    def handle_parser_exception(self) -> None:
        """Say what was wrong before the close frame, and let the peer read it."""
        if self.close_sent:
            return  # the rest of a refused message is dropped
        sent = self.conn.close_sent
        code = CloseCode.PROTOCOL_ERROR if sent is None else sent.code
        if code == CloseCode.MESSAGE_TOO_BIG:
            longest = self.config.ws_max_size
            words = Refusal("too_large", f"a message may have {longest} bytes at most").encoded()
            self.transport.write(Frame(Opcode.TEXT, words).serialize(mask=False))
        self._write()
        self._linger()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": int(code), "reason": ""})

    def keepalive_timeout(self) -> None:
        """Abort a silent peer, even if it has unread answers."""
        super().keepalive_timeout()
        self._linger()

    def pause_writing(self) -> None:
        """The buffer is full: the peer has `SLOW_AFTER_S` to read."""
        super().pause_writing()
        if self.slow is not None:
            self._slow_timer = self.loop.call_later(SLOW_AFTER_S, self.slow)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._not_slow()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unparsed = memoryview(b"")
        self._not_slow()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close with 1001: messages that were read are answered, no more are read."""
        if not self.handshake_complete:
            super().shutdown()
            return
        self.stop_keepalive()
        self._unparsed = memoryview(b"")
        self.read_paused = False  # so that it is not resumed once the queue is empty
        self.transport.pause_reading()
        reason = "the server is stopping"
        self.loop.call_later(_LAST_ANSWERS_S, self.end, CloseCode.GOING_AWAY, reason)

    def _parse(self) -> None:
        """Parse on to the end of a frame. The transport is read again once all is parsed and all
        messages are taken."""
        before = self._frames_parsed
        while self._unparsed and self._frames_parsed == before:
            piece, self._unparsed = self._unparsed[:_PIECE_BYTES], self._unparsed[_PIECE_BYTES:]
            super().data_received(bytes(piece))
        has_messages = not self.queue.empty() and not self.close_sent
        is_paused = has_messages or bool(self._unparsed)
        if is_paused is not self.read_paused and not self.transport.is_closing():
            self.read_paused = is_paused
            (self.transport.pause_reading if is_paused else self.transport.resume_reading)()
        if self._unparsed and not has_messages:
            self.loop.call_soon(self._parse)  # pings, say, which `receive` does not wait for

    def _not_slow(self) -> None:
        if self._slow_timer is not None:
            self._slow_timer.cancel()
            self._slow_timer = None

    def _write(self) -> None:
        self.transport.write(b"".join(self.conn.data_to_send()))

    def _linger(self) -> None:
        """Read on for `LINGER_S`, so that no reset overtakes the last messages."""
        self.close_sent = True
        self._unparsed = memoryview(b"")
        self.read_paused = False
        self.transport.resume_reading()
        if self.close_timer is not None:
            self.close_timer.cancel()
        self.close_timer = self.loop.call_later(LINGER_S, self.transport.abort)


def _short(reason: str) -> str:
    """As much as fits into a close frame, in whole characters."""
    return reason.encode("utf-8", "replace")[:_LONGEST_REASON].decode("utf-8", "ignore")
