"""The translator of the territory game, between its client's messages and the policy.

Features, masks and rewards are those of `games.territory`, so that a server and the game that the
policy was trained on agree about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from understudy.adapters.territory.messages import (
    ObservationAck,
    ObservationData,
    ProposedSpawn,
    QueenObservation,
    SpawnDecision,
)
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.games.territory import BOTS, Territory, observation, rewards, tables
from understudy.games.territory.observation import Seen
from understudy.session.protocol import Decision, Error, ObservationRequest
from understudy.session.translation import Sight, Step, TranslatedObservation

_CHUNKS, _KINDS = tables.CHUNKS, tables.KINDS
_NO_CHUNK = -1
_FIELDS = 5
"""workers, mining, protectors, energy parasites, combat parasites: in the order of `Seen`."""
_OTHER_GAME = Error(
    code="unknown_type", message="this game is sent as 'observation_data'", field="type"
)
_NOTHING = {
    "policy": "the policy chose to spawn nothing",
    "rules": "the rules chose to spawn nothing",
}


class RewardInputs(NamedTuple):
    """What the reward needs of one observation, small enough to keep for every territory."""

    heads: NDArray
    """uint16 [5, 256]: how many units of each field are in each chunk"""
    amounts: NDArray
    """float32 [6]: see `_AMOUNTS`"""


class TerritoryTranslator:
    """See `Translator`. A message is an `observation_data`; ticks are milliseconds."""

    name = Territory.name
    features = Territory.features
    actions = Territory.actions
    rewards_by_observation = True
    tick_length = tables.SECONDS_PER_TICK * 1000
    territory_field, tick_field = "data.territoryId", "data.timestamp"

    def __init__(self) -> None:
        self._fallback = BOTS["queen"]

    def read(self, requests: Sequence[ObservationRequest]) -> list[TranslatedObservation | Error]:
        wrong = [
            _wrong(one.data) if isinstance(one, ObservationData) else _OTHER_GAME
            for one in requests
        ]
        good = [
            one
            for one, error in zip(requests, wrong, strict=True)
            if error is None and isinstance(one, ObservationData)
        ]
        readings = iter(_readings(good) if good else ())
        return [next(readings) if error is None else error for error in wrong]

    def rewards(self, steps: Sequence[Step]) -> list[float | None]:
        """The game's reward; None where the last observation was lost in a restart."""
        known = [step for step in steps if step.before.reward_inputs is not None]
        if not known:
            return [None] * len(steps)
        with np.errstate(over="ignore", invalid="ignore"):  # see `SchemaGame.rewards`
            worth = rewards.reward(
                NUMPY,
                _seen([step.before.reward_inputs for step in known]),
                np.array([step.action[0] for step in known], np.int32),
                np.array([step.sent for step in known]),
                _seen([step.after.reward_inputs for step in known]),
            )
        known_rewards = iter(worth.tolist())
        return [
            None if step.before.reward_inputs is None else next(known_rewards) for step in steps
        ]

    def fallback(self, sights: Sequence[Sight]) -> NDArray:
        """What the client proposed, else the actions of the game's scripted bot."""
        obs = np.array([one.features for one in sights]).T
        seeds = np.zeros(len(sights), np.uint32)
        actions: NDArray = self._fallback.act(NUMPY, obs, seeds, np.zeros(len(sights), np.int32))
        rows = zip(sights, actions.T, strict=True)
        return np.array(
            [row if one.proposed is None else one.proposed for one, row in rows], np.int32
        )

    def label(self, action: Sequence[int]) -> Any:
        """`{"chunk": 17, "type": "combat"}`; chunk -1 and type null spawn nothing."""
        if action[0] == tables.NO_SPAWN:
            return {"chunk": _NO_CHUNK, "type": None}
        chunk, kind = tables.spawn_of(action[0])
        return {"chunk": chunk, "type": _KINDS[kind]}

    @property
    def choices(self) -> Any:
        """How to read an action, instead of 513 names."""
        return {"type": "spawn", "chunks": _CHUNKS, "types": list(_KINDS)}

    def answer(self, decision: Decision) -> msgspec.Struct:
        """A `spawn_decision`, or an `observation_ack` for WAIT."""
        if decision.verdict == "WAIT":
            return ObservationAck(
                territory_id=decision.territory,
                reasons=decision.reasons,
                expected_reward=decision.expected_reward,
                decision_id=decision.decision_id,
                version=decision.version,
                duplicate=decision.duplicate,
                id=decision.id,
            )
        skipped = decision.action["type"] is None
        return SpawnDecision(
            territory_id=decision.territory,
            spawn_chunk=decision.action["chunk"],
            spawn_type=decision.action["type"],
            # Chunk and type are one choice, with one probability.
            confidence=decision.confidence,
            type_confidence=decision.confidence,
            skipped=skipped,
            skip_reason=_NOTHING[decision.by] if skipped else None,
            decision_id=decision.decision_id,
            version=decision.version,
            by=decision.by,
            explored=decision.explored,
            degraded=decision.degraded,
            duplicate=decision.duplicate,
            id=decision.id,
        )


