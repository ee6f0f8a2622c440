"""Listening: a socket, uvicorn on it with limits on sockets and requests, and a heartbeat.

Stopping accepts no new connections, answers what was read, closes with 1001 and ends within
seconds, whatever the peers do. The caller handles signals.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import h11
import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from understudy.core.errors import ConfigError
from understudy.web.ws_protocol import LINGER_S, WsProtocol

REQUEST_WITHIN_S = 10.0
SPARE = 64
"""Sockets beyond the limit of clients: for requests, and to answer that the server is full."""
_HEARTBEAT_S = 0.25
_STOP_WITHIN_S = LINGER_S + 2.0


class Tls(NamedTuple):
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


def tls_of(certificate: Path | None, key: Path | None) -> Tls | None:
    """Of `--tls-cert` and `--tls-key`; None where neither is given."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ConfigError("--tls-cert and --tls-key: expected both or none")
    tls = Tls(certificate, key)
    check_tls(tls)
    return tls


def check_tls(tls: Tls) -> None:
    """Raises `ConfigError` unless the two files are a certificate and its key."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        words = error.reason if isinstance(error, ssl.SSLError) else error
        raise ConfigError(
            f"--tls-cert {tls.certificate} --tls-key {tls.key}: expected a certificate and its "
            f"key, as PEM files without a password ({words})"
        ) from error


def bound(host: str, port: int) -> socket.socket:
    """A listening socket. Raises `ConfigError` if the address cannot be used."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else "expected 0 to 65535"
        raise ConfigError(
            f"--host {host} --port {port}: cannot listen there ({why or error}); "
            "--port 0 takes a free one"
        ) from error


def address(listening: socket.socket, *, tls: bool) -> str:
    """The URL for clients: `ws://127.0.0.1:8765/ws`."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    return f"{'wss' if tls else 'ws'}://{shown}:{port}/ws"


def _http_protocol(max_clients: int) -> type[H11Protocol]:
    """The protocol class for uvicorn (`http=`), with a limit on open sockets.

    uvicorn's own waits for ever for a request to end, on any number of sockets.
    """

    class HttpProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > max_clients + SPARE:
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


class Listening(uvicorn.Server):
    """uvicorn, stopped by `should_exit` alone."""

    def __init__(
        self,
        app: Starlette,
        *,
        max_message_bytes: int,
        max_clients: int,
        tls: Tls | None,
        beat: Callable[[], None],
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                ws=WsProtocol,
                http=_http_protocol(max_clients),
                ws_max_size=max_message_bytes,
                ws_per_message_deflate=False,  # milliseconds of work, and bombs to defuse
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_STOP_WITHIN_S,  # type: ignore[arg-type]
                ssl_certfile=None if tls is None else tls.certificate,
                ssl_keyfile=None if tls is None else tls.key,
            )
        )
        self._beat = beat

    def listen(self, at: socket.socket) -> None:
        """Until `should_exit`."""
        self.run(sockets=[at])

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Installs no signal handlers."""
        yield

    async def main_loop(self) -> None:
        """Calls `beat` several times a second."""
        while not self.should_exit:
            await self.on_tick(0)  # the date in headers
            self._beat()
            await asyncio.sleep(_HEARTBEAT_S)


if sys.platform != "win32":

    def allow(wanted: int) -> int:
        """Raise the limit on open files to `wanted` if possible; how many may be open."""
        import resource  # of POSIX alone

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return wanted
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):  # macOS has another limit beneath `hard`
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[0])

else:

    def allow(wanted: int) -> int:
        """Windows has no such limit on sockets."""
        return wanted
