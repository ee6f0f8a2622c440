"""Open-loop load on a WebSocket server: every send has its time before the run begins.

A closed loop waits for an answer before it sends again, so that a server which stalls for a second
costs it one slow answer. Here everything that was due in that second is late as well: latency
counts from the time that a message was *scheduled* for, and a message without an answer is an
infinite one. Sends are a Poisson process and so are those of each connection: clients know nothing
of each other, so now and then many of them want something at once.

One process, WebSocket framing of its own, frames made before the run and answers read after it:
the generator must not be what is measured. `Outcome.generator_cores` says what it cost.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import numpy as np

_TEXT, _PING, _PONG, _CLOSE = 0x1, 0x9, 0xA, 0x8
_PATIENCE_S = 5.0
_TICK_S = 0.001
"""libuv counts in whole milliseconds: less would be 0, and spin on a core that the server needs."""


def frame(payload: bytes, *, opcode: int = _TEXT) -> bytes:
    """One masked frame, as clients must send them (RFC 6455, 5.3)."""
    size = len(payload)
    if size < 126:
        head = bytes((0x80 | opcode, 0x80 | size))
    elif size < 65_536:
        head = bytes((0x80 | opcode, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | opcode, 0x80 | 127)) + size.to_bytes(8, "big")
    key = os.urandom(4)
    mask = (key * (size // 4 + 1))[:size]
    masked = int.from_bytes(payload, "big") ^ int.from_bytes(mask, "big")
    return head + key + masked.to_bytes(size, "big")


class Connection(asyncio.Protocol):
    """One client; what arrives is kept with the moment at which it did."""

    def __init__(self, host: str, path: str, protocols: Sequence[str] = ()) -> None:
        self._host, self._path, self._protocols = host, path, protocols
        self._rest = b""
        self._open = False
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.answers: list[bytes] = []
        self.times: list[float] = []
        self.closed: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        key = base64.b64encode(os.urandom(16)).decode()
        offered = f"Sec-WebSocket-Protocol: {', '.join(self._protocols)}\r\n"
        self.transport.write(
            (
                f"GET {self._path} HTTP/1.1\r\nHost: {self._host}\r\nUpgrade: websocket\r\n"
                f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
                f"{offered if self._protocols else ''}\r\n"
            ).encode()
        )

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        data = self._rest + data if self._rest else data
        if not self._open:
            head, found, data = data.partition(b"\r\n\r\n")
            if not found:
                self._rest = head
                return
            if b" 101 " not in head.split(b"\r\n")[0]:
                self.closed = head.decode("latin-1")
                self.ready.set_exception(ConnectionError(self.closed))
                return
            self._open = True
            self.ready.set_result(None)
        at, end = 0, len(data)
        while end - at >= 2:
            opcode, size, begin = data[at] & 0x0F, data[at + 1], at + 2
            if size > 125:
                begin += 2 if size == 126 else 8
                size = int.from_bytes(data[at + 2 : begin], "big")
            if end < begin + size:
                break
            payload = data[begin : begin + size]
            at = begin + size
            if opcode == _TEXT:
                self.times.append(now)
                self.answers.append(payload)
            elif opcode == _PING:
                self.transport.write(frame(payload, opcode=_PONG))
            elif opcode == _CLOSE:
                self.closed = f"closed by the server: {payload!r}"
        self._rest = data[at:]

    def connection_lost(self, error: Exception | None) -> None:
        self.closed = self.closed or f"lost: {error}"
        if not self.ready.done():
            self.ready.set_exception(ConnectionError(self.closed))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a load came to; all arrays are in the order of the schedule."""

    latency_ms: np.ndarray
    """float64 [N], from the scheduled time; infinite where no answer came"""
    answers: list[bytes | None]
    seconds: float
    """From the first send to the last answer"""
    offered: float
    """Messages a second that were scheduled"""
    generator_cores: float
    closed: list[str]
    """What became of connections that did not last"""

    def of(self, share: float) -> float:
        """A percentile of latency, in milliseconds."""
        return float(np.percentile(self.latency_ms, share, method="higher"))

    @property
    def answered(self) -> int:
        """Messages that were answered at all."""
        return int(np.isfinite(self.latency_ms).sum())

    @property
    def held(self) -> bool:
        """Everything was answered, and at the pace at which it came."""
        due_s = len(self.latency_ms) / self.offered
        return self.answered == len(self.latency_ms) and self.seconds < 1.02 * due_s + 0.5


