"""One inbox, from its first message to its last answer.

Messages take effect in the order in which they came. Observations wait to be decided together until
something comes that needs to know what was decided: another message for the same territory.

Answers that are made in more than one place, or need no thought.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import msgspec

from understudy.core.config.section import is_float32
from understudy.core.config.serving import LiveConfig
from understudy.experience.ledger import Added, Closing, Ledger, Opened
from understudy.gates.worker import GateFailed, GateLate
from understudy.policy.policy import Policy
from understudy.session import protocol
from understudy.session.deciding import FAILED, GATE_LATE, OVERLOAD, Decider, DecisionRequest, Safe
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
from understudy.session.status import SessionCounts
from understudy.session.territory import (
    Territories,
    TerritoryState,
    clipped,
    endings,
    rewarded_before,
)
from understudy.session.translation import TranslatedObservation, Translator


def welcome(
    client: str,
    translator: Translator,
    version: int,
    *,
    resume_key: str | None = None,
    request: RequestId | None = None,
) -> Welcome:
    """What a client is told first."""
    return Welcome(
        client=client,
        resume=resume_key,
        game=translator.name,
        features=translator.features,
        actions=translator.choices,
        version=version,
        id=request,
    )


def with_id(error: Error, request: RequestId | None) -> Error:
    """The same error under the id of the message that it is about."""
    return error if request is None else msgspec.structs.replace(error, id=request)


def bad_reward(request: RequestId | None) -> Error:
    """A reward that is not finite in 32 bits."""
    message = "too large for a 32-bit float"
    return Error(code="bad_number", message=message, field="reward", id=request)


def too_many(beyond: Beyond, config: LiveConfig) -> Error:
    """A message beyond one of the rates."""
    message = {
        "each": f"more than {config.messages_per_s:g} messages a second",
        "address": f"more than {config.messages_per_s_per_address:g} messages a second from one "
        "address",
        "total": f"more than {config.messages_per_s_in_all:g} messages a second from all clients",
    }[beyond]
    return Error(code="rate", message=message)


def unavailable(request: RequestId | None) -> Error:
    """The ledger could not write."""
    message = "it could not be written down and does not count; send it again"
    return Error(code="unavailable", message=message, id=request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a session consists of."""

    translator: Translator
    decider: Decider
    ledger: Ledger
    territories: Territories
    rates: Rates
    config: LiveConfig
    tally: SessionCounts
    problem: Callable[[str, Exception], None]
    """Is told what a gate or a policy raised"""


class Message(Protocol):
    """What came in (`session.Incoming`)."""

    @property
    def client(self) -> str:
        """Who sent it."""

    @property
    def data(self) -> bytes | str:
        """JSON, as it came."""

    @property
    def address(self) -> str | None:
        """Where it came from; None: not known."""


