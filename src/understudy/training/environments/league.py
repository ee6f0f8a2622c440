"""The league of a session in an environment: the league, curriculum and ratings of the arena.

Matches are zero-sum and have two sides: the learner plays one, an opponent the other. Which one is
met in a match that begins is drawn from the mix of the stage; a match in flight keeps its opponent,
so that a snapshot is replaced at once, and nothing waits.

`random` is where the ratings begin (1000), or the first opponent where it is not met. Other bots
are rated as snapshots are, by the learner's results against them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from understudy.adapters.environments.sides import RANDOM
from understudy.arena.mix import Mix, Share
from understudy.arena.results import EndedMatch, Iteration, Result
from understudy.core.config import Config
from understudy.league import state as league_files
from understudy.league.league import League
from understudy.league.ratings import ORIGIN, Counts, Rating
from understudy.league.snapshot_groups import SnapshotGroups
from understudy.policy.layers import Params
from understudy.policy.weights import Weights
from understudy.registry.checkpoints import Checkpoints
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.training.learning import stage_changed
from understudy.training.snapshot_opponents import TRAINING, SnapshotOpponents, TrainingState
from understudy.training.stage_plan import StagePlan
from understudy.workers.rollout import ColumnMatch, OpponentOrder


def stages_of(config: Config, bots: Sequence[str]) -> StagePlan:
    """The stage plan of a league in an environment; an error where an opponent is not known."""
    return StagePlan(None, config, (RANDOM, *bots))


class EnvironmentLeague:
    """League, curriculum and opponents of one session; use it under the learner's lock."""

    def __init__(
        self,
        folder: RunFolder,
        journal: Journal,
        checkpoints: Checkpoints,
        *,
        bots: Sequence[str],
        weights: Callable[[], Weights],
        steps: int,
    ) -> None:
        """`weights` gives what the learner has learned by now; `steps` are those of the run."""
        config = folder.config
        self._games = config.train.games
        self._journal = journal
        self.weights = weights
        self.stages = stages_of(config, bots)
        self.meets_itself = self.stages.meets_itself
        self.groups = min(config.train.groups, self._games) if self.meets_itself else 1
        self.snapshots: SnapshotGroups[Params] = SnapshotGroups(
            self.groups, stint=config.league.stint * max(self._games // self.groups, 1)
        )
        self.share = Share()
        met = self.stages.bots
        self.anchor = RANDOM if RANDOM in met else met[0]
        """Where the ratings of the run begin."""
        league = League(
            config.league,
            folder.root / league_files.FOLDER,
            folder.spec,
            {self.anchor: ORIGIN},
        )
        self.opponents = SnapshotOpponents(league, self, journal, seed=config.learner.seed)
        self._mix: Mix | None = None
        self._loaded: dict[str, Weights] = {}
        self.news: list[events.Event] = self._restore(checkpoints, steps)
        """What a resume found, to be journalled when the session starts."""

    @property
    def rating(self) -> Rating:
        """Of the learner."""
        return self.opponents.league.learner

    @property
    def mix(self) -> Mix:
        """Whom matches that begin now are against."""
        mix = self.stages.mix.among(self.stages.bots, with_self=self.meets_itself)
        if self._mix is not None and mix != self._mix:
            self.share = Share()
        self._mix = mix
        return mix

    def order(self) -> tuple[OpponentOrder, dict[str, Weights]]:
        """Who is met in the next segment, and the weights of the snapshots among them."""
        self.opponents.assign()
        nothing = np.zeros(self.groups, np.int32)
        mix = self.mix
        if mix.own_share:
            self.snapshots.settle(nothing)
        else:
            self.snapshots.leave(nothing)
        free = self.snapshots.free
        own = self.share.owed(mix.own_share, ahead=self._games) if free.any() else 0.0
        order = OpponentOrder(
            names=mix.names,
            bounds=tuple(tuple(mix.bounds(own if one else 0.0).tolist()) for one in free),
            met=tuple(self.snapshots.met),
            kinds=self.stages.kinds if self.meets_itself else self.stages.kinds[:-1],
        )
        return order, self._weights_of({name for name in self.snapshots.met if name})

    def note(
        self,
        metrics: dict[str, float],
        finished: Sequence[ColumnMatch],
        started: Sequence[tuple[int, str]],
        *,
        steps: int,
    ) -> Iteration:
        """Give the results of a segment to the league and to the curriculum; `steps` of the run are
        played by now."""
        iteration = Iteration(metrics, results_of(finished, started), _ended(finished), 0.0, None)
        self._count(started)
        self.opponents.note(iteration.results, steps=steps)
        self.opponents.offer_if_due(steps)
        counts: Mapping[str, Counts] = {name: one.counts for name, one in iteration.results.items()}
        change = self.stages.note(counts, steps=steps)
        if change is not None:
            self._journal.write(stage_changed(change))
            self.note_empty_pool()
        return iteration

    def note_empty_pool(self) -> None:
        """Say that snapshots are wanted and there is none yet."""
        if self.stages.mix.meets_itself and not self.opponents.league.names:
            message = "no snapshot yet: until there is one, scripted opponents are met in its place"
            self._journal.write(events.Note(where="league", message=message))

    def extras(self) -> dict[str, bytes]:
        """Files of the version that is about to be committed."""
        state = TrainingState(self.opponents.state(), self.stages.state)
        return {
            league_files.FILE: self.opponents.league.encode(),
            TRAINING: msgspec.json.encode(state),
        }

    def committed(self) -> None:
        """A version with `extras` is there."""
        self.opponents.league.delete_unlisted()

    def _restore(self, checkpoints: Checkpoints, steps: int) -> list[events.Event]:
        news: list[events.Event] = []
        left = self.opponents.restore_league(checkpoints)
        if left is not None:
            news.append(left)
        what = f"version {checkpoints.version}: {TRAINING}"
        state = TrainingState.decode(checkpoints.extras.get(TRAINING), what=what)
        change = self.stages.resume(state.curriculum, steps=steps)
        if change is not None:
            news.append(stage_changed(change))
        elif self.stages.stage and state.curriculum is None:
            news.append(
                events.StageChanged(
                    steps=steps, before="", after=self.stages.stage, reason="the start"
                )
            )
        self.opponents.restore(state.opponents)
        return news

    def _count(self, started: Sequence[tuple[int, str]]) -> None:
        """Count matches that began, for the share of snapshots and for their stints."""
        begun = np.zeros(self.groups, np.int64)
        for number, name in started:
            if name not in self.stages.bots:
                begun[number * self.groups // self._games] += 1
        if self.snapshots.free.any() and self.mix.own_share:
            self.share = self.share.after(len(started), int(begun.sum()))
        self.snapshots.note(begun)

    def _weights_of(self, names: set[str]) -> dict[str, Weights]:
        """Of snapshots that are met; each file is read once."""
        league = self.opponents.league
        self._loaded = {
            name: self._loaded[name] if name in self._loaded else league.weights(name)
            for name in sorted(names)
        }
        return self._loaded


def results_of(
    finished: Sequence[ColumnMatch], started: Sequence[tuple[int, str]]
) -> dict[str, Result]:
    """What a segment came to, by opponent."""
    results: dict[str, Result] = {}

    def add(name: str, **counts: float) -> None:
        none = Result(0, 0, 0, 0, 0, 0.0, {}, {})
        results[name] = results.get(name, none) + dataclasses.replace(none, **counts)  # type: ignore[arg-type]

    for _, name in started:
        add(name, started=1)
    for one in finished:
        score = score_of(one)
        add(
            one.opponent,
            wins=int(score > 0),
            draws=int(score == 0),
            losses=int(score < 0),
            frames=one.finished.steps,
            returns=one.finished.sides[one.side],
        )
    return results


def score_of(match: ColumnMatch) -> int:
    """+1, 0 or -1: whether the policy's side had more reward than the best of the others."""
    sides, side = match.finished.sides, match.side
    others = sides[:side] + sides[side + 1 :]
    return int(np.sign(round(sides[side] - max(others), 9))) if others else 0


def _ended(finished: Sequence[ColumnMatch]) -> list[EndedMatch]:
    return [
        EndedMatch(one.opponent, score_of(one), one.finished.steps, one.finished.sides[one.side])
        for one in finished
    ]
