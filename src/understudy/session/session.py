"""The session of a live game: messages in, messages out, without I/O.

Every message gets exactly one answer, in order, whatever it says. Messages take effect in the order
in which they arrive; observations wait to be decided together, by one version of the policy, until
a message needs to know what was decided. A decision is in the ledger before its answer is returned.
One caller at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from understudy.core.clock import Clock
from understudy.core.config.serving import LiveConfig
from understudy.experience.ledger import Closing, Ledger
from understudy.gates.decision import DecisionGate
from understudy.gates.worker import GateWorker
from understudy.policy.policy import Policy
from understudy.session import protocol
from understudy.session.deciding import OVERLOAD, Decider
from understudy.session.inbox import Inbox, Incoming, SessionParts, beyond_rate, welcome
from understudy.session.limits import Rates
from understudy.session.protocol import Error, RequestId
from understudy.session.segments import PlayerSegments
from understudy.session.shards import Shard
from understudy.session.status import LiveStatus, SessionCounts
from understudy.session.territory import Territories
from understudy.session.translation import Translator


class Outgoing(NamedTuple):
    """A message, and the client that it is for."""

    client: str
    data: bytes


def _raise(words: str, error: Exception) -> None:
    raise error


class Session:
    """All territories of a live game and all their clients.

    `policy` is called once for every inbox, and returns the version to decide with. `problem` gets
    what a gate or a policy raised, and the observation on which it raised gets the safe action;
    without `problem`, `receive` raises. With `segments` a coin decides who plays, and `policy` is
    only named: where the rules are the incumbent, it has version 0 and decides nothing. With
    `shard` territories of other servers are refused.
    """

    def __init__(
        self,
        translator: Translator,
        *,
        policy: Callable[[], Policy],
        gate: DecisionGate,
        ledger: Ledger,
        config: LiveConfig,
        clock: Clock,
        seed: int | None,
        problem: Callable[[str, Exception], None] = _raise,
        segments: PlayerSegments | None = None,
        shard: Shard | None = None,
    ) -> None:
        self._policy = policy
        self._gate = gate
        self._clock = clock
        self._connections: Counter[str] = Counter()
        counts = SessionCounts()
        self._parts = SessionParts(
            translator=translator,
            decider=Decider(
                translator,
                gate=gate,
                ledger=ledger,
                config=config,
                rng=np.random.default_rng(seed),
                counts=counts,
                problem=problem,
                closed=None if segments is None else segments.closed,
                blames=segments is not None,
            ),
            ledger=ledger,
            territories=Territories(
                per_client=config.territories_per_client,
                per_address=config.territories_per_address,
                in_all=config.max_territories,
                evict_after_s=config.evict_after_s,
                reward_window_s=config.reward_window_s,
            ),
            rates=Rates(
                each=config.messages_per_s,
                address=config.messages_per_s_per_address,
                total=config.messages_per_s_in_all,
            ),
            config=config,
            counts=counts,
            segments=segments,
            shard=shard,
        )
        self._restore()

    def receive(self, inbox: Sequence[Incoming], *, degraded: bool = False) -> list[Outgoing]:
        """One answer for each message, in order; never raises for what a message says.

        `degraded`: there is no time for a policy, every observation gets the safe action at once.
        """
        answers = Inbox(
            self._parts,
            self._policy(),
            now=self._clock.time(),
            monotonic=self._clock.monotonic(),
            safe=OVERLOAD if degraded else None,
        ).answer(inbox)
        return [
            Outgoing(incoming.client, protocol.encode(answer))
            for incoming, answer in zip(inbox, answers, strict=True)
        ]

    def welcome(
        self, client: str, *, resume: str | None = None, request: RequestId | None = None
    ) -> bytes:
        """The answer to a `hello` that the server has accepted; `resume` is the client's key."""
        translator, version = self._parts.translator, self._policy().version
        return protocol.encode(welcome(client, translator, version, resume, request))

    def refused(self, client: str, address: str | None = None) -> Error | None:
        """Count a message that the server answers itself (a `hello` over HTTP); the error if it is
        beyond a rate."""
        beyond = self._parts.rates.take(client, address, self._clock.monotonic())
        return None if beyond is None else beyond_rate(beyond, self._parts.config)

    def allowance(self) -> int:
        """How many messages are within the rate of all clients now."""
        return self._parts.rates.allowance(self._clock.monotonic())

    def wait_s(self, client: str, count: int) -> float:
        """Seconds until so many messages are within the rate of this client; 0: they are now."""
        return self._parts.rates.wait_s(client, count, self._clock.monotonic())

    def holds(self, client: str) -> bool:
        """Whether this client has a connection or a territory."""
        return client in self._connections or self._parts.territories.has(client)

    def joined(self, client: str) -> None:
        """A connection of this client begins."""
        self._connections[client] += 1

    def left(self, client: str) -> None:
        """A connection of this client is over; its territories wait for its next observation as
        before."""
        self._connections[client] -= 1
        if not self._connections[client]:
            del self._connections[client]

    def tick(self) -> None:
        """End what has waited too long. Call it about every second; it visits what is due only."""
        parts = self._parts
        window_s = parts.config.reward_window_s
        overdue = parts.ledger.older_than(self._clock.time() - window_s)
        quiet = parts.territories.quiet_since(self._clock.monotonic() - window_s)
        closings = [
            Closing(id=one.id, state="expired" if one.client in self._connections else "orphaned")
            for one in overdue
        ]
        try:
            parts.decider.close(closings)
            for territory in quiet:
                parts.ledger.cut(territory.name)
        except OSError:
            parts.counts.ledger_errors += 1
            return  # everything is still due the next time
        for one in overdue:
            late = parts.territories.get(one.territory)
            if late is not None:
                late.expire(one.id)
        for territory in quiet:
            parts.territories.remove(territory)
        if parts.segments is not None:
            for territory in quiet:
                parts.segments.gone(territory.name)
            parts.segments.tick(self._clock.monotonic())

    def _restore(self) -> None:
        """After a restart: territories whose decisions are still in the ledger continue."""
        parts, now = self._parts, self._clock.monotonic()
        last = {name: parts.ledger.last_of(name) for name in parts.ledger.territories()}
        known = [newest for newest in last.values() if newest is not None]
        for newest in sorted(known, key=lambda one: one.id, reverse=True):  # the latest first
            territory = parts.territories.restore(newest.territory, newest.client, now)
            is_open = parts.ledger.opened(newest.id) is not None
            territory.resume(newest, parts.translator, is_open=is_open)

    def status(self) -> LiveStatus:
        parts, counts = self._parts, self._parts.counts
        worker = self._gate if isinstance(self._gate, GateWorker) else None
        return LiveStatus(
            game=parts.translator.name,
            gate=self._gate.name,
            version=self._policy().version,
            clients=len(self._connections),
            territories=len(parts.territories),
            ledger=parts.ledger.counts,
            decisions=counts.decisions,
            sent=counts.sent,
            waited=counts.waited,
            explored=counts.explored,
            degraded=counts.degraded,
            unrecorded=counts.unrecorded,
            duplicates=counts.duplicates,
            errors=dict(counts.errors),
            ledger_errors=counts.ledger_errors,
            settled=counts.settled,
            mean_reward=counts.mean_reward,
            recent_reward=counts.recent_reward,
            safe_actions=dict(counts.safe_actions),
            evictions=parts.territories.evictions,
            gate_misses=0 if worker is None else worker.misses,
            gate_circuit="closed" if worker is None else worker.circuit,
            **_playing(parts.segments),
        )


def _playing(segments: PlayerSegments | None) -> dict[str, Any]:
    """Who decides what, of a session with segments."""
    if segments is None:
        return {}
    return {
        "promotion": "auto",
        "decided_by": dict(segments.decided_by),
        "playing": segments.playing,
        "segments": segments.counts,
    }
