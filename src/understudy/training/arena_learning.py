"""Learning in the arena: iterations, their results, and the versions along the way.

A version holds all that a later session resumes from: what the trainer learned, the stage of the
curriculum, the league, and which snapshot each group of the arena meets (`training.json`). Matches
in flight are lost when a session ends; the next session begins new ones, on other seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Self

import msgspec

from understudy.arena.arena import Arena, check
from understudy.arena.compiling import compiled_duel
from understudy.arena.devices import count_devices, used_words
from understudy.arena.results import Iteration, OpponentLatents
from understudy.core.config import Config
from understudy.core.errors import ConfigError
from understudy.core.opponents import GAME, SELF
from understudy.games import catalog
from understudy.games.base import Bot, Game
from understudy.games.moments import RewardSet
from understudy.league import state as league_files
from understudy.league.anchors import anchors_of
from understudy.league.league import League
from understudy.league.ratings import ORIGIN, Rating
from understudy.learner.trainer import Trainer
from understudy.match.evaluate import judge, judge_alone
from understudy.match.players import BotPlayer, PolicyPlayer
from understudy.match.series import Engine
from understudy.match.tally import EvaluationReport
from understudy.policy.policy import Policy
from understudy.policy.spec import AnyNetwork
from understudy.registry.checkpoints import MATCHES, STEPS, resume_version
from understudy.registry.run_folder import RunFolder
from understudy.supervise.interrupts import Interrupts
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.training.exploiter import NAME, exploited, victim_of
from understudy.training.learning import (
    Learning,
    batch_trained,
    checkpoint_judged,
    evaluated,
    matches_trained,
    stage_changed,
    strategy_measured,
)
from understudy.training.recording import RecordingWriter
from understudy.training.schedule import resume_training
from understudy.training.session import TrainProgress, TrainSession, TrainSummary
from understudy.training.snapshot_opponents import TRAINING, SnapshotOpponents, TrainingState
from understudy.training.stage_plan import StagePlan, scripted_opponents

_ITERATIONS, _MET, _BENCHMARKED = "iterations", "met.", "benchmarked_at"
_BENCHMARK_SEED = 1_000_004
"""Not a seed that people judge with: matches that choose a version must not judge it later."""
_SHORT = 10
"""A run ends with a benchmark if it has trained for a tenth of the steps between two of them."""


def check_arena(
    game: str,
    options: Mapping[str, str],
    network: AnyNetwork,
    config: Config,
    *,
    devices: int = 1,
) -> StagePlan:
    """The stage plan of these settings; an error where no arena can play them."""
    if config.train.noise_steps != 1:
        raise ConfigError(
            "train.noise_steps: the arena draws every action anew; only Gymnasium and PettingZoo "
            f"environments read it, leave it at 1, got {config.train.noise_steps}"
        )
    rules = catalog.make(game, **options)
    bots = scripted_opponents(game, options)
    if not bots and rules.players > 1:
        raise ConfigError(
            f"train: {game} has no scripted bots to begin with: offer some as BOTS in the game's "
            "module, or with --bots FILE"
        )
    stages = StagePlan(game, config, tuple(bots))
    check(rules, config, meets_itself=stages.meets_itself, devices=devices)
    network.init(None, len(rules.features), rules.actions.options)
    victim_of(game, config, network, options)
    return stages


def check_resumed(folder: RunFolder, stages: StagePlan) -> None:
    """An error where the run is at a stage that the plan cannot continue from."""
    manifest = resume_version(folder)
    if manifest is not None:
        kept = TrainingState.of(folder.versions, manifest)
        stages.resume(kept.curriculum, steps=manifest.counters.get(STEPS, 0))


class ArenaLearning(Learning[TrainProgress]):
    """The arena of one session, and what is kept of it; use it under the learner's lock."""

    def __init__(self, session: TrainSession, folder: RunFolder, journal: Journal) -> None:
        self.progress = TrainProgress(session)
        game, options = session.game, session.game_options
        self._recordings = RecordingWriter(folder, journal)
        self._journal = journal
        self._metrics: dict[str, float] = {}
        self._opponent_latents: OpponentLatents | None = None
        self._news: list[events.Event] = []
        """What a resume found, to be journalled when the session starts."""
        trainer = Trainer(folder.spec, folder.config.learner)
        self._checkpoints, self._schedule = resume_training(folder, journal, trainer)
        self.counters = dict(self._checkpoints.counters)
        self._bots = bots = scripted_opponents(game, options)
        self._monitor = folder.config.monitor
        self.stages = StagePlan(game, folder.config, tuple(bots))
        # Matches that were in flight are not played again: the columns begin with other seeds.
        seed = folder.config.learner.seed * 1_000_003 + self.counters.get(_ITERATIONS, 0)
        self.arena = Arena(
            trainer,
            folder.config,
            catalog.make(game, **options),
            {name: bots[name] for name in self.stages.bots if name in bots},
            meets_itself=self.stages.meets_itself,
            rewards=self.stages.rewards,
            measures=RewardSet.of(catalog.measures(game)),
            kinds=self.stages.kinds,
            seed=seed,
            devices=count_devices(session.devices),
        )
        used = used_words(self.arena.plan.devices)
        if used:
            self._news.append(events.Note(where="train", message=used))
        self.victim = victim_of(game, folder.config, folder.spec.network, options)
        league = League(
            folder.config.league,
            folder.root / league_files.FOLDER,
            folder.spec,
            self._anchors(game, options),
        )
        self.opponents = SnapshotOpponents(
            league, self.arena, journal, seed=folder.config.learner.seed
        )
        self._restore()
        self.progress.steps = self.progress.earlier = self.steps
        self.progress.version = self.version
        self._exploited: EvaluationReport | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        for news in self._news:
            self._journal.write(news)
        self._note_empty_pool()
        return self

    def journals(self) -> list[tuple[Journal, int]]:
        return [(self._journal, self.version)]

    @property
    def steps(self) -> int:
        """Of the whole run."""
        return self.counters.get(STEPS, 0)

    @property
    def version(self) -> int:
        return self._checkpoints.version

    def begin(self) -> None:
        self._schedule.begin(self.progress.session.budget)
        self._schedule.follow(self.progress.share)

    def iterate(self, stop: Callable[[], bool] = lambda: False) -> bool:
        progress, iteration = self.progress, self._iteration()
        if iteration is not None:
            progress.note(iteration, self.arena.steps_an_iteration)
            self._commit_if_due(iteration, progress.share)
            if self.benchmark_due(last=False):
                self.benchmark(compiled_duel)
            progress.version = self.version
            progress.stage = self.stages.stage
            progress.rating = None if self.arena.plan.alone else self.opponents.league.learner
        return True

    def finish(self, interrupts: Interrupts, show: Callable[[TrainProgress], None]) -> None:
        if self.benchmark_due(last=True) and not interrupts.asked:
            self.benchmark(compiled_duel)
            show(self.progress)
        self.commit()
        if not interrupts.asked:
            self._exploited = self.exploited(compiled_duel)

    def summary(self, code: int) -> TrainSummary:
        """The summary of the session."""
        progress, exploited = self.progress, self._exploited
        return TrainSummary.of(
            progress,
            code=code,
            version=self.version,
            game=progress.session.game,
            win_rates=progress.win_rates(),
            metrics=progress.metrics,
            stage=progress.stage,
            rating=progress.rating,
            snapshots=len(self.opponents.league.names),
            exploits=progress.session.config.league.exploits,
            exploited=exploited.tally if exploited else None,
        )

    def _iteration(self) -> Iteration | None:
        """One iteration; None if its numbers were not finite and smaller steps follow."""
        began = time.monotonic()
        self.arena.order(self.stages.mix, self.stages.weights(self.steps))
        if self.victim is None:
            self.opponents.assign()
        iteration = self._schedule.attempt(self.arena.iterate)
        recorded = self.arena.recorder.take()
        self._recordings.write(recorded, version=self.version, steps=self.steps)
        if iteration is None:
            return None
        self._count(iteration)
        self._journal_iteration(iteration, seconds=time.monotonic() - began)
        self._follow(iteration)
        return iteration

    def _commit_if_due(self, iteration: Iteration, share: float) -> None:
        """Follow the schedule, and make a version where one is due (a benchmark makes its own)."""
        self._schedule.follow(share, kl=iteration.metrics["kl"])
        if self._checkpoints.due(self.steps) and not self.benchmark_due(last=share >= 1.0):
            self.commit()

    def commit(self) -> None:
        """Make a version of what was learned, with all that a later session resumes from."""
        state = TrainingState(self.opponents.state(), self.stages.state)
        league = self.opponents.league
        extras = {
            league_files.FILE: league.encode(),
            TRAINING: msgspec.json.encode(state),
        }
        if self._checkpoints.save(self.arena.trainer, self.counters, self._metrics, extras=extras):
            league.delete_unlisted()

    def policy(self) -> Policy:
        """The policy as it is now."""
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
        self._checkpoints.add_benchmark(
            matches=sum(report.tally.matches for report in reports.values()),
            wins=sum(report.tally.wins for report in reports.values()),
        )
        self._journal.write(
            checkpoint_judged(reports, steps=self.steps, version=self.version, seconds=seconds)
        )

    def benchmark_due(self, *, last: bool) -> bool:
        """Whether to benchmark now: every so many steps, and at the end of all but short runs."""
        since = self.steps - self.counters.get(_BENCHMARKED, 0)
        every = self._monitor.benchmark_steps
        return every > 0 and since >= (every / _SHORT if last else every)

    def exploited(self, engine: Engine) -> EvaluationReport | None:
        """Frozen matches of an exploiter against its victim; None for other runs."""
        if self.victim is None:
            return None
        report = exploited(self.victim, self.policy(), game=self.arena.plan.game, engine=engine)
        self._journal.write(
            evaluated(report.tally, version=self.version, opponent=self.victim.agent)
        )
        return report

    def _anchors(self, game: str, options: Mapping[str, str]) -> dict[str, Rating]:
        if self.victim:
            return {NAME: ORIGIN}
        if league_files.FILE in self._checkpoints.extras:  # it has its own, and keeps them
            return {}
        if self.arena.plan.alone:
            return {GAME: ORIGIN}
        return anchors_of(game, options, engine=compiled_duel)

    def _restore(self) -> None:
        """League, stage and opponents as the version has them that the session resumes from."""
        extras = self._checkpoints.extras
        what = f"version {self._checkpoints.version}"
        left = self.opponents.restore_league(self._checkpoints)
        if left is not None:
            self._news.append(left)
        state = TrainingState.decode(extras.get(TRAINING), what=f"{what}: {TRAINING}")
        change = self.stages.resume(state.curriculum, steps=self.steps)
        if change is not None:
            self._news.append(stage_changed(change))
        elif self.stages.stage and state.curriculum is None:
            self._news.append(
                events.StageChanged(
                    steps=self.steps, before="", after=self.stages.stage, reason="the start"
                )
            )
        self.arena.order(self.stages.mix, self.stages.weights(self.steps))
        if self.victim is not None:
            self.opponents.assign_all(NAME, self.victim.policy.weights.params)
            return
        self.opponents.restore(state.opponents)

    def _follow(self, iteration: Iteration) -> None:
        """Give the results of an iteration to the league and to the curriculum."""
        results = iteration.results
        self.opponents.note(results, steps=self.steps)
        if self.victim is None:
            self.opponents.offer_if_due(self.steps)
        counts = {name: one.counts for name, one in results.items()}
        change = self.stages.note(counts, steps=self.steps)
        if change is not None:
            self._journal.write(stage_changed(change))
            self._note_empty_pool()

    def _note_empty_pool(self) -> None:
        if self.stages.mix.meets_itself and not self.opponents.league.names and not self.victim:
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

    def _journal_iteration(self, iteration: Iteration, *, seconds: float) -> None:
        self._journal.write(
            batch_trained(
                iteration,
                steps=self.arena.steps_an_iteration,
                seconds=seconds,
                learning_rate=self.arena.trainer.learning_rate,
                passes=self.arena.plan.config.epochs,
            )
        )
        self._journal.write(matches_trained(iteration, steps=self.steps, stage=self.stages.stage))
        if iteration.opponent_latents is not None:
            measured = strategy_measured(
                iteration.opponent_latents, self._opponent_latents, steps=self.steps
            )
            self._journal.write(measured)
            self._opponent_latents = iteration.opponent_latents


def benchmark(
    game: Game,
    policy: Policy,
    bots: Mapping[str, Bot],
    *,
    matches: int,
    seed: int,
    engine: Engine,
) -> dict[str, EvaluationReport]:
    """`matches` against each bot, with actions drawn, on seeds that training never uses; of a game
    of one player `matches` alone.

    No columns are dropped as matches end, so that every call runs the same compiled program with
    other weights.
    """
    player = PolicyPlayer(policy, sampled=True)
    if game.players == 1:
        return {GAME: judge_alone(game, player, matches=matches, seed=seed, engine=engine)}
    opponents = {name: BotPlayer(bot) for name, bot in bots.items()}
    return judge(
        game,
        player,
        opponents,
        matches=matches,
        seed=seed,
        engine=engine,
        few=matches * len(bots),
    )
