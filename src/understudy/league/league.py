"""The league of one run: snapshots kept, ratings and results noted, and who is met next.

All that it knows is in one `LeagueState`, so that `restore(encode())` goes on exactly as if nothing
had stopped. Files follow the state: a snapshot's file is there before the state lists it, and goes
only after a version that no longer lists it was committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from understudy.core.config import LeagueConfig
from understudy.core.errors import ConfigError, InputError, nearest
from understudy.core.opponents import name_of, steps_of
from understudy.league import state as states
from understudy.league.pool import Pool, Snapshot, leaver
from understudy.league.ratings import (
    ORIGIN,
    Counts,
    Joint,
    Rating,
    copied,
    grown,
    joined,
    observed,
    without,
)
from understudy.league.sampling import draw, expected_win_rate, probabilities
from understudy.league.state import LEARNER, TREND, LeagueState, OpponentResults
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights

DECAY = 0.5 ** (1.0 / 50.0)
"""Fifty iterations make recent results count half: the learner is another one by then. What fades
fades towards "not met", so that snapshots that were not met for long are met again."""

REMEMBERED = 64
"""How many snapshots that left are still rated: they may be in matches that are not over yet."""


@dataclass(frozen=True)
class SnapshotVerdict:
    """What became of a snapshot that was offered."""

    name: str
    kept: bool
    why: str
    left: tuple[str, ...] = ()
    """Those that made room: one, or more where `max_saved` was lowered."""


class League:
    """Holds no weights; use it under the learner's lock."""

    def __init__(
        self,
        config: LeagueConfig,
        folder: Path,
        spec: PolicySpec,
        anchors: Mapping[str, Rating],
    ) -> None:
        """`folder` is where the snapshots lie; `anchors` are the ratings that never move."""
        self._config = config
        self._pool = Pool(folder, spec)
        self._state = LeagueState(anchors=dict(anchors))
        self._joint = Joint.of({LEARNER: self._state.learner, TREND: self._state.trend})
        self._written: set[str] = set()

    @property
    def names(self) -> list[str]:
        """The snapshots in the pool, oldest first."""
        return [snapshot.name for snapshot in self._state.pool]

    @property
    def learner(self) -> Rating:
        """How strong the learner is."""
        return self._state.learner

    def rating(self, name: str) -> Rating:
        """How strong a player is; one that was never met may have any strength."""
        state = self._state
        if name == LEARNER:
            return state.learner
        return state.anchors.get(name) or state.ratings.get(name) or Rating()

    def win_rate(self, name: str) -> float:
        """The learner's recent share of wins against an opponent; 0.5 where they never met."""
        record = self._state.records.get(name, OpponentResults())
        return expected_win_rate(record.recent_wins, record.recent_matches)

    def due(self, steps: int) -> bool:
        """Whether a snapshot should be offered after so many steps."""
        return steps - self._state.offered_at >= self._config.save_freq

    def offer(self, steps: int, weights: Weights) -> SnapshotVerdict:
        """Keep the learner's weights as a snapshot, if the mode of the league wants them."""
        state, name = self._state, name_of(steps)
        if state.pool and steps <= state.pool[-1].steps:
            raise InputError(f"{name}: the pool has {state.pool[-1].name} already, which is as new")
        state.offered_at = steps
        best = max(state.pool, key=lambda one: state.ratings[one.name].floor, default=None)
        if self._config.mode == "selective" and best is not None:
            above = state.ratings[best.name]
            # By what is sure of both: else the luck of a first snapshot would shut out all others.
            if state.learner.floor <= above.floor:
                why = f"rated {state.learner}, not surely above {best.name} with {above}"
                return SnapshotVerdict(name, kept=False, why=why)
        snapshot = self._pool.save(steps, weights)
        state.pool.append(snapshot)
        self._joint = copied(self._joint, LEARNER, name)
        state.ratings[name] = state.learner
        left = self._make_room()
        why = f"rated {state.learner}, {len(state.pool)} of {self._config.max_saved} kept"
        return SnapshotVerdict(name, kept=True, why=why, left=left)

    def note(self, results: Mapping[str, Counts]) -> None:
        """One iteration's results of the learner: wins, draws and losses by opponent."""
        for name, counts in results.items():
            if min(counts) < 0:
                raise InputError(f"results against {name}: expected 0 or more, got {counts}")
        state = self._state
        state.iterations += 1
        records = {name: record.faded(DECAY) for name, record in state.records.items()}
        met = {}
        for name, counts in results.items():
            if steps_of(name) is not None and name not in state.ratings:
                state.gone = state.gone.plus(*counts)  # left so long ago that nothing is known
            elif any(counts):
                records[name] = records.get(name, OpponentResults()).plus(*counts)
                met[LEARNER, name] = counts
        state.records = records
        known = {*state.anchors, *state.ratings}
        joint = joined(self._joint, {name: Rating() for _, name in met if name not in known})
        joint = observed(grown(joint, LEARNER, TREND), met, fixed=state.anchors)
        gone = self._forgotten()
        self._joint = without(joint, gone) if gone else joint
        states.set_ratings(state, self._joint)

    def draw(self, uniform: float) -> str | None:
        """The snapshot to meet for a number in [0, 1); None while there is none."""
        config, names = self._config, self.names
        if not names:
            return None
        shares = probabilities(
            config.sampler,
            [self.win_rate(name) for name in names],
            recent=config.recent,
            recent_share=config.recent_share,
            power=config.power,
        )
        return names[draw(shares, uniform)]

    def weights(self, name: str) -> Weights:
        """A snapshot of the pool, checked."""
        return self._pool.load(listed(self._state, name))

    def encode(self) -> bytes:
        """`league.json` of the version that is about to be committed."""
        self._written = set(self.names)
        states.set_covariance(self._state, self._joint)
        return states.encode(self._state)

    def restore(self, data: bytes, *, what: str = states.FILE, newest: bool = True) -> list[str]:
        """Go on from what `encode` gave; its anchors are kept, whatever they would be today (an
        anchor alone is the origin, which older programs did not write).

        Files are kept for the newest version alone: a snapshot that is missing there is an error,
        while a person who goes back to an older one goes on without those that left since. Returns
        their names.
        """
        state = states.decode(data, what=what)
        lost = [] if newest else self._pool.lost(state.pool)
        state.pool = [snapshot for snapshot in state.pool if snapshot.name not in lost]
        state.left += lost
        if len(state.anchors) == 1:
            state.anchors = dict.fromkeys(state.anchors, ORIGIN)
        self._pool.check(state.pool)
        self._joint = states.joint_of(state)
        self._state, self._written = state, {snapshot.name for snapshot in state.pool}
        return lost

    def delete_unlisted(self) -> list[str]:
        """Delete the files of snapshots that neither the pool nor the last `encode` lists.

        Call it after a version with that encoding was committed. Returns the names deleted.
        """
        return self._pool.sweep(self._written | set(self.names))

    def _make_room(self) -> tuple[str, ...]:
        """The snapshots that leave a pool that has too many."""
        pool, out = self._state.pool, []
        while len(pool) > self._config.max_saved:
            out.append(pool.pop(leaver([snapshot.steps for snapshot in pool])).name)
        self._state.left += out
        return tuple(out)

    def _forgotten(self) -> set[str]:
        """Snapshots that left long ago stay in the totals alone: memory is bounded."""
        state, names = self._state, set()
        while len(state.left) > REMEMBERED:
            name = state.left.pop(0)
            names.add(name)
            state.gone = state.gone.plus(*state.records.pop(name, OpponentResults()).counts)
        return names


def listed(state: LeagueState, name: str) -> Snapshot:
    """The snapshot of that name; `ConfigError` where the pool has none such."""
    known = {snapshot.name: snapshot for snapshot in state.pool}
    if name not in known:
        some = f"{state.pool[0].name} to {state.pool[-1].name}" if known else "none yet"
        raise ConfigError(f"the league has no snapshot {name!r} ({some}).{nearest(name, known)}")
    return known[name]
