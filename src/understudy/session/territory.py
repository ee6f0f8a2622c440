"""Territories: the state of each, and the limits on how many there are.

Only this module changes a territory's state; the methods of `TerritoryState` are all that can
happen to one.

A territory belongs to the client that named it first, by the client's id and not by its connection,
so that a client that reconnects continues. Where a limit is reached, the territory that has been
idle longest is evicted. An evicted territory loses the policy's memory and nothing else: its owner,
its tick, its last answer and its open decision stay until the reward window is over, so that its
next observation still settles that decision.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import Tree
from understudy.experience.ledger import Opened, unpack_legal
from understudy.session.protocol import Decision, RequestId
from understudy.session.translation import Sight, Translator


@dataclass(slots=True)
class WaitingDecision:
    """An open decision whose reward the next observation tells."""

    opened: Opened
    sight: Sight


@dataclass(slots=True)
class TerritoryState:
    """One endless match."""

    name: str
    client: str
    quiet_since: float
    """Monotonic: a change of the wall clock must neither drop a territory nor keep it"""
    address: str | None = None
    """Where its first observation came from; None: unknown, as after a restart"""
    tick: int | None = None
    """Of its last observation"""
    last: Decision | None = None
    """The answer to that observation"""
    waiting: WaitingDecision | None = None
    decisions: int = 0
    memory: Tree | None = None
    """The policy's memory, arrays without a batch axis; None: empty"""
    version: int = -1
    """The version that made this memory"""
    remembered: int = 0
    """Decisions in that memory"""
    severed: bool = False
    """The memory was emptied: the next decision is the first one of a segment"""
    bootstrap: bytes | None = None
    """float32 [F], an observation that was answered without the ledger: earlier decisions end
    there"""
    pace_s: float | None = None
    """From one observation to the next, recently; None: there was one at most"""

    def observed(self, now: float) -> None:
        """An observation arrived."""
        if self.decisions:
            gap = now - self.quiet_since
            self.pace_s = gap if self.pace_s is None else 0.8 * self.pace_s + 0.2 * gap
        self.quiet_since = now

    def forget(self) -> None:
        """Empty the policy's memory."""
        self.memory, self.remembered, self.severed = None, 0, True

    def stop_remembering(self) -> None:
        """Another player decides than the policy whose memory this is."""
        if self.memory is not None:
            self.forget()

    def cut(
        self, tick: int, sight: Sight, version: int, remembers: bool, widest: float, segment: int
    ) -> bytes | None:
        """The bootstrap observation of the segment that ends before this observation; None: the
        segment continues.

        No segment spans a gap of more than `widest` ticks or an answer without the ledger. With a
        policy that `remembers`, a segment has at most `segment` decisions, all of one version, and
        begins with empty memory, so that training on it from empty memory repeats what was played.
        """
        gap = self.tick is not None and tick - self.tick > widest
        full = self.remembered >= segment
        if gap or (self.remembered and (full or self.version != version)):
            self.forget()
        if self.bootstrap is not None:
            return self.bootstrap
        ends = gap or (remembers and self.severed)
        return sight.features.tobytes() if ends else None

    def stop_waiting(self) -> None:
        """The waiting decision is closed, or cannot be settled any more."""
        self.waiting = None

    def expire(self, decision: int) -> None:
        """The reward window of this decision is over. If an observation was to settle it, the
        memory began before a gap and is emptied."""
        if self.waiting is not None and self.waiting.opened.id == decision:
            self.waiting = None
            self.forget()

    def recorded(self, waiting: WaitingDecision | None) -> None:
        """A new decision is in the ledger; `waiting`: the next observation tells its reward."""
        self.bootstrap = None
        self.waiting = waiting

    def remember(self, memory: Tree, version: int) -> None:
        """The policy's memory after one more decision of this version."""
        self.memory, self.version = memory, version
        self.remembered += 1
        self.severed = False

    def unrecorded(self, features: NDArray) -> None:
        """An observation is answered without the ledger: earlier decisions end with it."""
        self.waiting = None
        self.forget()
        if self.bootstrap is None:
            self.bootstrap = features.tobytes()

    def answered(self, decision: Decision) -> None:
        """A new observation gets this answer."""
        self.tick, self.last = decision.tick, decision
        self.decisions += 1

    def resume(self, newest: Opened, translator: Translator, *, is_open: bool) -> None:
        """After a restart: continue where the newest decision left off, open or not. The policy's
        memory is lost, so the next decision begins a segment."""
        self.tick = newest.tick
        self.last = _answer_again(newest, translator)
        self.decisions = 1
        self.forget()
        if is_open and translator.rewards_by_observation:
            self.waiting = WaitingDecision(newest, _sight_of(newest, translator))


