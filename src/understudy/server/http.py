"""HTTP routes: `POST /decide`, and the pages for people and monitoring.

A request is one message and its answer; headers name its client.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from understudy.server.batching import Batching
from understudy.server.clients import Clients
from understudy.server.handshake import MakeWelcome, is_hello, other_protocol
from understudy.session import protocol
from understudy.session.protocol import Error, Hello
from understudy.web.auth import Auth
from understudy.web.refusal import Refusal, code_of, status_of

CLIENT = "Understudy-Client"
RESUME = "Understudy-Resume"
_ANSWER_WITHIN_S = 10.0
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, kw_only=True)
class Pages:
    """The contents of the pages."""

    status: Callable[[], dict[str, object]]
    ready: Callable[[], tuple[bool, dict[str, object]]]
    metrics: Callable[[], bytes]
    schema: Callable[[], bytes]


class Http:
    """The routes besides `/ws`."""

    def __init__(
        self,
        batching: Batching,
        *,
        auth: Auth,
        clients: Clients,
        welcome: MakeWelcome,
        refused: Callable[[str, str | None], Error | None],
        refusals: Counter[str],
        pages: Pages,
        max_bytes: int,
        most: int,
    ) -> None:
        self._batching = batching
        self._auth = auth
        self._clients = clients
        self._make_welcome = welcome
        self._refused = refused
        self._refusals = refusals
        self._pages = pages
        self._max_bytes = max_bytes
        self._most = most
        self._asking = 0

    def routes(self) -> list[Route]:
        return [
            Route("/decide", self.decide, methods=["POST"]),
            Route("/healthz", self.healthz, methods=["GET"]),
            Route("/readyz", self.readyz, methods=["GET"]),
            Route("/metrics", self.metrics, methods=["GET"]),
            Route("/status", self.status, methods=["GET"]),
            Route("/schema", self.schema, methods=["GET"]),
        ]

    async def decide(self, request: Request) -> Response:
        answer = await self._decided(request)
        if isinstance(answer, Refusal):
            return self.refused(answer)
        return answer

    async def healthz(self, request: Request) -> Response:
        return _json(b'{"status":"ok"}')

    async def readyz(self, request: Request) -> Response:
        """Whether it can decide, and what the learner does."""
        ready, words = self._pages.ready()
        return _json(msgspec.json.encode({"ready": ready, **words}), 200 if ready else 503)

    async def metrics(self, request: Request) -> Response:
        """For Prometheus."""
        if not self._auth.admits_bearer(request.headers):
            return self.refused(_no_token())
        return Response(self._pages.metrics(), media_type="text/plain; version=0.0.4")

    async def status(self, request: Request) -> Response:
        if not self._auth.admits_bearer(request.headers):
            return self.refused(_no_token())
        return _json(msgspec.json.encode(self._pages.status()))

    async def schema(self, request: Request) -> Response:
        """The messages, as JSON Schema."""
        return _json(self._pages.schema())

    def refused(self, refusal: Refusal) -> Response:
        """Count a refusal and make its HTTP response."""
        self._refusals[refusal.code] += 1
        response = _json(refusal.encoded(), refusal.status)
        if refusal.code == "unauthorised":
            response.headers["WWW-Authenticate"] = "Bearer"
        return response

    async def _decided(self, request: Request) -> Response | Refusal:
        if not self._auth.admits_bearer(request.headers):
            return _no_token()
        # A page may send other types to any server; for JSON its browser asks the server first.
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return Refusal("not_json", "expected Content-Type: application/json")
        if self._asking >= self._most:
            return Refusal("full", f"{self._most} requests are being answered, which is the limit")
        body = await self._body(request)
        if isinstance(body, Refusal):
            return body
        name, resume = request.headers.get(CLIENT), request.headers.get(RESUME)
        if name is not None and not _NAME.fullmatch(name):
            words = "expected 1 to 64 letters, digits and ._-"
            return Refusal("bad_message", words, CLIENT)
        address = self._auth.address(request.scope)
        if is_hello(body):
            return self._welcome(body, name, resume, address)
        client = self._clients.enter(name, resume)
        if isinstance(client, Refusal):
            return client
        key = self._clients.resume_key(client)  # now: the name may be freed meanwhile
        answer = await self._asked(client, body, address)
        if isinstance(answer, Refusal):
            return self._turned_away(answer, client, key)
        return _signed(client, key, answer)

    def _welcome(
        self, body: bytes, name: str | None, resume: str | None, address: str | None
    ) -> Response | Refusal:
        hello = protocol.decode(body, max_bytes=self._max_bytes)
        if isinstance(hello, Error):
            return Refusal(hello.code, hello.message, hello.field, hello.id)
        assert isinstance(hello, Hello)
        if (refusal := other_protocol(hello)) is not None:
            return refusal
        if name is None:
            name, resume = hello.client, hello.resume
        client = self._clients.enter(name, resume)
        if isinstance(client, Refusal):
            return client
        key = self._clients.resume_key(client)
        if (beyond := self._refused(client, address)) is not None:
            return self._turned_away(Refusal(beyond.code, beyond.message, id=hello.id), client, key)
        return _signed(client, key, self._make_welcome(client, hello.id))

    def _turned_away(self, refusal: Refusal, client: str, key: str) -> Response:
        """With the resume key, since the client has its name by now."""
        self._refusals[refusal.code] += 1
        return _signed(client, key, refusal.encoded())

    async def _asked(self, client: str, body: bytes, address: str | None) -> bytes | Refusal:
        asked = _Asked()
        self._asking += 1
        try:
            self._batching.put(client, body, asked, address=address)
            async with asyncio.timeout(_ANSWER_WITHIN_S):
                return await asked.answer
        except TimeoutError:
            return Refusal("internal", "there was no answer in time")
        finally:
            self._asking -= 1

    async def _body(self, request: Request) -> bytes | Refusal:
        """The posted bytes, up to the limit."""
        body = bytearray()
        try:
            async with asyncio.timeout(_ANSWER_WITHIN_S):
                async for piece in request.stream():
                    body += piece
                    if len(body) > self._max_bytes:
                        words = f"a message may have {self._max_bytes} bytes at most"
                        return Refusal("too_large", words)
        except TimeoutError:
            return Refusal("too_slow", f"the message did not come within {_ANSWER_WITHIN_S:g} s")
        except ClientDisconnect:
            return Refusal("too_slow", "the message did not come")
        return bytes(body)


class _Asked:
    """The asker of a request: a future for its one answer."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def tell(self, messages: Sequence[bytes]) -> None:
        if not self.answer.done():  # the client may be gone
            self.answer.set_result(messages[0])


def _signed(client: str, key: str, answer: bytes) -> Response:
    """An answer with its client and resume key, which the next request of that client sends."""
    response = _json(answer, status_of(code_of(answer)))
    response.headers[CLIENT] = client
    response.headers[RESUME] = key
    return response


def _no_token() -> Refusal:
    return Refusal("unauthorised", "expected Authorization: Bearer TOKEN")


def _json(data: bytes, status: int = 200) -> Response:
    return Response(data, status, media_type="application/json")
