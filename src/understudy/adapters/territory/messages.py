"""The messages of the territory game, in the names that its browser client uses.

They are as strict as the generic ones: a field that is not listed here is refused. Importing this
module registers them with the protocol.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from understudy.games.territory import tables
from understudy.session import protocol
from understudy.session.protocol import ObservationRequest, RequestId, TerritoryName

Chunk = Annotated[int, Meta(ge=0, le=tables.CHUNKS - 1)]
Amount = Annotated[float, Meta(ge=0.0)]
_MAX_UNITS = 4_096


class _Part(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, gc=False):
    """A piece of an observation."""


class Unit(_Part, frozen=True):
    """A worker or a protector, and where it stands."""

    x: float
    z: float
    chunk_id: Chunk


class Parasite(_Part, frozen=True):
    """One parasite of the Queen."""

    chunk_id: Chunk
    type: Literal["energy", "combat"]


class QueenEnergy(_Part, frozen=True):
    """What she can spend, and hold."""

    current: Amount
    max: Amount


class Span(_Part, frozen=True):
    """An amount at the start and at the end of the tick."""

    start: Amount
    end: Amount


Units = Annotated[tuple[Unit, ...], Meta(max_length=_MAX_UNITS)]
Parasites = Annotated[tuple[Parasite, ...], Meta(max_length=_MAX_UNITS)]


class QueenObservation(_Part, frozen=True):
    """What the Queen sees of her territory."""

    timestamp: Annotated[float, Meta(ge=0.0, le=2.0**53 - 1)]
    """In milliseconds, ascending: the tick of this observation."""
    territory_id: TerritoryName
    hive_chunk: Chunk
    mining_workers: Units
    workers_present: Units
    protectors: Units
    parasites_start: Parasites
    parasites_end: Parasites
    queen_energy: QueenEnergy
    player_energy: Span
    player_minerals: Span


class ProposedSpawn(_Part, frozen=True):
    """What the client's own rules would do, in the form of a `spawn_decision`."""

    spawn_chunk: Annotated[int, Meta(ge=-1, le=tables.CHUNKS - 1)]
    """-1: spawn nothing."""
    spawn_type: Literal["energy", "combat"] | None
    """null: spawn nothing."""


class ObservationData(
    ObservationRequest, frozen=True, kw_only=True, gc=False, tag="observation_data"
):
    """What the Queen sees: answered by `spawn_decision` or `observation_ack`."""

    data: QueenObservation
    proposed: ProposedSpawn | None = None
    """What the client's own rules would do."""


class SpawnDecision(
    msgspec.Struct, frozen=True, kw_only=True, tag="spawn_decision", omit_defaults=False
):
    """To be executed: what to spawn where; chunk -1 and type null: nothing."""

    territory_id: str = msgspec.field(name="territoryId")
    spawn_chunk: int = msgspec.field(name="spawnChunk")
    spawn_type: str | None = msgspec.field(name="spawnType")
    confidence: float
    """How likely the policy was to choose just this: chunk and type together."""
    type_confidence: float = msgspec.field(name="typeConfidence")
    """The same: both are chosen as one action."""
    skipped: bool = False
    skip_reason: str | None = msgspec.field(name="skipReason", default=None)
    decision_id: int | None
    version: int
    by: Literal["policy", "rules"] = "policy"
    """Who decided. The rules: the `proposed` action, or the safe action where there is none."""
    explored: bool = False
    degraded: bool = False
    duplicate: bool = False
    id: RequestId | None = None


class ObservationAck(
    msgspec.Struct, frozen=True, kw_only=True, tag="observation_ack", omit_defaults=False
):
    """Nothing is to be executed now: the gate said WAIT, and why."""

    territory_id: str = msgspec.field(name="territoryId")
    status: Literal["wait"] = "wait"
    action: Literal["none"] = "none"
    reasons: tuple[str, ...]
    expected_reward: float
    decision_id: int | None
    version: int
    duplicate: bool = False
    id: RequestId | None = None


protocol.register(ObservationData, answers=(SpawnDecision, ObservationAck))
