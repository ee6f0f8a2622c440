"""Territories: whose they are, where each of them stands, and when one is evicted or forgotten.

A territory belongs to the client that named it first, by the client's id and not its connection, so
that a client that comes back goes on. Where a limit is reached, the territory that has been idle
longest makes room. An evicted territory loses the policy's memory and nothing else: its owner, its
tick, its last answer and its open decision stay until the reward window is over, so that its next
observation still settles that decision.

How decisions end that no observation settles: by their client's word, by an end, or in silence.

Pure: open decisions in, closings out.

Going on after a restart: what the ledger knows of a territory that has not left it yet.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from understudy.core.config.serving import LiveConfig
from understudy.core.ops import Tree
from understudy.experience.ledger import Closing, Opened, unpack_legal
from understudy.session.protocol import Decision, End
from understudy.session.translation import Sight, Translator


@dataclass(slots=True)
class WaitingDecision:
    """A decision whose reward the next observation will tell."""

    opened: Opened
    sight: Sight


@dataclass(slots=True)
class TerritoryState:
    """One endless match."""

    name: str
    client: str
    quiet_since: float
    """Monotonic: a wall clock that is set must neither forget a territory nor keep it"""
    address: str | None = None
    """Where its first observation came from; None: unknown, as after a restart"""
    tick: int | None = None
    """Of its last observation"""
    last: Decision | None = None
    """What that was answered with"""
    waiting: WaitingDecision | None = None
    decisions: int = 0
    memory: Tree | None = None
    """What the policy carries, arrays without a batch axis; None: nothing yet"""
    version: int = -1
    """Whose memory that is"""
    remembered: int = 0
    """Decisions in that memory"""
    severed: bool = False
    """What the policy carries was emptied: the next decision is the first one of a segment"""
    bootstrap: bytes | None = None
    """float32 [F] that was seen and answered without the ledger: what came before ends there"""

    def forget(self) -> None:
        """Empty its memory."""
        self.memory, self.remembered, self.severed = None, 0, True


_ByName = OrderedDict[str, TerritoryState]
"""The one that has been idle longest comes first."""


class Territories:
    """All of them, by name. Limits count the active ones, which are not evicted."""

    def __init__(
        self,
        *,
        per_client: int,
        per_address: int,
        in_all: int,
        evict_after_s: float,
        reward_window_s: float,
    ) -> None:
        self._per_client, self._per_address, self._in_all = per_client, per_address, in_all
        self._evict_after_s = evict_after_s
        # As many more as could be evicted within a reward window, one after the other.
        self._most_evicted = int(in_all * max(1.0, reward_window_s / evict_after_s))
        self._active: _ByName = OrderedDict()
        self._of_client: dict[str, _ByName] = {}
        self._of_address: dict[str, _ByName] = {}
        self._evicted: dict[str, TerritoryState] = {}
        self._evicted_of: Counter[str] = Counter()
        """How many of them each client has."""
        self.evictions = 0

    def __len__(self) -> int:
        """How many are active."""
        return len(self._active)

    def get(self, name: str) -> TerritoryState | None:
        """The one of that name, active or evicted."""
        return self._active.get(name) or self._evicted.get(name)

    def has(self, client: str) -> bool:
        """Whether this client has any, active or evicted."""
        return client in self._of_client or client in self._evicted_of

    def add(self, name: str, client: str, address: str | None, now: float) -> TerritoryState | str:
        """A new one; or, where there is no room, which limit stands in the way."""
        full = self._make_room(client, address, now)
        if full is not None:
            return full
        territory = TerritoryState(name, client, now, address)
        self._activate(territory)
        return territory

    def restore(self, name: str, client: str, now: float) -> TerritoryState:
        """One of before a restart, whose address is not known: active where there is room, else
        evicted."""
        territory = TerritoryState(name, client, now)
        if self._make_room(client, None, now) is None:
            self._activate(territory)
        else:
            self._evict(territory)
        return territory

    def touch(self, territory: TerritoryState, now: float) -> str | None:
        """An observation came. An evicted territory becomes active again; where there is no room
        for that it stays evicted, and the answer says which limit stands in the way."""
        territory.quiet_since = now
        if territory.name not in self._evicted:
            for held in self._holding(territory):
                held.move_to_end(territory.name)
            return None
        full = self._make_room(territory.client, territory.address, now)
        if full is None:
            self._drop_evicted(territory)
            self._activate(territory)
        return full

    def remove(self, territory: TerritoryState) -> None:
        """It is over."""
        if territory.name in self._evicted:
            self._drop_evicted(territory)
        else:
            self._deactivate(territory)

    def quiet_since(self, at: float) -> list[TerritoryState]:
        """Those without an observation from `at` on. Looks at no active ones that are not due, and
        at all evicted ones, which are in no order (about 0.3 ms for 10,000)."""
        found = [one for one in self._evicted.values() if one.quiet_since < at]
        for territory in self._active.values():
            if territory.quiet_since >= at:
                break
            found.append(territory)
        return found

    def _make_room(self, client: str, address: str | None, now: float) -> str | None:
        """Evict the longest idle territory under each limit that is reached, if it is idle enough;
        else which limit stands in the way."""
        limits: list[tuple[Mapping[str, TerritoryState], int, str]] = [
            (self._of_client.get(client, {}), self._per_client, "this client has"),
            (self._of_address.get(address or "", {}), self._per_address, "this address has"),
            (self._active, self._in_all, "the server has"),
        ]
        for held, most, whose in limits:
            if len(held) < most:
                continue
            idle = next(iter(held.values()))
            too_many = len(self._evicted) >= self._most_evicted
            if too_many or now - idle.quiet_since < self._evict_after_s:
                return f"{whose} as many territories as it may; end some first"
            self._deactivate(idle)
            self._evict(idle)
            self.evictions += 1
        return None

    def _evict(self, territory: TerritoryState) -> None:
        territory.forget()
        self._evicted[territory.name] = territory
        self._evicted_of[territory.client] += 1

    def _drop_evicted(self, territory: TerritoryState) -> None:
        del self._evicted[territory.name]
        self._evicted_of[territory.client] -= 1
        if not self._evicted_of[territory.client]:
            del self._evicted_of[territory.client]

    def _activate(self, territory: TerritoryState) -> None:
        self._of_client.setdefault(territory.client, OrderedDict())
        if territory.address is not None:
            self._of_address.setdefault(territory.address, OrderedDict())
        for held in self._holding(territory):
            held[territory.name] = territory

    def _deactivate(self, territory: TerritoryState) -> None:
        for held in self._holding(territory):
            del held[territory.name]
        if not self._of_client[territory.client]:
            del self._of_client[territory.client]
        if territory.address is not None and not self._of_address[territory.address]:
            del self._of_address[territory.address]

    def _holding(self, territory: TerritoryState) -> Iterator[_ByName]:
        yield self._active
        yield self._of_client[territory.client]
        if territory.address is not None:
            yield self._of_address[territory.address]


Before: TypeAlias = Literal["duplicate", "expired", "superseded", "orphaned", "unknown"]
_BEFORE: dict[str, Before] = {
    "settled": "duplicate",
    "expired": "expired",
    "superseded": "superseded",
    "orphaned": "orphaned",
}


def clipped(reward: float, limit: float) -> float:
    """Within plus and minus the limit."""
    return max(-limit, min(limit, reward))


def rewarded_before(state: str) -> Before:
    """What to say of a reward for a decision that has ended so, or that nobody knows."""
    return _BEFORE.get(state, "unknown")


def endings(
    opened: Sequence[Opened],
    end: End,
    *,
    added: float | None,
    now: float,
    config: LiveConfig,
) -> list[Closing]:
    """A territory ends with these open decisions, oldest first.

    The last one is settled by what its client said of it, here or before; of the others, nobody
    will say anything any more. `added`: what was said of the last one before.
    """
    if not opened:
        return []
    *earlier, last = opened
    closings = [Closing(id=one.id, state="orphaned") for one in earlier]
    worth = [reward for reward in (end.reward, added) if reward is not None]
    if not worth:
        return [*closings, Closing(id=last.id, state="orphaned")]
    if now - last.at > config.reward_window_s:
        return [*closings, Closing(id=last.id, state="expired")]
    settled = Closing(
        id=last.id,
        state="settled",
        reward=clipped(sum(worth), config.reward_clip),
        terminal=end.outcome != "aborted",
        outcome="" if end.outcome == "aborted" else end.outcome,
    )
    return [*closings, settled]


def overdue(opened: Sequence[Opened], connected: Container[str]) -> list[Closing]:
    """Decisions that waited too long: orphaned where their client has left, else expired."""
    return [
        Closing(id=one.id, state="expired" if one.client in connected else "orphaned")
        for one in opened
    ]


def resume(
    territory: TerritoryState, newest: Opened, translator: Translator, *, is_open: bool
) -> None:
    """Put a new territory where its newest decision left it, whether that is open or not.

    What a policy carried is gone, so the next decision begins a segment.
    """
    territory.tick = newest.tick
    territory.last = answered_before(newest, translator)
    territory.decisions = 1
    territory.forget()
    if is_open and translator.rewards_by_observation:
        territory.waiting = WaitingDecision(newest, seen_before(newest, translator))


def seen_before(opened: Opened, translator: Translator) -> Sight:
    """The observation of a decision, without whatever else was told."""
    features = np.frombuffer(opened.observation, np.dtype("<f4")).astype(np.float32)
    options = translator.actions.options
    return Sight(features, unpack_legal(opened.legal, options) if opened.legal else None)


def answered_before(opened: Opened, translator: Translator) -> Decision:
    """The answer that was given; the gate's reasons are not kept."""
    return Decision(
        decision_id=opened.id,
        territory=opened.territory,
        tick=opened.tick,
        action=translator.label(opened.action),
        confidence=math.exp(opened.log_prob) if opened.sampled else 0.0,
        version=opened.version,
        verdict="SEND" if opened.sent else "WAIT",
        expected_reward=0.0 if math.isnan(opened.expected) else opened.expected,
        explored=opened.explored,
        degraded=not opened.sampled,
    )
