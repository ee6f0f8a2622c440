"""Snapshots as opponents: the league of a run assigns them to the groups of its matches, be they
of the arena or of environments.

Every choice follows from the league's state, the assignment and a counted draw. Versions keep all
three, so a resumed session chooses as one that was never interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import msgspec
import numpy as np

from understudy.arena.mix import Mix, Share
from understudy.arena.results import Result
from understudy.core.chance import fold, uniform
from understudy.core.errors import FileFormatError
from understudy.core.ops import NUMPY
from understudy.league import state as league_files
from understudy.league.curriculum import CurriculumState
from understudy.league.league import League, SnapshotVerdict
from understudy.league.snapshot_groups import SnapshotAssignment, SnapshotGroups
from understudy.policy.layers import Params
from understudy.policy.weights import Weights
from understudy.registry.checkpoints import Checkpoints
from understudy.registry.versions import Manifest, Versions
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

TRAINING = "training.json"
"""The file of a version with its `TrainingState`."""
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


class TrainingState(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"opponents": "seats", "curriculum": "course"},
):
    """What a version keeps of its matches, beside the league (`training.json`); empty in those of
    older programs."""

    opponents: OpponentState = OpponentState()
    curriculum: CurriculumState | None = None

    @classmethod
    def decode(cls, data: bytes | None, *, what: str) -> TrainingState:
        """From JSON, or from a version that has none; `what` names the file in errors."""
        if data is None:
            return cls()
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise FileFormatError(f"{what}: {error}") from error

    @classmethod
    def of(cls, versions: Versions, manifest: Manifest) -> TrainingState:
        """The one that a version keeps."""
        data = versions.read(manifest, TRAINING) if TRAINING in manifest.files else None
        return cls.decode(data, what=f"version {manifest.number}: {TRAINING}")


class LeagueMatches(Protocol):
    """Matches that a league finds opponents for: the arena, or environments."""

    share: Share

    @property
    def mix(self) -> Mix:
        """Whom matches that begin now are against."""

    @property
    def snapshots(self) -> SnapshotGroups[Any]:
        """The snapshots that are met."""

    @property
    def groups(self) -> int:
        """Snapshots that can be met at one time."""

    @property
    def meets_itself(self) -> bool:
        """Whether snapshots are ever met."""

    def weights(self) -> Weights:
        """What the learner has learned by now."""


class SnapshotOpponents:
    """Between one league and the matches of a session."""

    def __init__(
        self, league: League, matches: LeagueMatches, journal: Journal, *, seed: int
    ) -> None:
        self.league = league
        self._matches = matches
        self._journal = journal
        self._key = fold(np.full(1, _DRAW, np.uint32), seed & 0xFFFFFFFF)
        self._draws = 0

    def state(self) -> OpponentState:
        """For a version."""
        share = self._matches.share
        started = (share.started, share.own)
        return OpponentState(
            self._matches.snapshots.assignment(), self._matches.mix.as_dict(), started, self._draws
        )

    def restore(self, state: OpponentState) -> None:
        """As a version has it."""
        self._draws = state.draws
        if state.mix == self._matches.mix.as_dict():  # under another mix nothing is owed
            self._matches.share = Share(*state.started)
        self._matches.snapshots.restore(state.assignment, self._params)

    def restore_league(self, checkpoints: Checkpoints) -> events.Note | None:
        """The league as the version has it that a session resumes from; a note where snapshots have
        left since that version was made."""
        extras, what = checkpoints.extras, f"version {checkpoints.version}"
        if league_files.FILE not in extras:
            return None
        gone = self.league.restore(
            extras[league_files.FILE],
            what=f"{what}: {league_files.FILE}",
            newest=not checkpoints.rolled_back,
        )
        message = f"left since {what}: {', '.join(gone)}"
        return events.Note(where="league", message=message) if gone else None

    def assign_all(self, name: str, params: Params) -> None:
        """Assign one opponent to every group, for good."""
        for group in range(self._matches.groups):
            self._matches.snapshots.offer(group, name, lambda: params)

    def note(self, results: Mapping[str, Result], *, steps: int) -> None:
        """Give the results of one iteration to the league."""
        self.league.note({name: one.counts for name, one in results.items()})
        rating = self.league.learner
        self._journal.write(events.LearnerRated(steps=steps, mu=rating.mu, sigma=rating.sigma))

    def assign(self) -> None:
        """Draw a snapshot for every group that has none, or has met the same one long enough.

        Draws only while the mix contains snapshots: one drawn in an earlier stage would be old.
        """
        snapshots = self._matches.snapshots
        for group in snapshots.groups_due() if self._matches.mix.own_share else ():
            name = self.league.draw(self._uniform())
            if name is not None:
                snapshots.offer(group, name, partial(self._loaded, name))

    def offer_if_due(self, steps: int) -> SnapshotVerdict | None:
        """Offer the present weights to the league as a snapshot, where one is due."""
        if not (self._matches.meets_itself and self.league.due(steps)):
            return None
        verdict = self.league.offer(steps, self._matches.weights())
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
