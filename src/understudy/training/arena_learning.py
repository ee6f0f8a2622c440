"""Learning in the arena: iterations, what they come to, and the versions along the way.

A version holds all that a session goes on from: what the trainer learned, the stage of the course,
the league and who sits where. Matches in flight are lost when a session ends; whoever goes on
begins new ones, on other seeds.

The benchmark of a checkpoint: a policy that is still learning, frozen for a few matches.

It is called again and again with other weights. No columns are dropped as matches end, so that
every call runs the very same program, and only the first one compiles it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Self

from understudy.arena.arena import Arena, check
from understudy.arena.compiling import compiled_duel
from understudy.arena.results import Iteration, OpponentLatents
from understudy.core.config import Config
from understudy.core.errors import ConfigError, UnderstudyError
from understudy.core.opponents import SELF
from understudy.games import catalog
from understudy.games.base import Bot, Game
from understudy.games.moments import RewardSet
from understudy.league import state as league_files
from understudy.league.anchors import anchors_of
from understudy.league.curriculum import StageChange
from understudy.league.league import League
from understudy.league.ratings import ORIGIN, Rating
from understudy.learner.trainer import Trainer
from understudy.match.evaluate import judge
from understudy.match.players import BotPlayer, PolicyPlayer
from understudy.match.series import Engine
from understudy.match.tally import EvaluationReport
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork
from understudy.registry.run_folder import RunFolder
from understudy.supervise.budget import Budget
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.training.checkpoints import MATCHES, STEPS, Keeper, resume_point
from understudy.training.exploiter import NAME, exploited, victim_of
from understudy.training.iteration_events import (
    batch_trained,
    checkpoint_judged,
    evaluated,
    matches_trained,
    strategy_measured,
)
from understudy.training.position import TRAINING, Position, decode, encode, position_of
from understudy.training.snapshot_opponents import SnapshotOpponents
from understudy.training.stage_plan import StagePlan


def benchmark(
    game: Game,
    policy: Policy,
    bots: Mapping[str, Bot],
    *,
    matches: int,
    seed: int,
    engine: Engine,
) -> dict[str, EvaluationReport]:
    """`matches` against each bot with actions drawn as it plays, on seeds that nobody trains on."""
    opponents = {name: BotPlayer(bot) for name, bot in bots.items()}
    return judge(
        game,
        PolicyPlayer(policy, sampled=True),
        opponents,
        matches=matches,
        seed=seed,
        engine=engine,
        few=matches * len(bots),
    )


_ITERATIONS, _MET, _BENCHMARKED = "iterations", "met.", "benchmarked_at"
_BENCHMARK_SEED = 1_000_004
"""Not one that people judge with: nothing is to be chosen by the matches it is judged by later."""
_SHORT = 10
"""A run ends with a benchmark if it has trained for a tenth of the steps between two of them."""


def check_arena(
    game: str, options: Mapping[str, str], network: AnyNetwork, config: Config
) -> StagePlan:
    """What no arena can play is an error, before anything is written; else the course it takes."""
    if config.train.noise_steps != 1:
        raise ConfigError(
            "train.noise_steps: the arena draws every action anew; only Gymnasium and PettingZoo "
            f"environments read it, leave it at 1, got {config.train.noise_steps}"
        )
    rules = catalog.make(game, **options)
    course = StagePlan(game, config, tuple(catalog.bots(game, **options)))
    check(rules, config, meets_itself=course.meets_itself)
    network.init(None, len(rules.features), rules.actions.options)
    victim_of(game, config, network, options)
    return course


def check_resumed(folder: RunFolder, course: StagePlan) -> None:
    """A course that cannot go on from where the run is, is an error, before anything is written."""
    point = resume_point(folder)
    if point is not None:
        manifest = folder.versions.manifest(point.version)
        kept = position_of(folder.versions, manifest)
        course.resume(kept.course, steps=manifest.counters.get(STEPS, 0))


class ArenaLearning:
    """The arena of one session, and what is kept of it; use it under the learner's lock."""

    def __init__(
        self, folder: RunFolder, journal: Journal, game: str, options: Mapping[str, str]
    ) -> None:
        self._journal = journal
        self._metrics: dict[str, float] = {}
        self._opponent_latents: OpponentLatents | None = None
        self._news: list[events.Event] = []
        """What is found on the way in, told once somebody listens."""
        trainer = Trainer(folder.spec, folder.config.learner)
        self._keeper = Keeper(folder, journal, trainer)
        self.counters = dict(self._keeper.resume())
        self._bots = bots = catalog.bots(game, **options)
        self._monitor = folder.config.monitor
        self.course = StagePlan(game, folder.config, tuple(bots))
        # Matches that were in flight are not played again: the slots begin with other seeds.
        seed = folder.config.learner.seed * 1_000_003 + self.counters.get(_ITERATIONS, 0)
        self.arena = Arena(
            trainer,
            folder.config,
            catalog.make(game, **options),
            {name: bots[name] for name in self.course.bots},
            meets_itself=self.course.meets_itself,
            rewards=self.course.rewards,
            measures=RewardSet.of(catalog.measures(game)),
            kinds=self.course.kinds,
            seed=seed,
        )
        self.victim = victim_of(game, folder.config, folder.spec.network, options)
        league = League(
            folder.config.league,
            folder.root / league_files.FOLDER,
            folder.spec,
            self._anchors(game, options),
        )
        self.rivalry = SnapshotOpponents(
            league, self.arena, journal, seed=folder.config.learner.seed
        )
        self._take_up()

    def __enter__(self) -> Self:
        """Say that somebody learns here."""
        started = events.LearnerStarted(pid=os.getpid(), version=self.version, pending=0)
        self._journal.write(started)
        for news in self._news:
            self._journal.write(news)
        self._note_empty_pool()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Say that nobody does any more. What was learned is kept, whatever ended it."""
        try:
            if kind is None or issubclass(kind, UnderstudyError):
                self.commit()
        finally:
            reason = "done" if kind is None else f"ended by {kind.__name__}"
            self._journal.write(events.LearnerStopped(reason=reason, pending=0))

    @property
    def steps(self) -> int:
        """Trained on so far, by the whole run."""
        return self.counters.get(STEPS, 0)

    @property
    def version(self) -> int:
        """The newest one."""
        return self._keeper.version

    def iterate(self) -> Iteration | None:
        """One iteration, counted and told; None if it broke and a smaller step is tried instead."""
        began = time.monotonic()
        self.arena.order(self.course.mix, self.course.weights(self.steps))
        if self.victim is None:
            self.rivalry.seat()
        iteration = self._keeper.attempt(self.arena.iterate)
        if iteration is None:
            return None
        self._count(iteration)
        self._tell(iteration, seconds=time.monotonic() - began)
        self._follow(iteration)
        return iteration

    def begin(self, budget: Budget, share: float) -> None:
        """Take up the schedule where so much of the budget is spent already."""
        self._keeper.begin(budget)
        self._keeper.follow_schedule(share)

    def keep(self, iteration: Iteration, share: float) -> None:
        """Follow the schedule, and make a version where one is due (a benchmark makes its own)."""
        self._keeper.follow_schedule(share, kl=iteration.metrics["kl"])
        if self._keeper.due(self.steps) and not self.benchmark_due(last=share >= 1.0):
            self.commit()

    def commit(self) -> None:
        """What was learned becomes the next version, with everything that goes on from it."""
        position = Position(self.rivalry.seats(), self.course.state)
        league = self.rivalry.league
        extras = {
            league_files.FILE: league.encode(),
            TRAINING: encode(position),
        }
        if self._keeper.commit(self.counters, self._metrics, extras=extras):
            league.settled()

    def policy(self) -> Policy:
        """What was learned so far, ready to be judged."""
        return Policy(self.arena.trainer.spec, self.arena.trainer.weights(), self.version)

    def benchmark(self, engine: Engine) -> None:
        """Frozen matches of the present policy, made a version, against every scripted bot."""
        self.counters[_BENCHMARKED] = self.steps
        self.commit()
        began = time.monotonic()
        reports = benchmark(
            self.arena.plan.game,
            self.policy(),
            self._bots,
            matches=self._monitor.benchmark_matches,
            seed=_BENCHMARK_SEED,
            engine=engine,
        )
        seconds = time.monotonic() - began
        self._keeper.benchmarked(
            matches=sum(report.tally.matches for report in reports.values()),
            wins=sum(report.tally.wins for report in reports.values()),
        )
        self._journal.write(
            checkpoint_judged(reports, steps=self.steps, version=self.version, seconds=seconds)
        )

    def benchmark_due(self, *, last: bool) -> bool:
        """Whether it is time for one: every so many steps, and at the end of all but short runs."""
        since = self.steps - self.counters.get(_BENCHMARKED, 0)
        every = self._monitor.benchmark_steps
        return every > 0 and since >= (every / _SHORT if last else every)

    def exploited(self, engine: Engine) -> EvaluationReport | None:
        """What an exploiter wins of frozen matches against its victim; None for others."""
        if self.victim is None:
            return None
        report = exploited(self.victim, self.policy(), game=self.arena.plan.game, engine=engine)
        self._journal.write(evaluated(report, version=self.version, opponent=self.victim.agent))
        return report

    def _anchors(self, game: str, options: Mapping[str, str]) -> dict[str, Rating]:
        if self.victim:
            return {NAME: ORIGIN}
        if league_files.FILE in self._keeper.extras:  # it has its own, and keeps them
            return {}
        return anchors_of(game, options, engine=compiled_duel)

    def _take_up(self) -> None:
        """League, course and seats as the version that is gone on from has them."""
        extras = self._keeper.extras
        what = f"version {self._keeper.version}"
        if league_files.FILE in extras:
            gone = self.rivalry.league.restore(
                extras[league_files.FILE],
                what=f"{what}: {league_files.FILE}",
                newest=not self._keeper.rolled_back,
            )
            if gone:
                self._news.append(
                    events.Note(where="league", message=f"left since {what}: {', '.join(gone)}")
                )
        position = decode(extras.get(TRAINING), what=f"{what}: {TRAINING}")
        change = self.course.resume(position.course, steps=self.steps)
        if change is not None:
            self._news.append(_told(change))
        elif self.course.stage and position.course is None:
            self._news.append(
                events.StageChanged(
                    steps=self.steps, before="", after=self.course.stage, reason="the start"
                )
            )
        self.arena.order(self.course.mix, self.course.weights(self.steps))
        if self.victim is not None:
            self.rivalry.seat_alone(NAME, self.victim.policy.weights.params)
            return
        self.rivalry.restore(position.seats)

    def _follow(self, iteration: Iteration) -> None:
        """What the results of an iteration mean for the league and the course."""
        results = iteration.results
        self.rivalry.note(results, steps=self.steps)
        if self.victim is None:
            self.rivalry.offer_if_due(self.steps)
        counts = {name: one.counts for name, one in results.items()}
        change = self.course.note(counts, steps=self.steps)
        if change is not None:
            self._journal.write(_told(change))
            self._note_empty_pool()

    def _note_empty_pool(self) -> None:
        if self.course.mix.meets_itself and not self.rivalry.league.names and not self.victim:
            message = "no snapshot yet: until there is one, scripted bots are met in its place"
            self._journal.write(events.Note(where="league", message=message))

    def _count(self, iteration: Iteration) -> None:
        self._metrics = iteration.metrics
        grown = {_ITERATIONS: 1, STEPS: self.arena.steps_an_iteration, MATCHES: iteration.matches}
        for name, result in iteration.results.items():
            key = _MET + (name if name in self.arena.bots else SELF)
            grown[key] = grown.get(key, 0) + result.started
        for key, by in grown.items():
            self.counters[key] = self.counters.get(key, 0) + by

    def _tell(self, iteration: Iteration, *, seconds: float) -> None:
        self._journal.write(
            batch_trained(
                iteration,
                steps=self.arena.steps_an_iteration,
                seconds=seconds,
                learning_rate=self.arena.trainer.learning_rate,
                passes=self.arena.plan.config.epochs,
            )
        )
        self._journal.write(matches_trained(iteration, steps=self.steps, stage=self.course.stage))
        if iteration.opponent_latents is not None:
            told = strategy_measured(
                iteration.opponent_latents, self._opponent_latents, steps=self.steps
            )
            self._journal.write(told)
            self._opponent_latents = iteration.opponent_latents


def _told(change: StageChange) -> events.StageChanged:
    return events.StageChanged(
        steps=change.steps, before=change.before, after=change.after, reason=change.reason
    )
