"""What a league knows, as one JSON file of a version: the pool, the ratings and the results.

Reading it back gives the same values, and writing them the same bytes. Whatever does not hold
together is a `FileFormatError` that names the field.
"""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec

from understudy.core.errors import FileFormatError
from understudy.league.pool import Snapshot
from understudy.league.ratings import Counts, Rating

FILE = "league.json"
"""Its name in a version."""
FOLDER = "league"
"""Where a run folder has the snapshots."""
LEARNER = "learner"
"""What the learner is called in ratings and tables."""
SCHEMA = 1
_SHA256 = 64


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The learner's results against one opponent."""

    wins: int = 0
    draws: int = 0
    losses: int = 0
    recent_wins: float = 0.0
    """The same for what was lately: each iteration counts a little less than the one after it."""
    recent_matches: float = 0.0

    @property
    def counts(self) -> Counts:
        """Over the whole run."""
        return self.wins, self.draws, self.losses

    def faded(self, decay: float) -> Record:
        """After one more iteration."""
        return msgspec.structs.replace(
            self, recent_wins=decay * self.recent_wins, recent_matches=decay * self.recent_matches
        )

    def plus(self, wins: int, draws: int, losses: int) -> Record:
        """With more matches."""
        return Record(
            wins=self.wins + wins,
            draws=self.draws + draws,
            losses=self.losses + losses,
            recent_wins=self.recent_wins + wins,
            recent_matches=self.recent_matches + wins + draws + losses,
        )


class LeagueState(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """All that a league goes on from."""

    schema: int = SCHEMA
    iterations: int = 0
    """How often results were noted."""
    offered_at: int = 0
    """Steps at which a snapshot was last offered, kept or not."""
    learner: Rating = Rating()
    anchors: dict[str, Rating] = {}
    """The scripted bots, frozen."""
    pool: list[Snapshot] = []
    """Oldest to newest."""
    ratings: dict[str, Rating] = {}
    """Everyone else who was met: the pool, and the last ones that left it."""
    records: dict[str, Record] = {}
    """By opponent, scripted bots too."""
    left: list[str] = []
    """Snapshots that left and may still be in a match somewhere; the last one left last."""
    gone: Record = Record()
    """Results against all that left before those, together."""


def encode(state: LeagueState) -> bytes:
    """As JSON; equal states that were built in the same order give equal bytes."""
    return msgspec.json.encode(state)


def decode(data: bytes, *, what: str = FILE) -> LeagueState:
    """From JSON, every field checked; `what` names the file in errors."""
    try:
        state = msgspec.json.decode(data, type=LeagueState)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{what}: {error}") from error
    if state.schema != SCHEMA:
        raise FileFormatError(f"{what}: schema {state.schema}, this program reads {SCHEMA}")
    _check(state, what)
    return state


def _check(state: LeagueState, what: str) -> None:
    for before, after in pairwise(state.pool):
        if before.steps >= after.steps:
            raise FileFormatError(
                f"{what}: pool: expected steps that rise, got {before.steps} before {after.steps}"
            )
    for snapshot in state.pool:
        if snapshot.steps < 0 or len(snapshot.sha256) != _SHA256:
            raise FileFormatError(
                f"{what}: pool: {snapshot.name} has no checksum or negative steps"
            )
        if snapshot.name not in state.ratings:
            raise FileFormatError(f"{what}: ratings: {snapshot.name} of the pool has none")
    everyone = {LEARNER: state.learner, **state.anchors, **state.ratings}
    for name, rating in everyone.items():
        if not (math.isfinite(rating.mu) and math.isfinite(rating.sigma) and rating.sigma > 0.0):
            raise FileFormatError(f"{what}: the rating of {name} is not a number with a spread")
    for name, record in {**state.records, "gone": state.gone}.items():
        if min(*record.counts, record.recent_wins, record.recent_matches) < 0:
            raise FileFormatError(f"{what}: records: {name} has a count below 0")
