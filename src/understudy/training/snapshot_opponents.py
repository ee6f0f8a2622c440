"""Snapshots as opponents: the league of a run assigns them to the groups of its arena.

Every choice follows from the league's state, the assignment and a counted draw. Versions keep all
three, so a resumed session chooses as one that was never interrupted.
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


class OpponentState(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"assignment": "seating", "started": "begun"},
):
    """What a version keeps beside the league itself."""

    assignment: SnapshotAssignment = SnapshotAssignment()
    mix: dict[str, float] = {}
    """The opponents of the arena, by weight."""
    started: tuple[int, int] = (0, 0)
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

    def state(self) -> OpponentState:
        """For a version."""
        share = self._arena.share
        started = (share.started, share.own)
        return OpponentState(
            self._arena.snapshots.assignment(), self._arena.mix.as_dict(), started, self._draws
        )

    def restore(self, state: OpponentState) -> None:
        """As a version has it."""
        self._draws = state.draws
        if state.mix == self._arena.mix.as_dict():  # under another mix nothing is owed
            self._arena.share = Share(*state.started)
        self._arena.snapshots.restore(state.assignment, self._params)

    def assign_all(self, name: str, params: Params) -> None:
        """Assign one opponent to every group, for good."""
        for group in range(self._arena.plan.groups):
            self._arena.snapshots.offer(group, name, lambda: params)

    def note(self, results: Mapping[str, Result], *, steps: int) -> None:
        """Give the results of one iteration to the league."""
        self.league.note({name: one.counts for name, one in results.items()})
        rating = self.league.learner
        self._journal.write(events.LearnerRated(steps=steps, mu=rating.mu, sigma=rating.sigma))

    def assign(self) -> None:
        """Draw a snapshot for every group that has none, or has met the same one long enough.

        Draws only while the mix contains snapshots: one drawn in an earlier stage would be old.
        """
        snapshots = self._arena.snapshots
        for group in snapshots.groups_due() if self._arena.mix.own_share else ():
            name = self.league.draw(self._uniform())
            if name is not None:
                snapshots.offer(group, name, partial(self._loaded, name))

    def offer_if_due(self, steps: int) -> SnapshotVerdict | None:
        """Offer the present weights to the league as a snapshot, where one is due."""
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
        """None for a snapshot that left the pool before the version was made."""
        return self._loaded(name) if name in self.league.names else None
