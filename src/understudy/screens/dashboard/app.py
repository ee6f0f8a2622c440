"""The application of the dashboard: pages, live updates, actions, replays and static files.

Every request and every WebSocket handshake passes `Auth` first: the name of the host, the origin of
the page that asks, and the token, where there is one. A browser keeps a cookie that is made from
the token and does not tell it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from understudy.core.errors import UnderstudyError
from understudy.screens.dashboard.layout import POLICY, shell
from understudy.screens.dashboard.rendering import COMPARE, RUNS, Address, RenderedPage, Renderer
from understudy.screens.html.elements import tag
from understudy.screens.html.style import DARK, LIGHT, PARTS
from understudy.telemetry.text import plain
from understudy.web.auth import Auth

COOKIE = "understudy_dashboard"
_STATIC = Path(__file__).parent / "static"
_KINDS = {".js": "text/javascript", ".css": "text/css"}
_EVERY_S = 0.3
"""Between two looks for what has changed; an update comes at most twice that late."""
_REST = 3.0
"""Looking for changes takes a quarter of the time at most: a slow page is looked at less often."""
_LONGEST_BODY = 4_096
_POLICY_VIOLATION = 1008


class ActionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person wants changed, after having confirmed it."""

    version: int | None = None
    words: str = ""


class ReplayRequest(NamedTuple):
    """Which recorded match of which run."""

    run: str
    match: str


