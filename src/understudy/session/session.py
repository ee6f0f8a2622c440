"""The session of a live game: messages in, messages out, without I/O.

Every message gets exactly one answer, in order, whatever it says. Messages take effect in the order
in which they arrive; observations wait to be decided together, by one version of the policy, until
a message needs to know what was decided. A decision is in the ledger before its answer is returned.
One caller at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from understudy.core.clock import Clock
from understudy.core.config.section import is_float32
from understudy.core.config.serving import LiveConfig
from understudy.experience.ledger import Added, Closing, Ledger, Opened
from understudy.gates.decision import DecisionGate
from understudy.gates.worker import GateWorker
from understudy.policy.policy import Policy
from understudy.session import protocol
from understudy.session.deciding import (
    OVERLOAD,
    Decider,
    DecisionRequest,
    SafeReason,
    clipped,
    endings,
)
from understudy.session.limits import Beyond, Rates
from understudy.session.protocol import (
    Answer,
    Decision,
    End,
    Ended,
    Error,
    Hello,
    ObservationRequest,
    Ping,
    Pong,
    Request,
    RequestId,
    Reward,
    Rewarded,
    Welcome,
)
from understudy.session.status import LiveStatus, SessionCounts
from understudy.session.territory import Territories, TerritoryState
from understudy.session.translation import TranslatedObservation, Translator

_ENDED_BEFORE: dict[str, Literal["duplicate", "expired", "superseded", "orphaned", "unknown"]] = {
    "settled": "duplicate",
    "expired": "expired",
    "superseded": "superseded",
    "orphaned": "orphaned",
}
"""The answer to a late reward, by how its decision ended."""


class Incoming(NamedTuple):
    """A message, and the client that sent it."""

    client: str
    data: bytes | str
    address: str | None = None
    """Where it came from, for limits; None: unknown, no limit by address"""


class Outgoing(NamedTuple):
    """A message, and the client that it is for."""

    client: str
    data: bytes


def _raise(words: str, error: Exception) -> None:
    raise error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What a session shares with its inboxes."""

    translator: Translator
    decider: Decider
    ledger: Ledger
    territories: Territories
    rates: Rates
    config: LiveConfig
    counts: SessionCounts