class Inbox:
    """Answers one inbox, under one version of the policy."""

    def __init__(
        self, parts: Parts, policy: Policy, *, now: float, monotonic: float, degraded: bool
    ) -> None:
        self._parts = parts
        self._policy = policy
        self._now = now
        self._monotonic = monotonic
        self._safe = OVERLOAD if degraded else None
        self._answers: list[msgspec.Struct] = []
        self._wave: list[DecisionRequest] = []
        self._in_wave: set[str] = set()
        self._rewards: dict[int, tuple[int, Closing]] = {}
        """Settled by their clients and not written yet: the place of the message, by decision"""
        self._added: list[tuple[int, Added]] = []
        """Added by their clients and not written yet, with the place of the message"""

    def answer(self, inbox: Sequence[Message]) -> list[msgspec.Struct]:
        """One answer for each message."""
        rates, config = self._parts.rates, self._parts.config
        beyond = [rates.take(one.client, one.address, self._monotonic) for one in inbox]
        requests = [protocol.decode(one.data, max_bytes=config.max_message_bytes) for one in inbox]
        seen = [one for one in requests if isinstance(one, ObservationRequest)]
        readings = iter(self._parts.translator.read(seen) if seen else ())
        waits = Pong()  # stands where an answer will be
        self._answers = [waits] * len(requests)
        for place, (message, request, over) in enumerate(zip(inbox, requests, beyond, strict=True)):
            refused = None if over is None else too_many(over, config)
            if isinstance(request, ObservationRequest):
                self._observe(place, message, request.id, next(readings), refused)
            elif refused is not None:
                self._answers[place] = refused
            else:
                self._answers[place] = self._handle(place, message.client, request)
        self._flush()
        errors = self._parts.tally.errors
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

    # --- observations --------------------------------------------------------------------------

    def _observe(
        self,
        place: int,
        sender: Message,
        request: RequestId | None,
        reading: TranslatedObservation | Error,
        refused: Error | None,
    ) -> None:
        """An observation that can be read, and is its client's to send and in order, always gets an
        action. `refused`: it is beyond a rate, so that nothing is decided or written for it."""
        territories = self._parts.territories
        if isinstance(reading, Error):
            self._answers[place] = with_id(reading, request)
            return
        territory: TerritoryState | Error | str | None = self._found(
            reading.territory, sender.client
        )
        if territory is None and refused is None:
            territory = territories.add(
                reading.territory, sender.client, sender.address, self._monotonic
            )
        if isinstance(territory, Error):
            self._answers[place] = with_id(territory, request)
            return
        if territory is None or isinstance(territory, str):
            safe = _beyond(refused) if refused is not None else _no_room(str(territory))
            self._answers[place] = self._stateless(reading, safe, request)
            return
        if territory.name in self._in_wave:
            self._flush()
        last, tick = territory.tick, reading.tick
        if tick is None:
            tick = 0 if last is None else last + self._parts.translator.tick_length
        if last is not None and tick <= last:
            self._answers[place] = self._again(territory, tick, last, request)
            return
        asked = DecisionRequest(place, request, territory, tick, reading.sight, territory.waiting)
        if refused is not None:
            territories.touch(territory, self._monotonic)
            decider, version = self._parts.decider, self._policy.version
            self._answer([asked], decider.unrecorded([asked], version, _beyond(refused)))
            return
        full = territories.touch(territory, self._monotonic)
        if full is not None:
            self._write_rewards()
            self._decide([asked], _no_room(full))
            return
        self._wave.append(asked)
        self._in_wave.add(territory.name)

    def _stateless(
        self, reading: TranslatedObservation, safe: Safe, request: RequestId | None
    ) -> msgspec.Struct:
        decision = self._parts.decider.stateless(
            reading, self._policy.version, safe, request=request
        )
        return self._parts.translator.answer(decision)

    def _again(
        self, territory: TerritoryState, tick: int, last: int, request: RequestId | None
    ) -> msgspec.Struct:
        """The same tick, or an earlier one."""
        if tick < last or territory.last is None:
            message = f"tick {tick} comes after tick {last} was answered"
            return Error(
                code="out_of_order",
                message=message,
                field=self._parts.translator.tick_field,
                id=request,
            )
        self._parts.tally.duplicates += 1
        same = msgspec.structs.replace(territory.last, duplicate=True, id=request)
        return self._parts.translator.answer(same)

    def _found(self, name: str, client: str) -> TerritoryState | Error | None:
        """The territory; an error if it is somebody else's."""
        territory = self._parts.territories.get(name)
        if territory is None or territory.client == client:
            return territory
        return self._not_yours()

    def _not_yours(self) -> Error:
        field = self._parts.translator.territory_field
        return Error(code="not_yours", message="another client has it", field=field)

    def _flush(self) -> None:
        """Write down what clients settled, then decide the wave."""
        self._write_rewards()
        wave, self._wave = self._wave, []
        self._in_wave.clear()
        if wave:
            self._decide(wave, self._safe)

    def _decide(self, wave: Sequence[DecisionRequest], safe: Safe | None) -> None:
        """All together. Where that fails each is decided alone, so that an observation that a gate
        fails on costs its neighbours nothing; it gets the safe action itself."""
        decider = self._parts.decider
        try:
            decisions = decider.decide(wave, self._policy, now=self._now, safe=safe)
        except GateLate as error:  # all of them: each alone would wait for the gate again
            self._parts.problem("the gate is too slow, its decisions are safe actions", error)
            self._decide(wave, GATE_LATE)
        except GateFailed as error:
            self._parts.problem("the gate failed", error)
            self._decide([one for row, one in enumerate(wave) if row in error.rows], FAILED)
            others = [one for row, one in enumerate(wave) if row not in error.rows]
            if others:
                self._decide(others, safe)
        except Exception as error:  # noqa: BLE001  a gate is anybody's code: neighbours go on
            # What was closed all the same does not wait any more.
            alone = [one._replace(due=one.territory.waiting) for one in wave]
            if len(alone) > 1:
                for one in alone:
                    self._decide([one], safe)
                return
            self._parts.problem("an observation could not be decided", error)
            if safe is None:
                self._decide(alone, FAILED)
            else:  # the ledger refuses it
                self._answer(alone, decider.unrecorded(alone, self._policy.version, safe))
        else:
            self._answer(wave, decisions)

    def _answer(self, wave: Sequence[DecisionRequest], decisions: Sequence[Decision]) -> None:
        answer = self._parts.translator.answer
        for asked, decision in zip(wave, decisions, strict=True):
            self._answers[asked.place] = answer(decision)

    # --- rewards and ends ----------------------------------------------------------------------

    def _reward(self, place: int, client: str, request: Reward) -> Answer:
        key, parts = request.decision_id, self._parts
        if not is_float32(request.reward):
            return bad_reward(request.id)
        if parts.ledger.client_of(key) not in {None, client}:
            message = "it was another client's decision"
            return Error(code="not_yours", message=message, field="decision_id", id=request.id)
        opened = parts.ledger.opened(key)
        if opened is not None and opened.territory in self._in_wave:
            self._flush()  # an observation before this message may have settled it
            opened = parts.ledger.opened(key)
        if key in self._rewards:
            return Rewarded(decision_id=key, status="duplicate", id=request.id)
        if opened is None:
            ended = rewarded_before(parts.ledger.state_of(key))
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
        """To what the next observation will tell."""
        territory = self._parts.territories.get(opened.territory)
        waiting = territory.waiting if territory is not None else None
        if waiting is None or waiting.opened.id != opened.id:
            # The ledger could not be told how it ended, and no observation will settle it now.
            return Rewarded(decision_id=opened.id, status="superseded", id=request.id)
        self._added.append((place, Added(id=opened.id, reward=request.reward)))
        return Rewarded(decision_id=opened.id, status="added", id=request.id)

    def _write_rewards(self) -> None:
        """What clients said goes to the ledger; an answer that would not be true is replaced."""
        closed, self._rewards = list(self._rewards.values()), {}
        added, self._added = self._added, []
        try:
            self._parts.decider.close([closing for _, closing in closed])
            if added:
                self._parts.ledger.add([part for _, part in added])
        except OSError:
            self._parts.tally.ledger_errors += 1
            for place, _ in (*closed, *added):
                answer = self._answers[place]
                assert isinstance(answer, Rewarded)
                self._answers[place] = unavailable(answer.id)

    def _end(self, client: str, request: End) -> Answer:
        if request.reward is not None and not is_float32(request.reward):
            return bad_reward(request.id)
        parts = self._parts
        territory = self._found(request.territory, client)
        if territory is None:
            message = "there is no such territory"
            return Error(
                code="unknown_territory", message=message, field="territory", id=request.id
            )
        if isinstance(territory, Error):
            return with_id(territory, request.id)
        # Only now: nobody can break up the waves of others with messages that are refused.
        self._flush()
        opened = parts.ledger.open_of(territory.name)
        added = parts.ledger.added(opened[-1].id) if opened else None
        said = request
        if territory.bootstrap is not None:  # its last decision is not in the ledger
            said = msgspec.structs.replace(request, reward=None, outcome="aborted")
        closings = endings(opened, said, added=added, now=self._now, config=parts.config)
        try:
            parts.decider.close(closings)
            if territory.bootstrap is not None:  # what came last is not in the ledger
                parts.ledger.cut(territory.name, territory.bootstrap)
            else:
                outcome = "" if request.outcome == "aborted" else request.outcome
                parts.ledger.cut(territory.name, outcome=outcome)
        except OSError:
            parts.tally.ledger_errors += 1
            return unavailable(request.id)
        parts.territories.remove(territory)
        last: Literal["settled", "orphaned", "closed"] | None = None
        if closings:
            last = "settled" if closings[-1].state == "settled" else "orphaned"
        elif territory.decisions:
            last = "closed"
        return Ended(
            territory=territory.name, decisions=territory.decisions, last=last, id=request.id
        )

    def _hello(self, client: str, request: Hello) -> Answer:
        """Once more: nothing changes."""
        if request.client not in {None, client}:
            message = "this connection belongs to another client"
            return Error(code="not_yours", message=message, field="client", id=request.id)
        return welcome(client, self._parts.translator, self._policy.version, request=request.id)


def _beyond(refused: Error) -> Safe:
    return Safe("rate", refused.message)


def _no_room(limit: str) -> Safe:
    return Safe("territories", limit)