class Dashboard:
    """The application (`app`).

    Args:
        renderer: Makes the pages; it is called from a thread of its own, one call at a time.
        act: Does what a person asked for: `(run, action, request)`; returns what to tell. It runs
            in the same thread.
        replay: Streams a recorded match as lines of JSON.
    """

    def __init__(
        self,
        renderer: Renderer,
        *,
        auth: Auth,
        act: Callable[[str, str, ActionRequest], str],
        replay: Callable[[ReplayRequest], AsyncIterator[bytes]],
        secure: bool = False,
    ) -> None:
        self._renderer = renderer
        self._auth = auth
        self._act = act
        self._replay = replay
        self._secure = secure
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="dashboard")
        self._files = _static_files()
        self._assets = hashlib.blake2b(
            b"".join(self._files[name] for name in sorted(self._files)), digest_size=6
        ).hexdigest()
        self.app = Starlette(
            routes=[
                Route("/", self._runs),
                Route("/compare", self._compare),
                Route("/login", self._login, methods=["GET", "POST"]),
                Route("/static/{version}/{name}", self._static),
                Route("/runs/{run}", self._run),
                Route("/runs/{run}/do/{action}", self._do, methods=["POST"]),
                Route("/runs/{run}/matches/{match}.jsonl", self._match),
                Route("/runs/{run}/{page}", self._run),
                WebSocketRoute("/live", self._live),
            ],
            middleware=[Middleware(_Guard, auth=auth, cookie=session_cookie(auth.token))],
            exception_handlers={HTTPException: self._explain},
        )

    def close(self) -> None:
        """No more rendering."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def _render(self, address: Address) -> tuple[str, RenderedPage]:
        return await asyncio.get_running_loop().run_in_executor(
            self._worker, lambda: self._renderer.document(address, assets=self._assets)
        )

    async def _page(self, address: Address) -> Response:
        text, page = await self._render(address)
        status = HTTPStatus.OK if page.found else HTTPStatus.NOT_FOUND
        return HTMLResponse(text, status, headers=_HEADERS)

    async def _runs(self, _: Request) -> Response:
        return await self._page(Address(RUNS))

    async def _compare(self, request: Request) -> Response:
        return await self._page(Address(COMPARE, runs=_chosen(request.query_params.getlist("run"))))

    async def _run(self, request: Request) -> Response:
        path = request.path_params
        match = request.query_params.get("match", "")
        return await self._page(Address(path.get("page", "overview"), path["run"], match=match))

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._files:
            raise HTTPException(HTTPStatus.NOT_FOUND, "there is no such file")
        return Response(
            self._files[name],
            media_type=_KINDS[Path(name).suffix],
            # Its address has the digest of all files in it.
            headers={"Cache-Control": "public, max-age=31536000, immutable", **_NO_SNIFF},
        )

    async def _do(self, request: Request) -> Response:
        """An action. A page of another origin cannot ask for it: its `Origin` is refused, and a
        form cannot send JSON."""
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected application/json")
        try:
            asked = msgspec.json.decode(await _body(request), type=ActionRequest)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise HTTPException(HTTPStatus.BAD_REQUEST, plain(str(error), limit=300)) from error
        run, action = request.path_params["run"], request.path_params["action"]
        try:
            said = await asyncio.get_running_loop().run_in_executor(
                self._worker, self._act, run, action, asked
            )
        except (UnderstudyError, OSError) as error:
            return _json({"error": plain(str(error), limit=600)}, HTTPStatus.CONFLICT)
        return _json({"said": said})

    async def _match(self, request: Request) -> Response:
        asked = ReplayRequest(request.path_params["run"], request.path_params["match"])
        return StreamingResponse(
            self._replay(asked), media_type="application/x-ndjson", headers=_HEADERS
        )

    async def _login(self, request: Request) -> Response:
        """Where a browser gives the token."""
        wrong = False
        if request.method == "POST":
            form = parse_qs((await _body(request)).decode("utf-8", "replace"), max_num_fields=4)
            if self._auth.admits(form.get("token", [""])[0].strip()):
                cookie = session_cookie(self._auth.token)
                answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
                if cookie is not None:
                    answer.set_cookie(
                        COOKIE, cookie, httponly=True, samesite="strict", secure=self._secure
                    )
                return answer
            wrong = True
        text = _login_page(wrong=wrong, assets=self._assets)
        status = HTTPStatus.UNAUTHORIZED if wrong else HTTPStatus.OK
        return HTMLResponse(text, status, headers=_HEADERS)

    async def _explain(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if request.method == "POST":
            return _json({"error": error.detail}, error.status_code)
        said = tag("p", error.detail, class_="finding problem")
        text = shell(
            title="Not found", parts={"error": (said, "")}, assets=self._assets, live=False
        )
        return HTMLResponse(text, error.status_code, headers=_HEADERS)

    async def _live(self, socket: WebSocket) -> None:
        """Sends the parts of a page that changed, until the page is left."""
        await socket.accept()
        try:
            first = await socket.receive()
            asked = msgspec.json.decode(first.get("bytes") or first.get("text") or "", type=_Follow)
            gone = asyncio.ensure_future(socket.receive())
            await self._follow(socket, asked, gone)
            gone.cancel()
        except (WebSocketDisconnect, msgspec.MsgspecError, RuntimeError):
            pass  # the page was closed, or is none of ours

    async def _follow(
        self, socket: WebSocket, asked: _Follow, gone: asyncio.Future[Message]
    ) -> None:
        address, known, assets = asked.address(), dict(asked.parts), asked.assets
        while not gone.done():
            page = await asyncio.get_running_loop().run_in_executor(
                self._worker, self._renderer.content, address
            )
            new = {key: one for key, one in page.parts.items() if known.get(key) != one.digest}
            if new or set(known) != set(page.parts) or assets != self._assets:
                update = {
                    "order": list(page.parts),
                    "parts": {key: [one.html.html, one.digest] for key, one in new.items()},
                    "assets": self._assets,
                }
                await socket.send_text(msgspec.json.encode(update).decode())
                known = {key: one.digest for key, one in page.parts.items()}
                assets = self._assets
            await asyncio.wait([gone], timeout=max(_EVERY_S, _REST * page.seconds))


class _Follow(msgspec.Struct, frozen=True):
    """The first message of a page: what it is, and what it has."""

    page: str
    run: str = ""
    runs: tuple[str, ...] = ()
    match: str = ""
    parts: Mapping[str, str] = {}
    """Digests by key."""
    assets: str = ""

    def address(self) -> Address:
        return Address(self.page, self.run, _chosen(self.runs), self.match)


_NO_SNIFF = {"X-Content-Type-Options": "nosniff"}
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    **_NO_SNIFF,
}
_MOST_COMPARED = 6


def _chosen(names: object) -> tuple[str, ...]:
    """Each run once, and no more than there are colours."""
    assert isinstance(names, (list, tuple))
    return tuple(dict.fromkeys(names))[:_MOST_COMPARED]


async def _body(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LONGEST_BODY:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too long")
    return body


def session_cookie(token: str | None) -> str | None:
    """What a browser keeps once it has given the token: it proves that, and does not tell it."""
    if token is None:
        return None
    return hmac.new(token.encode(), b"understudy dashboard", hashlib.sha256).hexdigest()


class _Guard:
    """Middleware: refuses foreign hosts and origins, and what has neither token nor cookie."""

    _OPEN = ("/login", "/static/")

    def __init__(self, app: ASGIApp, *, auth: Auth, cookie: str | None) -> None:
        self._app = app
        self._auth = auth
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._auth.refusal(headers)
        if refusal is not None:
            await self._refuse(scope, receive, send, refusal.status, refusal.message)
        elif scope["type"] == "http" and _embedded_elsewhere(headers):
            words = "another site asked for a part of this dashboard"
            await self._refuse(scope, receive, send, HTTPStatus.FORBIDDEN, words)
        elif scope["path"].startswith(self._OPEN) or self._admitted(scope, headers):
            await self._app(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "GET":
            await RedirectResponse("/login", HTTPStatus.SEE_OTHER)(scope, receive, send)
        else:
            words = "expected the token: open /login in this browser"
            await self._refuse(scope, receive, send, HTTPStatus.UNAUTHORIZED, words)

    def _admitted(self, scope: Scope, headers: Headers) -> bool:
        if self._cookie is None or self._auth.admits_bearer(headers):
            return True
        given = HTTPConnection(scope).cookies.get(COOKIE, "")
        return hmac.compare_digest(self._cookie.encode(), given.encode())

    async def _refuse(
        self, scope: Scope, receive: Receive, send: Send, status: int, words: str
    ) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": words})
        else:
            await _json({"error": words}, status)(scope, receive, send)


def _embedded_elsewhere(headers: Headers) -> bool:
    """Whether a page of another origin loads this as a picture, a script or the like. Browsers send
    no `Origin` with such a request; a replay would start a process for it. A link may lead here."""
    foreign = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
    return foreign and headers.get("sec-fetch-mode") != "navigate"


def _json(value: object, status: int = HTTPStatus.OK) -> Response:
    return Response(
        msgspec.json.encode(value), status, media_type="application/json", headers=_HEADERS
    )


def _static_files() -> dict[str, bytes]:
    """Scripts and styles by name."""
    files = {one.name: one.read_bytes() for one in _STATIC.iterdir() if one.suffix in _KINDS}
    themes = (
        f":root{{{LIGHT}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}"
        f":root[data-theme=light]{{{LIGHT}}}:root[data-theme=dark]{{{DARK}}}"
    )
    sheets = [files.pop(name) for name in sorted(files) if name.endswith(".css")]
    files["dashboard.css"] = b"\n".join([f"{themes}{PARTS}".encode(), *sheets])
    return files


def _login_page(*, wrong: bool, assets: str) -> str:
    form = tag(
        "form",
        tag("label", "Token ", tag("input", type="password", name="token", required="")),
        tag("button", "Open the dashboard", type="submit"),
        *([tag("p", "That is not the token.", class_="finding problem")] if wrong else []),
        method="post",
        action="/login",
        class_="login",
    )
    return shell(title="Sign in", parts={"login": (form, "")}, assets=assets, live=False)
