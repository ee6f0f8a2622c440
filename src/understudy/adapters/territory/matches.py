"""Matches of territory side by side under NumPy, as messages of its client.

Without I/O: observations out, actions in. The match after a finished one has another territory
name, so that no territory is two matches.
"""

from __future__ import annotations

import numpy as np

from understudy.adapters.territory.messages import (
    Parasite,
    QueenEnergy,
    QueenObservation,
    Span,
    Unit,
)
from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY
from understudy.games.territory import Territory, tables
from understudy.games.territory.state import State, at_work, chunk_of, on_guard
from understudy.match.live_match import TRAINING, match_seeds

SECONDS_PER_TICK = tables.SECONDS_PER_TICK
HIVE_CHUNK = 0
"""The rules have no hive; the message needs one, which no reader uses."""
CHUNK_SIZE = 16.0
"""The side of a chunk in the client's coordinates. The rules know chunks, no places in them."""


class TerritoryMatches:
    """`count` matches, all in the same frame."""

    def __init__(self, *, count: int, seed: int, purpose: int = TRAINING) -> None:
        self.count = count
        self._seed, self._purpose = seed, purpose
        self._game = Territory()
        self._generation = -1
        self._frames = 0
        self._state: State
        self._before: list[tuple[Parasite, ...]]
        self._begin()

    @property
    def names(self) -> list[str]:
        """The names of the current territories."""
        return [f"territory-{self._seed}-{self._generation}-{i}" for i in range(self.count)]

    @property
    def state(self) -> State:
        return self._state

    def observations(self) -> list[QueenObservation]:
        """The current observation of each match."""
        parasites = [parasites_of(self._state, index) for index in range(self.count)]
        told = [
            observation(
                self._state, index, name=name, frame=self._frames,
                parasites_start=before, parasites_end=now,
            )
            for index, (name, before, now) in enumerate(
                zip(self.names, self._before, parasites, strict=True)
            )
        ]  # fmt: skip
        self._before = parasites
        return told

    def play(self, actions: NDArray) -> NDArray:
        """Step all matches with actions int32 [count]; the rewards float32 [count]."""
        before = self._state
        self._state = self._game.step(NUMPY, before, actions.astype(np.int32)[None, None])
        self._frames += 1
        rewards: NDArray = self._game.reward(NUMPY, before, self._state)[0]
        return rewards

    def next_matches(self) -> list[str]:
        """If the matches are over, start the next ones; the names of those that ended."""
        if not self._game.over(NUMPY, self._state).all():
            return []
        ended = self.names
        self._begin()
        return ended

    def _begin(self) -> None:
        self._generation += 1
        first = self._generation * self.count
        indices = np.arange(first, first + self.count)
        seeds = match_seeds(self._seed, indices, purpose=self._purpose)
        self._state = self._game.start(NUMPY, seeds)
        self._before = [parasites_of(self._state, index) for index in range(self.count)]


def action_of(chunk: int, kind: str) -> int:
    """The game's action for the fields of a `spawn_decision`."""
    return int(tables.action_of(chunk, tables.KINDS.index(kind)))


def observation(
    state: State,
    index: int,
    *,
    name: str,
    frame: int,
    parasites_start: tuple[Parasite, ...],
    parasites_end: tuple[Parasite, ...],
) -> QueenObservation:
    """One match of a batch as a message; `frame` counts from the client's start."""
    there = at_work(state)[:, index]
    workers = _units(chunk_of(state.worker)[there, index])
    mining = state.mining[there, index]
    energy, minerals = state.player_energy[:, index], state.minerals[:, index]
    return QueenObservation(
        timestamp=frame * SECONDS_PER_TICK * 1e3,
        territory_id=name,
        hive_chunk=HIVE_CHUNK,
        mining_workers=tuple(one for one, busy in zip(workers, mining, strict=True) if busy),
        workers_present=workers,
        protectors=_units(chunk_of(state.protector)[on_guard(state)[:, index], index]),
        parasites_start=parasites_start,
        parasites_end=parasites_end,
        queen_energy=QueenEnergy(float(state.queen_energy[index]), tables.QUEEN_ENERGY_MAX),
        player_energy=Span(*energy.tolist()),
        player_minerals=Span(*minerals.tolist()),
    )


def parasites_of(state: State, index: int) -> tuple[Parasite, ...]:
    """The living parasites of one match."""
    alive = state.health[:, index] > 0
    chunks = chunk_of(state.parasite)[alive, index].tolist()
    kinds = state.kind[alive, index].tolist()
    return tuple(
        Parasite(chunk, "energy" if kind == tables.ENERGY else "combat")
        for chunk, kind in zip(chunks, kinds, strict=True)
    )


def _units(chunks: NDArray) -> tuple[Unit, ...]:
    """Units, each in the middle of its chunk."""
    return tuple(
        Unit(
            x=(chunk % tables.GRID + 0.5) * CHUNK_SIZE,
            z=(chunk // tables.GRID + 0.5) * CHUNK_SIZE,
            chunk_id=chunk,
        )
        for chunk in chunks.tolist()
    )