def spread(count: int, connections: int, *, seed: int = 0) -> np.ndarray:
    """int64 [count]: the connection that each message goes over, drawn by lot."""
    return np.random.default_rng((seed, 1)).integers(0, connections, count)


def schedule(count: int, *, rate: float, seed: int) -> np.ndarray:
    """float64 [count]: seconds from the start, a Poisson process that ends at count / rate."""
    gaps = np.random.default_rng(seed).exponential(size=count)
    times: np.ndarray = np.cumsum(gaps) * (count / rate / gaps.sum())
    return times


def drive(
    url: str,
    messages: Sequence[bytes],
    *,
    rate: float,
    order: np.ndarray,
    hello: bytes = b"",
    seed: int = 0,
) -> Outcome:
    """Send message i over connection order[i], each at its time; every connection says hello."""
    loop_factory = None
    try:
        import uvloop  # not on Windows

        loop_factory = uvloop.new_event_loop
    except ImportError:
        pass
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(_drive(url, messages, rate=rate, order=order, hello=hello, seed=seed))


async def _drive(
    url: str,
    messages: Sequence[bytes],
    *,
    rate: float,
    order: np.ndarray,
    hello: bytes,
    seed: int,
) -> Outcome:
    clients = await _connect(url, int(order.max()) + 1, hello)
    frames = [frame(message) for message in messages]
    due = schedule(len(frames), rate=rate, seed=seed)
    gc.collect()
    gc.disable()  # a collection of ours would be a stall of theirs
    try:
        cpu, began = time.process_time(), time.perf_counter()
        await _send_on_time([clients[index] for index in order], frames, began + due)
        await _patience(clients, len(frames))
        cpu = time.process_time() - cpu
        outcome = _outcome(clients, order, began + due, rate=rate, began=began, cpu=cpu)
    finally:
        gc.enable()
        for client in clients:
            client.transport.close()
    return outcome


async def _connect(url: str, count: int, hello: bytes) -> list[Connection]:
    parts = urlsplit(url)
    assert parts.hostname and parts.port, f"expected ws://HOST:PORT/PATH, got {url}"
    host, port = parts.hostname, parts.port
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(
            lambda: Connection(parts.netloc, parts.path or "/"), host, port
        )
        for _ in range(count)
    ]
    clients = [protocol for _, protocol in made]
    for client in clients:
        await client.ready
    if hello:
        for client in clients:
            client.transport.write(frame(hello))
        deadline = time.perf_counter() + _PATIENCE_S
        while any(not client.answers for client in clients):
            if time.perf_counter() > deadline or any(client.closed for client in clients):
                raise ConnectionError("no welcome came back")
            await asyncio.sleep(0.01)
    for client in clients:
        client.answers.clear()
        client.times.clear()
    return clients


async def _send_on_time(over: list[Connection], frames: list[bytes], due: np.ndarray) -> None:
    index, count = 0, len(frames)
    times = due.tolist()
    while index < count:
        now = time.perf_counter()
        while index < count and times[index] <= now:
            over[index].transport.write(frames[index])
            index += 1
        if index < count:
            await asyncio.sleep(max(times[index] - now, _TICK_S))


async def _patience(clients: list[Connection], wanted: int) -> None:
    deadline = time.perf_counter() + _PATIENCE_S
    while sum(len(client.answers) for client in clients) < wanted:
        if time.perf_counter() > deadline or all(client.closed for client in clients):
            return
        await asyncio.sleep(0.005)


def _outcome(
    clients: list[Connection],
    order: np.ndarray,
    due: np.ndarray,
    *,
    rate: float,
    began: float,
    cpu: float,
) -> Outcome:
    latency = np.full(len(due), np.inf)
    answers: list[bytes | None] = [None] * len(due)
    last = began
    for number, client in enumerate(clients):
        mine = np.flatnonzero(order == number).tolist()
        for index, at, answer in zip(mine, client.times, client.answers, strict=False):
            latency[index] = 1e3 * (at - due[index])
            answers[index] = answer
            last = max(last, at)
    seconds = max(last - began, 1e-9)
    return Outcome(
        latency_ms=latency,
        answers=answers,
        seconds=seconds,
        offered=rate,
        generator_cores=cpu / seconds,
        closed=[client.closed for client in clients if client.closed],
    )