_LARGEST = float(np.finfo(np.float32).max)
_AMOUNTS = (
    "queenEnergy.current",
    "queenEnergy.max",
    "playerEnergy.start",
    "playerEnergy.end",
    "playerMinerals.start",
    "playerMinerals.end",
)


def _amounts(data: QueenObservation) -> tuple[float, ...]:
    own, energy, minerals = data.queen_energy, data.player_energy, data.player_minerals
    return (own.current, own.max, energy.start, energy.end, minerals.start, minerals.end)


def _wrong(data: QueenObservation) -> Error | None:
    """An amount beyond float32."""
    amounts = _amounts(data)
    if max(amounts) <= _LARGEST:
        return None
    name = next(name for name, one in zip(_AMOUNTS, amounts, strict=True) if one > _LARGEST)
    message = "too large for a 32-bit float"
    return Error(code="bad_number", message=message, field=f"data.{name}")


def _readings(requests: Sequence[ObservationData]) -> list[TranslatedObservation | Error]:
    data = [one.data for one in requests]
    heads = _heads(data)
    amounts = np.array([_amounts(one) for one in data], np.float32)
    inputs = [RewardInputs(*pair) for pair in zip(heads, amounts, strict=True)]
    seen = _seen(inputs)
    with np.errstate(over="ignore"):  # the player's energy; its rate is clipped
        features = observation.features(NUMPY, seen).T
    legal = observation.legal(NUMPY, seen).T
    readings: list[TranslatedObservation | Error] = []
    for one, row, mask, mine in zip(requests, features, legal, inputs, strict=True):
        proposed = _proposed(one.proposed, mask)
        if isinstance(proposed, Error):
            readings.append(proposed)
            continue
        # Copies: one territory must not keep the arrays of the whole batch alive.
        kept = RewardInputs(mine.heads.copy(), mine.amounts.copy())
        sight = Sight(row.copy(), mask.copy(), kept, proposed)
        readings.append(
            TranslatedObservation(one.data.territory_id, round(one.data.timestamp), sight)
        )
    return readings


def _proposed(spawn: ProposedSpawn | None, legal: NDArray) -> tuple[int] | Error | None:
    """The action that a client proposes, checked; None: it proposes none."""
    if spawn is None:
        return None
    if (spawn.spawn_chunk == _NO_CHUNK) != (spawn.spawn_type is None):
        message = "expected spawnChunk -1 and spawnType null together, to spawn nothing"
        return Error(code="bad_message", message=message, field="proposed")
    if spawn.spawn_type is None:
        return (tables.NO_SPAWN,)
    action = tables.action_of(spawn.spawn_chunk, _KINDS.index(spawn.spawn_type))
    if not legal[action]:
        message = f"{spawn.spawn_type} cannot be spawned in chunk {spawn.spawn_chunk} now"
        return Error(code="illegal", message=message, field="proposed")
    return (action,)


def _heads(data: Sequence[QueenObservation]) -> NDArray:
    """uint16 [B, 5, 256]: see `RewardInputs.heads`"""
    places: list[int] = []
    for index, one in enumerate(data):
        start = index * _FIELDS * _CHUNKS
        places += [start + unit.chunk_id for unit in one.workers_present]
        places += [start + _CHUNKS + unit.chunk_id for unit in one.mining_workers]
        places += [start + 2 * _CHUNKS + unit.chunk_id for unit in one.protectors]
        places += [
            start + (3 + _KINDS.index(parasite.type)) * _CHUNKS + parasite.chunk_id
            for parasite in one.parasites_end
        ]
    shape = (len(data), _FIELDS, _CHUNKS)
    counted = np.bincount(np.array(places, np.intp), minlength=int(np.prod(shape)))
    heads = counted.reshape(shape)
    # Workers that mine are present, even if a client lists only the others as present.
    heads[:, 0] = np.maximum(heads[:, 0], heads[:, 1])
    return heads.astype(np.uint16)


def _seen(inputs: Sequence[RewardInputs]) -> Seen:
    """The input of the game's functions, with the batch as the last axis."""
    heads = np.array([one.heads for one in inputs]).transpose(1, 2, 0).astype(np.float32)
    energy_now, energy_max, *player = np.array([one.amounts for one in inputs]).T
    workers, mining, protectors, energy, combat = heads
    return Seen(
        workers=workers,
        mining=mining,
        protectors=protectors,
        energy_parasites=energy,
        combat_parasites=combat,
        queen_energy=energy_now,
        queen_energy_max=energy_max,
        player_energy=np.stack(player[:2]),
        player_minerals=np.stack(player[2:]),
    )
