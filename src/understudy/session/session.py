"""The session: messages in, messages out, without I/O; a server is a thin shell around it.

Every message gets exactly one answer, in order, whatever it says. Observations that come together
are decided together, by one version of the policy; a decision is in the ledger before its answer is
returned. One caller at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from understudy.core.clock import Clock
from understudy.core.config.serving import LiveConfig
from understudy.experience.ledger import Ledger
from understudy.gates.decision import DecisionGate
from understudy.gates.worker import GateWorker
from understudy.policy.policy import Policy
from understudy.session import protocol
from understudy.session.deciding import Decider
from understudy.session.inbox import Inbox, Parts, too_many, welcome
from understudy.session.limits import Rates
from understudy.session.protocol import Error, RequestId
from understudy.session.status import LiveStatus, SessionCounts
from understudy.session.territory import Territories, overdue, resume
from understudy.session.translation import Translator


class Incoming(NamedTuple):
    """A message, and the client that it came from."""

    client: str
    data: bytes | str
    address: str | None = None
    """Where it came from, for limits; None: not known, and then only the others hold"""


class Outgoing(NamedTuple):
    """A message, and the client that it is for."""

    client: str
    data: bytes


def _raised(words: str, error: Exception) -> None:
    """Where nobody wants to be told."""
    raise error


class Session:
    """All territories of a live game, whoever plays them.

    `policy` is asked once for every inbox: whoever swaps versions changes what it returns.
    `problem` is told what a gate or a policy raised, and the observation that it raised that for
    gets the safe action; without it, `receive` raises.
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
        problem: Callable[[str, Exception], None] = _raised,
    ) -> None:
        self._policy = policy
        self._gate = gate
        self._clock = clock
        self._connections: Counter[str] = Counter()
        tally = SessionCounts()
        self._parts = Parts(
            translator=translator,
            decider=Decider(
                translator,
                gate=gate,
                ledger=ledger,
                config=config,
                rng=np.random.default_rng(seed),
                tally=tally,
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
            tally=tally,
            problem=problem,
        )
        self._go_on()

    def receive(self, inbox: Sequence[Incoming], *, degraded: bool = False) -> list[Outgoing]:
        """One answer for each message, in order; never raises for what a message says.

        `degraded`: there is no time for a policy, everybody gets the safe action at once.
        """
        exchange = Inbox(
            self._parts,
            self._policy(),
            now=self._clock.time(),
            monotonic=self._clock.monotonic(),
            degraded=degraded,
        )
        answers = exchange.answer(inbox)
        return [
            Outgoing(incoming.client, protocol.encode(answer))
            for incoming, answer in zip(inbox, answers, strict=True)
        ]

    def welcome(
        self, client: str, *, resume: str | None = None, request: RequestId | None = None
    ) -> bytes:
        """The answer to a `hello` that the server has let in; `resume` is the client's key."""
        version = self._policy().version
        message = welcome(
            client, self._parts.translator, version, resume_key=resume, request=request
        )
        return protocol.encode(message)

    def refused(self, client: str, address: str | None = None) -> Error | None:
        """What a message is answered with that is beyond the rates, though it is not received here:
        the server answers a `hello` by itself."""
        beyond = self._parts.rates.take(client, address, self._clock.monotonic())
        return None if beyond is None else too_many(beyond, self._parts.config)

    def allowance(self) -> int:
        """How many messages are within the rate of all clients now."""
        return self._parts.rates.allowance(self._clock.monotonic())

    def wait_s(self, client: str, count: int) -> float:
        """Seconds until so many messages are within the rate of this client; 0: they are now."""
        return self._parts.rates.wait_s(client, count, self._clock.monotonic())

    def holds(self, client: str) -> bool:
        """Whether anything of this client is left: a connection or a territory."""
        return client in self._connections or self._parts.territories.has(client)

    def joined(self, client: str) -> None:
        """A connection of this client begins."""
        self._connections[client] += 1

    def left(self, client: str) -> None:
        """A connection of this client is over; each of its territories waits for it as long as
        for its next observation."""
        self._connections[client] -= 1
        if not self._connections[client]:
            del self._connections[client]

    def tick(self) -> None:
        """What waited too long ends. To be called every second or so; looks at what is due only."""
        parts = self._parts
        window_s = parts.config.reward_window_s
        opened = parts.ledger.older_than(self._clock.time() - window_s)
        quiet = parts.territories.quiet_since(self._clock.monotonic() - window_s)
        try:
            parts.decider.close(overdue(opened, self._connections))
            for territory in quiet:
                parts.ledger.cut(territory.name)
        except OSError:
            parts.tally.ledger_errors += 1
            return  # everything is still due the next time
        for one in opened:
            late = parts.territories.get(one.territory)
            if late is None or late.waiting is None or late.waiting.opened.id != one.id:
                continue  # clients tell the rewards: what was seen is remembered without one
            late.waiting = None
            late.forget()
        for territory in quiet:
            parts.territories.remove(territory)

    def _go_on(self) -> None:
        """After a restart: whoever left something open, or settled and alone, may come back."""
        parts, now = self._parts, self._clock.monotonic()
        last = {name: parts.ledger.last_of(name) for name in parts.ledger.territories()}
        known = [newest for newest in last.values() if newest is not None]
        for newest in sorted(known, key=lambda one: one.id, reverse=True):  # who plays, first
            territory = parts.territories.restore(newest.territory, newest.client, now)
            is_open = parts.ledger.opened(newest.id) is not None
            resume(territory, newest, parts.translator, is_open=is_open)

    def status(self) -> LiveStatus:
        """Of this moment."""
        parts, tally = self._parts, self._parts.tally
        worker = self._gate if isinstance(self._gate, GateWorker) else None
        return LiveStatus(
            game=parts.translator.name,
            gate=self._gate.name,
            version=self._policy().version,
            clients=len(self._connections),
            territories=len(parts.territories),
            ledger=parts.ledger.counts,
            decisions=tally.decisions,
            sent=tally.sent,
            waited=tally.waited,
            explored=tally.explored,
            degraded=tally.degraded,
            unrecorded=tally.unrecorded,
            duplicates=tally.duplicates,
            errors=dict(tally.errors),
            ledger_errors=tally.ledger_errors,
            settled=tally.settled,
            mean_reward=tally.mean_reward,
            recent_reward=tally.recent_reward,
            safe_actions=dict(tally.safe_actions),
            evictions=parts.territories.evictions,
            gate_misses=0 if worker is None else worker.misses,
            gate_circuit="closed" if worker is None else worker.circuit,
        )
