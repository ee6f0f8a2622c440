"""A server by its address: its `GET /status`, read again and again, as the view of a run."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections import deque

import msgspec

from understudy.core.clock import Clock
from understudy.core.errors import ConfigError
from understudy.telemetry.events import Event, Note, Problem, VersionAdopted
from understudy.telemetry.journal import Entry
from understudy.telemetry.run_view import RunView, ServerStatus
from understudy.telemetry.status import Percentiles, Status
from understudy.telemetry.trends import Trend, Trends

_TIMEOUT_S = 5.0
_MAX_BYTES = 8 * 2**20
_RECENT = 200


class ServerReader:
    """Reads `GET /status` of a server. It tells of this moment alone: trends and the log are what
    has changed between readings."""

    def __init__(self, url: str, *, token: str | None, clock: Clock) -> None:
        self._request = status_request(url, token)
        self._clock = clock
        self._trends: Trends = {}
        self._recent: deque[Entry] = deque(maxlen=_RECENT)
        self._last: tuple[float, ServerStatus] | None = None

    def read(self) -> RunView:
        try:
            with urllib.request.urlopen(self._request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
                data = answer.read(_MAX_BYTES)
            live = msgspec.json.decode(data, type=ServerStatus)
        except urllib.error.HTTPError as error:
            raise ConfigError(f"{self._request.full_url}: {_refused(error)}") from error
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError) as error:
            why = getattr(error, "reason", None) or error
            raise ConfigError(f"no server answers at {self._request.full_url} ({why})") from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{self._request.full_url}: expected the status of `understudy serve` ({error})"
            ) from error
        at = self._clock.time()
        self._note(live, at)
        view = server_view(live, self._trends, run=self._request.full_url, at=at)
        return msgspec.structs.replace(view, recent=tuple(self._recent))

    def _note(self, live: ServerStatus, at: float) -> None:
        """One more point of each trend. The rate is of the decisions since the last reading."""
        if self._last is not None:
            before_at, before = self._last
            if at > before_at and live.decisions >= before.decisions:
                rate = (live.decisions - before.decisions) / (at - before_at)
                self._put(at, "decisions_s", rate, live.version)
            self._recent += (Entry(at, "server", event) for event in _changes(before, live))
        self._last = at, live
        if live.answer_ms.p99 is not None:
            self._put(at, "answer_p99_ms", live.answer_ms.p99, live.version)
        if live.ledger.settled:
            self._put(at, "recent_reward", live.recent_reward, live.version)

    def _put(self, at: float, name: str, value: float, version: int) -> None:
        self._trends.setdefault(name, Trend()).add(at, value, version=version)


def _changes(before: ServerStatus, now: ServerStatus) -> list[Event]:
    """What happened between two readings, as the events that a journal would have."""
    found: list[Event] = []
    if now.version != before.version:
        found.append(VersionAdopted(version=now.version, previous=before.version))
    for what, old, new in (
        ("learner", before.learner, now.learner),
        ("learning", before.learning, now.learning),
        ("clients", f"{before.clients:,}", f"{now.clients:,}"),
    ):
        if old != new:
            found.append(Note(where=what, message=f"{old} -> {new}"))
    if now.problem and now.problem != before.problem:
        found.append(Problem(where="learner", message=now.problem))
    return found


def status_request(url: str, token: str | None) -> urllib.request.Request:
    """The request for the status of a server; `url` may be that of its WebSocket."""
    scheme, separator, rest = url.partition("://")
    scheme = {"ws": "http", "wss": "https"}.get(scheme.lower(), scheme.lower())
    if not separator or scheme not in {"http", "https"} or not rest:
        raise ConfigError(f"--url {url}: expected an address such as http://127.0.0.1:8765")
    if "@" in rest.partition("/")[0]:
        raise ConfigError("--url: expected no name or password in it; --token-file has the token")
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return urllib.request.Request(  # noqa: S310  http and https alone
        f"{scheme}://{rest.partition('/')[0]}/status", headers=headers
    )


def _refused(error: urllib.error.HTTPError) -> str:
    if error.code == http.client.UNAUTHORIZED:
        return "it needs the token of the server: --token-file FILE"
    return f"refused with {error.code} {error.reason}"


def server_view(live: ServerStatus, trends: Trends, *, run: str, at: float) -> RunView:
    """What a server says, as the view of a run."""
    times = live.answer_ms
    status = Status(
        run=run,
        at=at,
        mode="serve",
        ledger=live.ledger,
        decisions=live.decisions,
        version=live.version,
        versions=live.version,
        playing=live.version,
        learner=live.learner,
        learning=live.learning,
        buffer_file_count=live.waiting_episodes,
        paused_since=live.paused_since,
        promotion=live.by_evidence,
        decision_ms=(
            None if times.p50 is None or times.p99 is None else Percentiles(times.p50, times.p99)
        ),
    )
    return RunView(status=status, trends=trends, server=live)
