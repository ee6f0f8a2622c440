"""A real server on loopback: in a thread around a session that can be scripted, or a process."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from websockets.sync.client import ClientConnection, connect

from understudy.core.config import LiveConfig
from understudy.experience.ledger import DecisionCounts
from understudy.server.app import Server
from understudy.server.clients import Clients
from understudy.session.inbox import Incoming
from understudy.session.protocol import Error
from understudy.session.session import Outgoing
from understudy.session.status import LiveStatus
from understudy.telemetry.status import Status
from understudy.web.auth import make_auth
from understudy.web.listening import Listening, bound


class Parrot:
    """A session that says back what it heard, who said it, and in how large a batch."""

    def __init__(self) -> None:
        self.batches: list[list[Incoming]] = []
        self.there: list[str] = []
        self.gone: list[str] = []
        self.ticks = 0
        self.size = 0
        """Bytes that each answer is padded with."""
        self.allowed = 1_000_000
        """Messages that the rate of all clients allows in one batch."""
        self.over_rate: set[str] = set()
        """Clients that are over their rate until they are taken out."""

    def receive(self, inbox: Sequence[Incoming], *, degraded: bool = False) -> list[Outgoing]:
        self.batches.append(list(inbox))
        if any(b"poison" in bytes(one.data) for one in inbox):  # type: ignore[arg-type]
            raise RuntimeError("somebody sent poison from /home/somebody")
        return [
            Outgoing(
                one.client,
                msgspec.json.encode(
                    {
                        "type": "parrot",
                        "heard": bytes(one.data).decode(errors="replace"),  # type: ignore[arg-type]
                        "client": one.client,
                        "degraded": degraded,
                        "padding": "x" * self.size,
                    }
                ),
            )
            for one in inbox
        ]

    def allowance(self) -> int:
        return self.allowed

    def wait_s(self, client: str, count: int) -> float:
        return 0.01 if client in self.over_rate else 0.0

    def holds(self, client: str) -> bool:
        return self.there.count(client) > self.gone.count(client)

    def joined(self, client: str) -> None:
        self.there.append(client)

    def left(self, client: str) -> None:
        self.gone.append(client)

    def welcome(
        self, client: str, *, resume: str | None = None, request: str | int | None = None
    ) -> bytes:
        return msgspec.json.encode(
            {"type": "welcome", "client": client, "resume": resume, "id": request}
        )

    def refused(self, client: str, address: str | None) -> Error | None:
        return Error(code="rate", message="too many") if client == "hasty" else None

    def tick(self) -> None:
        self.ticks += 1

    def status(self) -> LiveStatus:
        return LiveStatus(
            game="parrot", gate="open", version=3, clients=1, territories=2,
            ledger=DecisionCounts(opened=5, settled=4, open=1), decisions=5, sent=3, waited=2,
            explored=1,
            degraded=0, unrecorded=0, duplicates=0, errors={"bad_json": 2}, ledger_errors=0,
            settled=4, mean_reward=0.5, recent_reward=0.25, safe_actions={"error": 2}, evictions=4,
            gate_misses=6, gate_circuit="open",
        )  # fmt: skip


@dataclass
class Standing:
    """A server that runs."""

    port: int
    server: Server
    session: Parrot
    problems: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    def connect(self, **options: Any) -> ClientConnection:
        """A client as people have it."""
        options.setdefault("compression", None)
        options.setdefault("open_timeout", 5)
        socket: ClientConnection = connect(self.url, **options)
        return socket

    def request(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, body (as JSON where it is) and headers; `_` in names of headers is `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            data: Any = answer.read()
            if answer.headers.get("content-type") == "application/json":
                data = json.loads(data)
            return answer.status, data, {k.lower(): v for k, v in answer.headers.items()}
        finally:
            connection.close()

    def post(self, message: object, **headers: str) -> tuple[int, Any, dict[str, str]]:
        headers.setdefault("Content_Type", "application/json")
        return self.request("POST", "/decide", json.dumps(message).encode(), **headers)


@contextlib.contextmanager
def standing(
    folder: Path,
    *,
    token: str | None = None,
    config: LiveConfig | None = None,
    allow_origins: Sequence[str] = (),
    run: Callable[[], Status] = Status,
) -> Iterator[Standing]:
    """A server from here to the end of the block."""
    config = config or LiveConfig()
    session = Parrot()
    problems: list[str] = []
    server = Server(
        session,
        config=config,
        auth=make_auth(host="127.0.0.1", allow_hosts=(), allow_origins=allow_origins, token=token),
        clients=Clients(folder / "server", session.holds),
        run=run,
        problem=lambda words, error: problems.append(f"{words}: {error}"),
    )
    listening = Listening(
        server.app,
        max_message_bytes=config.max_message_bytes,
        max_clients=config.max_clients,
        tls=None,
        beat=lambda: server.beat(time.monotonic()),
    )
    at = bound("127.0.0.1", 0)
    port = at.getsockname()[1]
    thread = threading.Thread(target=listening.listen, args=(at,), daemon=True)
    thread.start()
    try:
        yield Standing(port, server, session, problems)
    finally:
        listening.should_exit = True
        thread.join(10.0)
        assert not thread.is_alive(), "the server did not end"


def ask(socket: ClientConnection, message: object) -> Any:
    """One message and its answer, within seconds."""
    socket.send(message if isinstance(message, str | bytes) else json.dumps(message))
    return hear(socket)


def hear(socket: ClientConnection) -> Any:
    return json.loads(socket.recv(timeout=5))


def until(holds: Callable[[], object]) -> None:
    """Another thread is about to do it."""
    deadline = time.monotonic() + 10.0
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextlib.contextmanager
def process(*line: str, cwd: Path | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`understudy serve` as a person starts it, and its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "understudy", "serve", *line],
        cwd=cwd,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr is not None
        try:
            first = child.stderr.readline()
            assert "ws://" in first, first + child.stderr.read()
            yield child, "ws://" + first.split("ws://")[1].split(",")[0]
        finally:
            child.kill()
