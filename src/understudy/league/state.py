"""What a league knows, as one JSON file of a version: the pool, the ratings and the results.

Reading it back gives the same values, and writing them the same bytes. Whatever does not hold
together is a `FileFormatError` that names the field.
"""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec
import numpy as np

from understudy.core.errors import FileFormatError
from understudy.league.pool import Snapshot
from understudy.league.ratings import TREND_SPREAD, Counts, Joint, Rating

FILE = "league.json"
"""Its name in a version."""
FOLDER = "league"
"""Where a run folder has the snapshots."""
LEARNER = "learner"
"""What the learner is called in ratings and tables."""
TREND = "learner's change per iteration"
OLDER_BIAS = 6.0
"""Files of older programs took all ratings for independent; a learner that had outgrown the bots,
and all its snapshots, were up to 320 points too low together. That is known of them then."""
SCHEMA = 1
_SHA256 = 64


class OpponentResults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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

    def faded(self, decay: float) -> OpponentResults:
        """After one more iteration."""
        return msgspec.structs.replace(
            self, recent_wins=decay * self.recent_wins, recent_matches=decay * self.recent_matches
        )

    def plus(self, wins: int, draws: int, losses: int) -> OpponentResults:
        """With more matches."""
        return OpponentResults(
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
    trend: Rating = Rating(0.0, TREND_SPREAD)
    """How much the learner changes in an iteration."""
    covariance: bytes = b""
    """Of the learner, its trend and `ratings` in this order: the lower triangle, row by row, as
    float64 with the lowest byte first. Empty in files of older programs."""
    records: dict[str, OpponentResults] = {}
    """By opponent, scripted bots too."""
    left: list[str] = []
    """Snapshots that left and may still be in a match somewhere; the last one left last."""
    gone: OpponentResults = OpponentResults()
    """Results against all that left before those, together."""


def joint_of(state: LeagueState) -> Joint:
    """What the ratings of a state are together."""
    each = {LEARNER: state.learner, TREND: state.trend, **state.ratings}
    joint = Joint.of(each)
    count, spread = len(each), joint.covariance
    if state.covariance:
        spread = np.zeros((count, count))
        spread[np.tril_indices(count)] = np.frombuffer(state.covariance, "<f8")
        spread = spread + np.tril(spread, -1).T
    else:
        shared = np.array([name != TREND for name in each], np.float64)
        spread = spread + OLDER_BIAS**2 * np.outer(shared, shared)
    return Joint(joint.names, joint.mean, spread)


def set_ratings(state: LeagueState, joint: Joint) -> None:
    """Set the ratings by name from `joint`."""
    each = joint.ratings()
    state.learner, state.trend = each.pop(LEARNER), each.pop(TREND)
    state.ratings = each


def set_covariance(state: LeagueState, joint: Joint) -> None:
    """Set the covariance, which the file stores, from `joint`."""
    lower = joint.covariance[np.tril_indices(len(joint.names))]
    state.covariance = lower.astype("<f8").tobytes()


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
    everyone = {LEARNER: state.learner, TREND: state.trend, **state.anchors, **state.ratings}
    for name, rating in everyone.items():
        if not (math.isfinite(rating.mu) and math.isfinite(rating.sigma) and rating.sigma > 0.0):
            raise FileFormatError(f"{what}: the rating of {name} is not a number with a spread")
    _check_covariance(state, what)
    for name, record in {**state.records, "gone": state.gone}.items():
        if min(*record.counts, record.recent_wins, record.recent_matches) < 0:
            raise FileFormatError(f"{what}: records: {name} has a count below 0")


def _check_covariance(state: LeagueState, what: str) -> None:
    count = 2 + len(state.ratings)
    size = 8 * count * (count + 1) // 2
    if not state.covariance:
        return
    if len(state.covariance) != size:
        raise FileFormatError(
            f"{what}: covariance: {len(state.covariance)} bytes, {count} ratings have {size}"
        )
    if not np.isfinite(np.frombuffer(state.covariance, "<f8")).all():
        raise FileFormatError(f"{what}: covariance: not all of it are numbers")
