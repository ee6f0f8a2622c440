"""One inbox: messages that arrived together, answered under one version of the policy.

Every message gets exactly one answer, in order, whatever it says. Observations wait to be decided
together until a message needs to know what was decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from understudy.core.config.section import is_float32
from understudy.core.config.serving import LiveConfig
from understudy.experience.ledger import Added, Closing, Ledger
from understudy.policy.policy import Policy
from understudy.session import protocol
from understudy.session.deciding import BY_RULES, Decider, SafeReason
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
from understudy.session.rewards import ended_with_territory, settled_by_message
from understudy.session.segments import PlayerSegments, grouped
from understudy.session.shards import Shard
from understudy.session.status import SessionCounts
from understudy.session.territory import DecisionRequest, Territories, TerritoryState
from understudy.session.translation import TranslatedObservation, Translator


class Incoming(NamedTuple):
    """A message, and the client that sent it."""

    client: str
    data: bytes | str
    address: str | None = None
    """Where it came from, for limits; None: unknown, no limit by address"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionParts:
    """What a session shares with its inboxes."""

    translator: Translator
    decider: Decider
    ledger: Ledger
    territories: Territories
    rates: Rates
    config: LiveConfig
    counts: SessionCounts
    segments: PlayerSegments | None = None
    """Who decides which territory; None: the newest version decides all of them"""
    shard: Shard | None = None
    """Which territories are this server's; None: all of them"""


class Inbox:
    """Answers one inbox, under one version of the policy.

    `safe`: every observation gets the safe action, for this reason.
    """

    def __init__(
        self,
        parts: SessionParts,
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
            refused = None if over is None else beyond_rate(over, config)
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
        return welcome(client, self._parts.translator, version, None, request.id)

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
        """The territory; an error if it belongs to another client, or to another server."""
        shard = self._parts.shard
        elsewhere = "" if shard is None else shard.refusal(name)
        if elsewhere:
            field = self._parts.translator.territory_field
            return Error(code="wrong_shard", message=elsewhere, field=field)
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
        segments = self._parts.segments
        if segments is not None and safe is None:
            self._decide_by_segments(batch, segments)
            return
        decided = self._parts.decider.decide(batch, self._policy, now=self._now, safe=safe)
        if segments is not None:
            self._count(decided, segments)
        self._answer(decided)

    def _decide_by_segments(
        self, batch: Sequence[DecisionRequest], segments: PlayerSegments
    ) -> None:
        """Each observation by the player of its territory, those of one policy together."""
        decider, now = self._parts.decider, self._monotonic
        for player, places in grouped([segments.player(one.territory, now) for one in batch]):
            decided = decider.decide(
                [batch[place] for place in places],
                player.policy or self._policy,
                now=self._now,
                safe=BY_RULES if player.policy is None else None,
            )
            segments.decided_by[player.role] += self._count(decided, segments)
            self._answer(decided)
        for name, words in decider.take_failed().items():
            segments.failed(name, words)

    def _count(
        self, decided: Sequence[tuple[DecisionRequest, Decision]], segments: PlayerSegments
    ) -> int:
        """Every decision in the ledger belongs to the segment of its territory, also where the load
        or a gate that failed chose the safe action. Returns how many its player made."""
        made = 0
        for asked, decision in decided:
            if decision.decision_id is not None:
                segments.decided(asked.territory.name, decision.decision_id, self._monotonic)
                made += not decision.degraded
        return made

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
        territory = None if opened is None else parts.territories.get(opened.territory)
        status, record = settled_by_message(
            request,
            opened,
            None if territory is None else territory.waiting,
            ledger=parts.ledger,
            by_observation=parts.translator.rewards_by_observation,
            config=parts.config,
            now=self._now,
        )
        if isinstance(record, Closing):
            self._rewards[key] = (place, record)
        elif record is not None:
            self._added.append((place, record))
        return Rewarded(decision_id=key, status=status, id=request.id)

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
        closings = ended_with_territory(
            opened, said, added=added, now=self._now, config=parts.config
        )
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
        if parts.segments is not None:
            parts.segments.gone(territory.name)
        last: Literal["settled", "orphaned", "closed"] | None = None
        if closings:
            last = "settled" if closings[-1].state == "settled" else "orphaned"
        elif territory.decisions:
            last = "closed"
        return Ended(
            territory=territory.name, decisions=territory.decisions, last=last, id=request.id
        )


def welcome(
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


def beyond_rate(beyond: Beyond, config: LiveConfig) -> Error:
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