class Session:
    """All territories of a live game and all their clients.

    `policy` is called once for every inbox, and returns the version to decide with. `problem` gets
    what a gate or a policy raised, and the observation on which it raised gets the safe action;
    without `problem`, `receive` raises.
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
    ) -> None:
        self._policy = policy
        self._gate = gate
        self._clock = clock
        self._connections: Counter[str] = Counter()
        counts = SessionCounts()
        self._parts = _Parts(
            translator=translator,
            decider=Decider(
                translator,
                gate=gate,
                ledger=ledger,
                config=config,
                rng=np.random.default_rng(seed),
                counts=counts,
                problem=problem,
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
        )
        self._restore()

    def receive(self, inbox: Sequence[Incoming], *, degraded: bool = False) -> list[Outgoing]:
        """One answer for each message, in order; never raises for what a message says.

        `degraded`: there is no time for a policy, every observation gets the safe action at once.
        """
        answers = _Inbox(
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
        return protocol.encode(_welcome(client, translator, version, resume, request))

    def refused(self, client: str, address: str | None = None) -> Error | None:
        """Count a message that the server answers itself (a `hello` over HTTP); the error if it is
        beyond a rate."""
        beyond = self._parts.rates.take(client, address, self._clock.monotonic())
        return None if beyond is None else _beyond_rate(beyond, self._parts.config)

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
        )


class _Inbox:
    """Answers one inbox, under one version of the policy.

    `safe`: every observation gets the safe action, for this reason.
    """

    def __init__(
        self,
        parts: _Parts,
        policy: Policy,
        *,
        now: float,
        monotonic: float,
        safe: SafeReason | None,
    ) -> None:
        self._parts = parts
        self._policy = policy
        self._now = now
        self._monotonic = monotonic
        self._safe = safe
        self._answers: list[msgspec.Struct] = []
        self._batch: list[DecisionRequest] = []
        """Observations that wait to be decided, of different territories"""
        self._in_batch: set[str] = set()
        self._rewards: dict[int, tuple[int, Closing]] = {}
        """Settled by their clients and not written yet: index of the message, by decision"""
        self._added: list[tuple[int, Added]] = []
        """Added by their clients and not written yet, with the index of the message"""

    def answer(self, inbox: Sequence[Incoming]) -> list[msgspec.Struct]:
        """One answer for each message."""
        rates, config = self._parts.rates, self._parts.config
        beyond = [rates.take(one.client, one.address, self._monotonic) for one in inbox]
        requests = [protocol.decode(one.data, max_bytes=config.max_message_bytes) for one in inbox]
        seen = [one for one in requests if isinstance(one, ObservationRequest)]
        readings = iter(self._parts.translator.read(seen) if seen else ())
        unanswered = Pong()
        self._answers = [unanswered] * len(requests)
        for place, (message, request, over) in enumerate(zip(inbox, requests, beyond, strict=True)):
            refused = None if over is None else _beyond_rate(over, config)
            if isinstance(request, ObservationRequest):
                safe = None if refused is None else SafeReason("rate", refused.message)
                self._observe(place, message, request.id, next(readings), safe)
            elif refused is not None:
                self._answers[place] = refused
            else:
                self._answers[place] = self._handle(place, message.client, request)
        self._flush()
        errors = self._parts.counts.errors
        for one in self._answers:
            if isinstance(one, Error):
                errors[one.code] += 1
        return self._answers

    def _handle(self, place: int, client: str, request: Request | Error) -> Answer:
        if isinstance(request, Reward):
            return self._reward(place, client, request)
        if isinstance(request, End):
            return self._end(client, request)
        if isinstance(request, Hello):
            return self._hello(client, request)
        if isinstance(request, Ping):
            return Pong(id=request.id)
        assert isinstance(request, Error)
        return request

    def _hello(self, client: str, request: Hello) -> Answer:
        """A repeated hello changes nothing."""
        if request.client not in {None, client}:
            message = "this connection belongs to another client"
            return Error(code="not_yours", message=message, field="client", id=request.id)
        version = self._policy.version
        return _welcome(client, self._parts.translator, version, None, request.id)

    # --- observations --------------------------------------------------------------------------

    def _observe(
        self,
        place: int,
        sender: Incoming,
        request: RequestId | None,
        reading: TranslatedObservation | Error,
        refused: SafeReason | None,
    ) -> None:
        """An observation that is valid, in order and of its client's own territory always gets an
        action. `refused`: it is beyond a rate, so nothing is decided or recorded for it."""
        territories = self._parts.territories
        if isinstance(reading, Error):
            self._answers[place] = _with_id(reading, request)
            return
        territory: TerritoryState | Error | str | None = self._found(
            reading.territory, sender.client
        )
        if territory is None and refused is None:
            territory = territories.add(
                reading.territory, sender.client, sender.address, self._monotonic
            )
        if isinstance(territory, Error):
            self._answers[place] = _with_id(territory, request)
            return
        if territory is None or isinstance(territory, str):
            safe = refused or SafeReason("territories", str(territory))
            decision = self._parts.decider.stateless(
                reading, self._policy.version, safe, request=request
            )
            self._answers[place] = self._parts.translator.answer(decision)
            return
        if territory.name in self._in_batch:
            self._flush()
        last, tick = territory.tick, reading.tick
        if tick is None:
            tick = 0 if last is None else last + self._parts.translator.tick_length
        if last is not None and tick <= last:
            self._answers[place] = self._answer_again(territory, tick, last, request)
            return
        asked = DecisionRequest(place, request, territory, tick, reading.sight, territory.waiting)
        full = territories.touch(territory, self._monotonic)
        if refused is not None:
            version = self._policy.version
            self._answer(self._parts.decider.unrecorded([asked], version, refused))
        elif full is not None:
            self._write_rewards()
            self._decide([asked], SafeReason("territories", full))
        else:
            self._batch.append(asked)
            self._in_batch.add(territory.name)

    def _answer_again(
        self, territory: TerritoryState, tick: int, last: int, request: RequestId | None
    ) -> msgspec.Struct:
        """The answer to the last tick, sent again; an error for an earlier tick."""
        translator = self._parts.translator
        if tick < last or territory.last is None:
            message = f"tick {tick} comes after tick {last} was answered"
            return Error(
                code="out_of_order", message=message, field=translator.tick_field, id=request
            )
        self._parts.counts.duplicates += 1
        return translator.answer(
            msgspec.structs.replace(territory.last, duplicate=True, id=request)
        )

    def _found(self, name: str, client: str) -> TerritoryState | Error | None:
        """The territory; an error if it belongs to another client."""
        territory = self._parts.territories.get(name)
        if territory is None or territory.client == client:
            return territory
        field = self._parts.translator.territory_field
        return Error(code="not_yours", message="another client has it", field=field)

    def _flush(self) -> None:
        """Write the rewards that clients sent, then decide the batch."""
        self._write_rewards()
        batch, self._batch = self._batch, []
        self._in_batch.clear()
        if batch:
            self._decide(batch, self._safe)

    def _decide(self, batch: Sequence[DecisionRequest], safe: SafeReason | None) -> None:
        self._answer(self._parts.decider.decide(batch, self._policy, now=self._now, safe=safe))

    def _answer(self, decided: Sequence[tuple[DecisionRequest, Decision]]) -> None:
        for asked, decision in decided:
            self._answers[asked.place] = self._parts.translator.answer(decision)

    # --- rewards and ends ----------------------------------------------------------------------

    def _reward(self, place: int, client: str, request: Reward) -> Answer:
        key, parts = request.decision_id, self._parts
        if not is_float32(request.reward):
            return _bad_reward(request.id)
        if parts.ledger.client_of(key) not in {None, client}:
            message = "it was another client's decision"
            return Error(code="not_yours", message=message, field="decision_id", id=request.id)
        opened = parts.ledger.opened(key)
        if opened is not None and opened.territory in self._in_batch:
            self._flush()  # an observation before this message may have settled it
            opened = parts.ledger.opened(key)
        if key in self._rewards:
            return Rewarded(decision_id=key, status="duplicate", id=request.id)
        if opened is None:
            ended = _ENDED_BEFORE.get(parts.ledger.state_of(key), "unknown")
            return Rewarded(decision_id=key, status=ended, id=request.id)
        if self._now - opened.at > parts.config.reward_window_s:
            self._rewards[key] = (place, Closing(id=key, state="expired"))
            return Rewarded(decision_id=key, status="expired", id=request.id)
        if parts.translator.rewards_by_observation:
            return self._add(place, opened, request)
        worth = clipped(request.reward, parts.config.reward_clip)
        self._rewards[key] = (place, Closing(id=key, state="settled", reward=worth))
        return Rewarded(decision_id=key, status="settled", id=request.id)

    def _add(self, place: int, opened: Opened, request: Reward) -> Answer:
        """Add to the reward that the next observation tells."""
        territory = self._parts.territories.get(opened.territory)
        waiting = territory.waiting if territory is not None else None
        if waiting is None or waiting.opened.id != opened.id:
            # The ledger could not write how it ended, and no observation settles it now.
            return Rewarded(decision_id=opened.id, status="superseded", id=request.id)
        self._added.append((place, Added(id=opened.id, reward=request.reward)))
        return Rewarded(decision_id=opened.id, status="added", id=request.id)

    def _write_rewards(self) -> None:
        """Rewards go to the ledger; where it cannot write, their answers are replaced."""
        closed, self._rewards = list(self._rewards.values()), {}
        added, self._added = self._added, []
        try:
            self._parts.decider.close([closing for _, closing in closed])
            if added:
                self._parts.ledger.add([part for _, part in added])
        except OSError:
            self._parts.counts.ledger_errors += 1
            for place, _ in (*closed, *added):
                answer = self._answers[place]
                assert isinstance(answer, Rewarded)
                self._answers[place] = _unavailable(answer.id)

    def _end(self, client: str, request: End) -> Answer:
        if request.reward is not None and not is_float32(request.reward):
            return _bad_reward(request.id)
        parts = self._parts
        territory = self._found(request.territory, client)
        if territory is None:
            message = "there is no such territory"
            return Error(
                code="unknown_territory", message=message, field="territory", id=request.id
            )
        if isinstance(territory, Error):
            return _with_id(territory, request.id)
        # Not earlier: refused messages must not split the batches of other clients.
        self._flush()
        opened = parts.ledger.open_of(territory.name)
        added = parts.ledger.added(opened[-1].id) if opened else None
        said = request
        if territory.bootstrap is not None:  # its last decision is not in the ledger
            said = msgspec.structs.replace(request, reward=None, outcome="aborted")
        closings = endings(opened, said, added=added, now=self._now, config=parts.config)
        try:
            parts.decider.close(closings)
            if territory.bootstrap is not None:
                parts.ledger.cut(territory.name, territory.bootstrap)
            else:
                outcome = "" if request.outcome == "aborted" else request.outcome
                parts.ledger.cut(territory.name, outcome=outcome)
        except OSError:
            parts.counts.ledger_errors += 1
            return _unavailable(request.id)
        parts.territories.remove(territory)
        last: Literal["settled", "orphaned", "closed"] | None = None
        if closings:
            last = "settled" if closings[-1].state == "settled" else "orphaned"
        elif territory.decisions:
            last = "closed"
        return Ended(
            territory=territory.name, decisions=territory.decisions, last=last, id=request.id
        )


def _welcome(
    client: str,
    translator: Translator,
    version: int,
    resume_key: str | None,
    request: RequestId | None,
) -> Welcome:
    return Welcome(
        client=client,
        resume=resume_key,
        game=translator.name,
        features=translator.features,
        actions=translator.choices,
        version=version,
        id=request,
    )


def _with_id(error: Error, request: RequestId | None) -> Error:
    return error if request is None else msgspec.structs.replace(error, id=request)


def _bad_reward(request: RequestId | None) -> Error:
    message = "too large for a 32-bit float"
    return Error(code="bad_number", message=message, field="reward", id=request)


def _beyond_rate(beyond: Beyond, config: LiveConfig) -> Error:
    message = {
        "each": f"more than {config.messages_per_s:g} messages a second",
        "address": f"more than {config.messages_per_s_per_address:g} messages a second from one "
        "address",
        "total": f"more than {config.messages_per_s_in_all:g} messages a second from all clients",
    }[beyond]
    return Error(code="rate", message=message)


def _unavailable(request: RequestId | None) -> Error:
    message = "it could not be written down and does not count; send it again"
    return Error(code="unavailable", message=message, id=request)
