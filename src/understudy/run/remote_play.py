"""Territory as a real client of a server: the game runs here, the decisions come over a WebSocket.

The game's clock is `speed` times as fast as a real one, at most: nothing makes a network faster, so
a tick waits for its answers. A connection that breaks is made again, and the observations that had
no answer are sent again under their old time: the server knows them, and nothing counts twice.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np

from understudy.core.errors import ConfigError, MissingDependency, UnderstudyError
from understudy.live import protocol, queen_messages
from understudy.run.budget import Length
from understudy.run.interrupts import Interrupts
from understudy.run.territory_matches import SECONDS_PER_TICK, TerritoryMatches, action_of

if TYPE_CHECKING:  # it needs websockets, which not everybody has
    from understudy.run.remote_line import Line

_ANSWER_S = float(SECONDS_PER_TICK)
"""How long the game waits for an answer before it goes on without: a tick of its real clock."""
_RECENT = 5_000


class _Refused(msgspec.Struct, tag="error"):
    """An error, of the session or of the server around it: each has codes of its own."""

    code: str
    message: str
    field: str | None = None


_Answer: TypeAlias = queen_messages.SpawnDecision | queen_messages.ObservationAck | _Refused
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
    def length(self) -> Length:
        """How long it goes on."""
        return Length("--ticks", self.ticks, self.minutes)

    def __post_init__(self) -> None:
        if not self.url.startswith(("ws://", "wss://")):
            raise ConfigError(
                f"--url: expected an address such as ws://127.0.0.1:8765/ws, got {self.url!r}"
            )
        if self.territories < 1:
            raise ConfigError(f"--territories: expected 1 or more, got {self.territories}")
        if not self.speed > 0:
            raise ConfigError(f"--speed: expected more than 0, got {self.speed}")
        self.length.check()


@dataclass
class RemoteProgress:
    """How a session goes, for whoever shows it; also what came of it."""

    session: RemoteSession
    began: float = field(default_factory=time.monotonic)
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
    version: int = 0
    latency_ms: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    rewards: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    reward_sum: float = 0.0
    reward_count: int = 0
    chunks: deque[int] = field(default_factory=lambda: deque(maxlen=_RECENT))
    """Where the last thousands of parasites were spawned"""
    code: int = 0
    """How the process should end: 0, 130 after Ctrl-C, 143 after SIGTERM"""

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended it early."""
        return self.code != 0

    @property
    def elapsed_s(self) -> float:
        """Since the first tick."""
        return time.monotonic() - self.began

    @property
    def share(self) -> float:
        """How much of the session is over, 0 to 1."""
        return self.session.length.share(done=self.ticks, elapsed_s=self.elapsed_s)

    @property
    def left_s(self) -> float | None:
        """Estimated seconds until the end."""
        return self.session.length.left_s(done=self.ticks, elapsed_s=self.elapsed_s)

    @property
    def speed(self) -> float:
        """How fast the game's clock really ran."""
        return self.ticks * SECONDS_PER_TICK / max(self.elapsed_s, 1e-9)

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

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        return {
            "url": self.session.url,
            "territories": self.session.territories,
            "ticks": self.ticks,
            "seconds": self.elapsed_s,
            "speed": self.speed,
            "decisions": self.decisions,
            "decisions_s": self.decisions / max(self.elapsed_s, 1e-9),
            "spawns": self.spawns,
            "waits": self.waits,
            "degraded": self.degraded,
            "refused": self.refused,
            "unanswered": self.unanswered,
            "reconnects": self.reconnects,
            "version": self.version,
            "mean_reward": self.reward_sum / max(self.reward_count, 1),
            "mean_reward_last": self.mean_reward,
            "largest_chunk_share": self.largest_chunk_share,
            "latency_ms": {"p50": self.percentile_ms(50), "p99": self.percentile_ms(99)},
            "interrupted": self.interrupted,
        }


def play_remote(
    session: RemoteSession, *, show: Callable[[RemoteProgress], None]
) -> RemoteProgress:
    """Play the whole session; Ctrl-C ends it after the tick in progress."""
    try:
        from understudy.run.remote_line import Line
    except ModuleNotFoundError as error:
        raise MissingDependency(
            'playing on a server needs websockets: pip install ".[serve]" in your clone'
        ) from error
    with Interrupts() as interrupts:
        return asyncio.run(_play(session, Line(session.url, token=session.token), show, interrupts))


async def _play(
    session: RemoteSession,
    line: Line,
    show: Callable[[RemoteProgress], None],
    interrupts: Interrupts,
) -> RemoteProgress:
    progress = RemoteProgress(session)
    games = TerritoryMatches(count=session.territories, seed=session.seed)
    async with line:
        if line.welcome.game.partition(" ")[0] != "territory":
            raise UnderstudyError(
                f"{session.url} serves {line.welcome.game}; expected territory "
                "(understudy serve territory)"
            )
        progress.began = due = time.monotonic()
        while progress.share < 1.0 and not interrupts.asked:
            await _tick(line, games, progress)
            show(progress)
            # Behind time the clock slows down: to hurry afterwards would only make it worse.
            due = max(due + SECONDS_PER_TICK / session.speed, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
        await line.ask([protocol.End(territory=name) for name in games.names], within_s=_ANSWER_S)
    progress.code = interrupts.code
    progress.reconnects = line.reconnects
    return progress


async def _tick(line: Line, games: TerritoryMatches, progress: RemoteProgress) -> None:
    """Every territory is observed, answered and played one tick further."""
    messages = [protocol.ObservationData(data=data) for data in games.observations()]
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
    if isinstance(answer, queen_messages.SpawnDecision):
        progress.decisions += 1
        progress.version = answer.version
        progress.degraded += answer.degraded
        if answer.spawn_type is None:
            return 0
        progress.spawns += 1
        progress.chunks.append(answer.spawn_chunk)
        return action_of(answer.spawn_chunk, answer.spawn_type)
    if isinstance(answer, queen_messages.ObservationAck):
        progress.decisions += 1
        progress.waits += 1
        progress.version = answer.version
        return 0
    progress.refused += 1
    progress.problem = f"{answer.code}: {answer.message} ({answer.field})"
    return 0
