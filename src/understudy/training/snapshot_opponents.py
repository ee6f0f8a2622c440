"""Rivalry: the league of a run at work in its arena, from results to who is met next.

Everything that it decides comes from the league's state, the seats and a counted draw, all of which
versions keep: a session that goes on decides as one that was never interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import msgspec
import numpy as np

from understudy.arena.arena import Arena
from understudy.arena.mix import Share
from understudy.arena.results import Result
from understudy.arena.snapshot_opponents import SnapshotAssignment
from understudy.core.chance import fold, uniform
from understudy.core.ops import NUMPY
from understudy.league.league import League, SnapshotVerdict
from understudy.policy.layers import Params
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_DRAW = 0x1EA6


class OpponentState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a version keeps beside the league itself."""

    seating: SnapshotAssignment = SnapshotAssignment()
    mix: dict[str, float] = {}
    """Whom the arena met, by weight."""
    begun: tuple[int, int] = (0, 0)
    """Matches that began under this mix, and those of them against snapshots."""
    draws: int = 0


class SnapshotOpponents:
    """Between one league and one arena."""

    def __init__(self, league: League, arena: Arena, journal: Journal, *, seed: int) -> None:
        self.league = league
        self._arena = arena
        self._journal = journal
        self._key = fold(np.full(1, _DRAW, np.uint32), seed & 0xFFFFFFFF)
        self._draws = 0

    def seats(self) -> OpponentState:
        """For a version."""
        share = self._arena.share
        begun = (share.started, share.own)
        return OpponentState(
            self._arena.snapshots.assignment(), self._arena.mix.as_dict(), begun, self._draws
        )

    def restore(self, seats: OpponentState) -> None:
        """As a version has it."""
        self._draws = seats.draws
        if seats.mix == self._arena.mix.as_dict():  # under another mix nothing is owed
            self._arena.share = Share(*seats.begun)
        self._arena.snapshots.restore(seats.seating, self._params)

    def seat_alone(self, name: str, params: Params) -> None:
        """One opponent for every group, for good."""
        for group in range(self._arena.plan.groups):
            self._arena.snapshots.offer(group, name, lambda: params)

    def note(self, results: Mapping[str, Result], *, steps: int) -> None:
        """One iteration's results."""
        self.league.note({name: one.counts for name, one in results.items()})
        rating = self.league.learner
        self._journal.write(events.LearnerRated(steps=steps, mu=rating.mu, sigma=rating.sigma))

    def seat(self) -> None:
        """Every group that has nobody, or has met the same snapshot long enough, draws one.

        Only while snapshots are met at all: what was drawn in an earlier stage would be an old one.
        """
        snapshots = self._arena.snapshots
        for group in snapshots.restless() if self._arena.mix.own_share else ():
            name = self.league.draw(self._uniform())
            if name is not None:
                snapshots.offer(group, name, partial(self._loaded, name))

    def offer_if_due(self, steps: int) -> SnapshotVerdict | None:
        """The learner of this moment as a snapshot, where it is time for one."""
        if not (self._arena.plan.meets_itself and self.league.due(steps)):
            return None
        verdict = self.league.offer(steps, self._arena.trainer.weights())
        left = f"; {', '.join(verdict.left)} left" if verdict.left else ""
        self._journal.write(
            events.SnapshotTaken(
                steps=steps,
                name=verdict.name,
                kept=verdict.kept,
                reason=f"{verdict.why}{left}",
                pool=len(self.league.names),
            )
        )
        return verdict

    def _loaded(self, name: str) -> Params:
        return self.league.weights(name).params

    def _uniform(self) -> float:
        self._draws += 1
        drawn = uniform(NUMPY, fold(self._key, self._draws), np.zeros(1, np.uint32))
        return float(drawn[0, 0])

    def _params(self, name: str) -> Params | None:
        """None for one that left the pool before the version was made: its group draws again."""
        return self._loaded(name) if name in self.league.names else None
