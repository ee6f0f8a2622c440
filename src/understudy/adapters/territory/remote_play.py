"""Territory as a client of a server: the game runs here, the decisions come over a WebSocket.

The game's clock runs at most `speed` times as fast as real time, because every tick waits for its
answers. `ServerLine` makes a broken connection again and repeats the requests without an answer.
Observations are repeated under their old time, so the server recognises them and counts none twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias

import msgspec
import numpy as np

from understudy.adapters.territory import messages
from understudy.adapters.territory.matches import SECONDS_PER_TICK, TerritoryMatches, action_of
from understudy.adapters.territory.messages import ObservationData
from understudy.core.dependencies import needs
from understudy.core.errors import ConfigError, UnderstudyError
from understudy.session import protocol
from understudy.supervise.budget import Budget
from understudy.supervise.interrupts import Interrupts
from understudy.supervise.sessions import SessionProgress, SessionSummary

with needs("playing on a server needs websockets", extra="serve"):
    from websockets.asyncio.client import ClientConnection, connect
    from websockets.exceptions import ConnectionClosed, InvalidHandshake

_PATIENCE_S = 30.0
"""How long a server may be away, to be restarted, before a client gives up."""
_RETRY_S = 0.25
_IN_FLIGHT = 32
"""Messages without an answer at one time: a server lets only so many of a connection wait."""


class _Id(msgspec.Struct):
    id: int | str | None = None


class _Refused(msgspec.Struct, tag="error"):
    """An error, of the session or of the server around it: each has codes of its own."""

    code: str
    message: str
    field: str | None = None


_WELCOME: msgspec.json.Decoder[protocol.Welcome | _Refused] = msgspec.json.Decoder(
    protocol.Welcome | _Refused
)
_ID = msgspec.json.Decoder(_Id)


class ServerLine:
    """Sends requests and waits for their answers. It numbers the requests itself, so answers may
    come in any order."""

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
        """Send the handshake; after a break, with the key that resumes the same client."""
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


_ANSWER_S = float(SECONDS_PER_TICK)
"""How long the game waits for an answer before it plays on without one: a tick of real time."""
_RECENT = 5_000


_Answer: TypeAlias = messages.SpawnDecision | messages.ObservationAck | _Refused
_ANSWER: msgspec.json.Decoder[_Answer] = msgspec.json.Decoder(_Answer)


@dataclass(frozen=True, kw_only=True)
class RemoteSession:
    """Which server to play against, with how many territories, how fast and for how long."""

    url: str
    territories: int = 20
    speed: float = 60.0
    ticks: int | None = None
    minutes: float | None = None
    seed: int = 0
    token: str | None = None

    @property
    def budget(self) -> Budget:
        """How long it is."""
        return Budget(self.ticks, self.minutes, "--ticks")

    def __post_init__(self) -> None:
        if not self.url.startswith(("ws://", "wss://")):
            raise ConfigError(
                f"--url: expected an address such as ws://127.0.0.1:8765/ws, got {self.url!r}"
            )
        if self.territories < 1:
            raise ConfigError(f"--territories: expected 1 or more, got {self.territories}")
        if not self.speed > 0:
            raise ConfigError(f"--speed: expected more than 0, got {self.speed}")
        _ = self.budget  # an error where it cannot be


@dataclass
class RemoteProgress(SessionProgress[RemoteSession]):
    """How far a session of play on a server is."""

    ticks: int = 0
    decisions: int = 0
    spawns: int = 0
    waits: int = 0
    degraded: int = 0
    refused: int = 0
    """Messages that the server answered with an error; the last one is `problem`."""
    unanswered: int = 0
    problem: str = ""
    reconnects: int = 0
    latency_ms: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    rewards: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    reward_sum: float = 0.0
    reward_count: int = 0
    chunks: deque[int] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """Where the last thousands of parasites were spawned"""

    @property
    def done(self) -> int:
        """Ticks of this session."""
        return self.ticks

    @property
    def mean_reward(self) -> float:
        """Of the last thousands of decisions."""
        return sum(self.rewards) / max(len(self.rewards), 1)

    @property
    def largest_chunk_share(self) -> float:
        """Of the last thousands of spawns, those in the busiest chunk; 0 before there is one."""
        return max(Counter(self.chunks).values(), default=0) / max(len(self.chunks), 1)

    def percentile_ms(self, share: float) -> float:
        """Of the last thousands of answers, from send to answer; 0 before there is one."""
        return float(np.percentile(self.latency_ms, share)) if self.latency_ms else 0.0


@dataclass(frozen=True, kw_only=True)
class RemoteSummary(SessionSummary):
    """The result of a session of play on a server."""

    progress: RemoteProgress
    """At the end of the session."""
    seconds: float

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        progress = self.progress
        return {
            "url": progress.session.url,
            "territories": progress.session.territories,
            "ticks": progress.ticks,
            "seconds": self.seconds,
            "speed": progress.ticks * SECONDS_PER_TICK / max(self.seconds, 1e-9),
            "decisions": progress.decisions,
            "decisions_s": progress.decisions / max(self.seconds, 1e-9),
            "spawns": progress.spawns,
            "waits": progress.waits,
            "degraded": progress.degraded,
            "refused": progress.refused,
            "unanswered": progress.unanswered,
            "reconnects": progress.reconnects,
            "version": progress.version,
            "mean_reward": progress.reward_sum / max(progress.reward_count, 1),
            "mean_reward_last": progress.mean_reward,
            "largest_chunk_share": progress.largest_chunk_share,
            "latency_ms": {"p50": progress.percentile_ms(50), "p99": progress.percentile_ms(99)},
            "interrupted": self.interrupted,
        }


def play_remote(session: RemoteSession, *, show: Callable[[RemoteProgress], None]) -> RemoteSummary:
    """Play the whole session; Ctrl-C ends it after the tick in progress."""
    with Interrupts() as interrupts:
        return asyncio.run(
            _play(session, ServerLine(session.url, token=session.token), show, interrupts)
        )


async def _play(
    session: RemoteSession,
    line: ServerLine,
    show: Callable[[RemoteProgress], None],
    interrupts: Interrupts,
) -> RemoteSummary:
    progress = RemoteProgress(session)
    games = TerritoryMatches(count=session.territories, seed=session.seed)
    async with line:
        if line.welcome.game.partition(" ")[0] != "territory":
            raise UnderstudyError(
                f"{session.url} serves {line.welcome.game}; expected territory "
                "(understudy serve territory)"
            )
        progress.began = due = time.monotonic()
        for _ in progress.turns(interrupts):
            await _tick(line, games, progress)
            show(progress)
            # Behind time the clock slows down: to hurry afterwards would only make it worse.
            due = max(due + SECONDS_PER_TICK / session.speed, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
        await line.ask([protocol.End(territory=name) for name in games.names], within_s=_ANSWER_S)
    progress.reconnects = line.reconnects
    return RemoteSummary(code=interrupts.code, progress=progress, seconds=progress.elapsed_s)


async def _tick(line: ServerLine, games: TerritoryMatches, progress: RemoteProgress) -> None:
    """Observe every territory, ask for its decision and play one tick."""
    messages = [ObservationData(data=data) for data in games.observations()]
    actions = np.zeros(games.count, np.int32)
    for index, answer in enumerate(await line.ask(messages, within_s=_ANSWER_S)):
        if answer is None:
            progress.unanswered += 1
            continue
        data, took_s = answer
        progress.latency_ms.append(1e3 * took_s)
        actions[index] = _understood(_ANSWER.decode(data), progress)
    rewards = games.play(actions)
    progress.rewards.extend(rewards.tolist())
    progress.reward_sum += float(rewards.sum())
    progress.reward_count += len(rewards)
    progress.ticks += 1
    ended = games.next_matches()
    if ended:
        await line.ask([protocol.End(territory=name) for name in ended], within_s=_ANSWER_S)


def _understood(answer: _Answer, progress: RemoteProgress) -> int:
    """The action to be executed; counts what kind of answer it was."""
    if isinstance(answer, messages.SpawnDecision):
        progress.decisions += 1
        progress.version = answer.version
        progress.degraded += answer.degraded
        if answer.spawn_type is None:
            return 0
        progress.spawns += 1
        progress.chunks.append(answer.spawn_chunk)
        return action_of(answer.spawn_chunk, answer.spawn_type)
    if isinstance(answer, messages.ObservationAck):
        progress.decisions += 1
        progress.waits += 1
        progress.version = answer.version
        return 0
    progress.refused += 1
    progress.problem = f"{answer.code}: {answer.message} ({answer.field})"
    return 0