def _sight_of(opened: Opened, translator: Translator) -> Sight:
    """The observation of a decision, without what else the client told."""
    features = np.frombuffer(opened.observation, np.dtype("<f4")).astype(np.float32)
    options = translator.actions.options
    return Sight(features, unpack_legal(opened.legal, options) if opened.legal else None)


def _answer_again(opened: Opened, translator: Translator) -> Decision:
    """The answer that was given, without the gate's reasons, which are not kept."""
    return Decision(
        decision_id=opened.id,
        territory=opened.territory,
        tick=opened.tick,
        action=translator.label(opened.action),
        confidence=math.exp(opened.log_prob) if opened.sampled else 0.0,
        version=0 if opened.rules else opened.version,
        by="policy" if opened.sampled else "rules",
        verdict="SEND" if opened.sent else "WAIT",
        expected_reward=0.0 if math.isnan(opened.expected) else opened.expected,
        explored=opened.explored,
        degraded=not opened.sampled and not opened.rules,
    )


_ByName = OrderedDict[str, TerritoryState]
"""The one that has been idle longest is first."""


class DecisionRequest(NamedTuple):
    """One observation that waits to be decided."""

    place: int
    """Index in the inbox"""
    request: RequestId | None
    territory: TerritoryState
    tick: int
    sight: Sight
    due: WaitingDecision | None
    """The decision whose reward this observation tells"""


class Territories:
    """All territories by name. Limits count the active ones, which are not evicted."""

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
        # As many as can be evicted one after the other within a reward window.
        self._most_evicted = int(in_all * max(1.0, reward_window_s / evict_after_s))
        self._active: _ByName = OrderedDict()
        self._of_client: dict[str, _ByName] = {}
        self._of_address: dict[str, _ByName] = {}
        self._evicted: dict[str, TerritoryState] = {}
        self._evicted_of: Counter[str] = Counter()
        """Evicted territories by client."""
        self.evictions = 0

    def __len__(self) -> int:
        """How many are active."""
        return len(self._active)

    def get(self, name: str) -> TerritoryState | None:
        """Active or evicted."""
        return self._active.get(name) or self._evicted.get(name)

    def has(self, client: str) -> bool:
        """Whether this client has a territory, active or evicted."""
        return client in self._of_client or client in self._evicted_of

    def add(self, name: str, client: str, address: str | None, now: float) -> TerritoryState | str:
        """A new territory; a text that names the limit where there is no room."""
        full = self._make_room(client, address, now)
        if full is not None:
            return full
        territory = TerritoryState(name, client, now, address)
        self._activate(territory)
        return territory

    def restore(self, name: str, client: str, now: float) -> TerritoryState:
        """A territory from before a restart, whose address is not known: active where there is
        room, else evicted."""
        territory = TerritoryState(name, client, now)
        if self._make_room(client, None, now) is None:
            self._activate(territory)
        else:
            self._evict(territory)
        return territory

    def touch(self, territory: TerritoryState, now: float) -> str | None:
        """An observation arrived. An evicted territory becomes active again; where there is no room
        it stays evicted, and the returned text names the limit."""
        territory.observed(now)
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
        if territory.name in self._evicted:
            self._drop_evicted(territory)
        else:
            self._deactivate(territory)

    def quiet_since(self, at: float) -> list[TerritoryState]:
        """Territories without an observation since `at`. Visits the active ones that are due and
        all evicted ones, which are in no order (about 0.3 ms for 10,000)."""
        found = [one for one in self._evicted.values() if one.quiet_since < at]
        for territory in self._active.values():
            if territory.quiet_since >= at:
                break
            found.append(territory)
        return found

    def _make_room(self, client: str, address: str | None, now: float) -> str | None:
        """Evict the longest idle territory under each limit that is reached, if it has been idle
        long enough; else return a text that names the limit."""
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
