"""Learning in environments: play a segment with NumPy, learn from it with JAX, and again.

With a league the policy plays one side of each match and its opponents the other; only the policy's
decisions are columns of the batch, and the update is the same.

Matches in flight are lost when a session ends; the next session begins new ones, on other seeds.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from understudy.adapters.environments.bots import load_bots
from understudy.adapters.environments.parallel import Finished
from understudy.core.arrays import NDArray
from understudy.core.clock import SystemClock
from understudy.core.dependencies import needs_learner
from understudy.core.errors import ConfigError
from understudy.core.user_code import CodeSource, load_module
from understudy.experience.episode import returns_of
from understudy.policy import weights as weight_files
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.registry.checkpoints import MATCHES, STEPS
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS
from understudy.supervise.interrupts import Interrupts
from understudy.telemetry import events
from understudy.telemetry.events import ENVIRONMENT
from understudy.telemetry.journal import Journal
from understudy.telemetry.status import Folders
from understudy.telemetry.summary import status_fold
from understudy.telemetry.training_log import LOG, TrainingLog
from understudy.training.environments.evaluation import evaluate_environment
from understudy.training.environments.league import EnvironmentLeague
from understudy.training.environments.session import (
    EnvironmentProgress,
    EnvironmentSession,
    EnvironmentSummary,
    Evaluation,
    EvaluationProgress,
    mean_sides,
    zero_sum,
)
from understudy.training.environments.spotting import check_league, facts_of, not_zero_sum
from understudy.training.learning import Learning, matches_trained
from understudy.training.monitoring import Monitoring
from understudy.workers.plan import RolloutPlan
from understudy.workers.players import (
    AheadPlayers,
    EnvironmentPlayers,
    LocalPlayers,
    PlayWork,
    WorkerPlayers,
    WorkersReport,
)
from understudy.workers.pool import worker_pool
from understudy.workers.pooled_series import PooledSeries
from understudy.workers.rollout import Played

if TYPE_CHECKING:
    from understudy.learner.maths.segments import Segments
    from understudy.learner.trainer import Trainer

_WHERE = "training"
_JUDGED = 20
"""Iterations after which workers are judged."""
_LITTLE = 0.5
"""The share of playing in an iteration, or of a worker's playing in a segment, that is too small
for workers to pay."""
_ENOUGH = 32
"""Matches that end alike before it is reported: random play may need a few to find a goal."""


class EnvironmentLearning(Learning[EnvironmentProgress]):
    """The environments and the trainer of one session; use it under the learner's lock."""

    shows_start = False

    def __init__(
        self,
        session: EnvironmentSession,
        make: Callable[[], Any],
        folder: RunFolder,
        *,
        show_evaluation: Callable[[EvaluationProgress], None],
    ) -> None:
        with needs_learner():
            from understudy.learner.trainer import Trainer
            from understudy.training.schedule import resume_training
        self._config = session.config
        self._folder = folder
        self._make = make
        self._show_evaluation = show_evaluation
        self._evaluation: Evaluation | None = None
        self._trainer = Trainer(
            folder.spec, self._config.learner, bounds=self._config.features.bounds
        )
        past = status_fold(folder.journal)
        differed = past.status(Folders()).matches_differ
        log = TrainingLog(folder.logs / LOG, past=past)
        self._journal = Journal(folder.journal, "train", folder.clock, also=log.add)
        self._checkpoints, self._schedule = resume_training(folder, self._journal, self._trainer)
        counters = self._checkpoints.counters
        self._fresh = not counters
        steps = counters.get(STEPS, 0)
        self.progress = EnvironmentProgress(
            session,
            steps=steps,
            earlier=steps,
            matches=counters.get(MATCHES, 0),
            updates=counters.get("updates", 0),
            version=self._checkpoints.version,
        )
        facts = facts_of(make, folder.spec.features)
        self.progress.agents = facts.agents
        self._endings = Endings(differed=differed, noise_steps=session.config.train.noise_steps)
        self._since: list[Finished] = []
        """Matches that ended since the last version."""
        self._first_sides: tuple[float, ...] | None = None
        """The rewards of the first match of the session."""
        self.league: EnvironmentLeague | None = None
        if session.league:
            self.league = EnvironmentLeague(
                folder,
                self._journal,
                self._checkpoints,
                bots=tuple(load_bots(session.bots)),
                weights=self._trainer.weights,
                steps=steps,
            )
            self.progress.stage = self.league.stages.stage
            self.progress.rating = self.league.rating
        plan = RolloutPlan(
            environment=session.environment,
            options=dict(session.options),
            spec=folder.spec,
            games=session.config.train.games,
            sides=session.league or facts.aec,
            bots=session.bots,
            noise_steps=session.config.train.noise_steps,
            seed=session.config.learner.seed,
            # Other seeds than before a resume: those matches were learned from already.
            start=steps,
        )
        self._workers = self._worker_players(plan) if session.workers else None
        self._players: EnvironmentPlayers = self._workers or LocalPlayers(plan, make=make)
        self._learning_s: deque[float] = deque(maxlen=_JUDGED)
        self._judged_workers = False
        self._steps_s = 0.0
        self._cpu = time.process_time()

    def journals(self) -> list[tuple[Journal, int]]:
        return [(self._journal, self._checkpoints.version)]

    def __enter__(self) -> Self:
        super().__enter__()
        if self.league is not None:
            for news in self.league.news:
                self._journal.write(news)
            self.league.note_empty_pool()
        return self

    def monitored(self) -> contextlib.closing[Monitoring]:
        """Tables and curves of the session, until they are closed."""
        config, clock = self._config.monitor, self._folder.clock
        monitoring = Monitoring(self._folder, config, at_steps=self.progress.steps, clock=clock)
        self._journal.follow(monitoring.add)
        self._journal.follow(self.progress.hear)
        return contextlib.closing(monitoring)

    def policy(self) -> Policy:
        """The policy as it is now."""
        return Policy(self._trainer.spec, self._trainer.weights(), self._checkpoints.version)

    def begin(self) -> None:
        self._schedule.begin(self.progress.session.budget)
        self._schedule.follow(self.progress.share)

    def iterate(self, stop: Callable[[], bool]) -> bool:
        progress, steps = self.progress, self._config.train.segment
        # The values of an untrained policy say nothing about what follows a truncation.
        gamma = 0.0 if self._fresh else self._config.learner.gamma
        work = PlayWork(self.policy(), steps, gamma, ahead=not self._fresh)
        if self.league is not None:
            order, snapshots = self.league.order()
            work = work._replace(order=order, snapshots=snapshots)
        played = self._players.play(work, stop=stop)
        if played is None:
            return False
        began = time.monotonic()
        segments = _segments_of(played)
        finished = self._noted(played)
        progress.steps += int(segments.valid.sum())
        self._note_endings(finished)
        if self._fresh:
            fit_first_segment(self._trainer, segments, self._config.learner.gamma)
            self._fresh = False
        else:
            self._learn(segments, finished, lag=played.lag)
        self._journal_matches(played, finished)
        if self._workers is not None:
            self._note_workers(self._workers, time.monotonic() - began)
        if self._checkpoints.due(progress.steps):
            self.commit()
        return True

    def commit(self) -> None:
        progress = self.progress
        if progress.updates:
            counters = {
                "steps": progress.steps,
                "matches": progress.matches,
                "updates": progress.updates,
            }
            metrics = dict(progress.metrics)
            # Of a zero-sum match the mean of both sides is 0, whatever was learned.
            if progress.recent and not zero_sum(progress.recent):
                self._checkpoints.add_returns([match.reward for match in self._since])
                metrics["reward"] = progress.reward
            self._since.clear()
            extras = self.league.extras() if self.league else None
            saved = self._checkpoints.save(self._trainer, counters, metrics, extras=extras)
            if saved and self.league is not None:
                self.league.committed()
            progress.version = self._checkpoints.version

    def finish(self, interrupts: Interrupts, show: Callable[[EnvironmentProgress], None]) -> None:
        self.commit()
        self._steps_s = self.progress.steps_s
        if self.progress.session.evaluate and not interrupts.asked:
            interrupts.gentle = False
            # What was learned is kept already: Ctrl-C cuts only the evaluation short.
            with contextlib.suppress(KeyboardInterrupt):
                self._evaluation = evaluate_environment(
                    self.progress.session,
                    self.policy(),
                    self._folder,
                    self._make,
                    series=PooledSeries(self._workers.pool) if self._workers else None,
                    show=self._show_evaluation,
                )
                self._journal_evaluation(self._evaluation)

    def keep(self) -> None:
        """Nothing: `finish` commits, and a start that fails must leave no version behind."""

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._players.close()
        super().__exit__(kind, *rest)

    def _stopped(self, kind: type[BaseException] | None) -> events.LearnerStopped:
        return events.LearnerStopped(
            reason="stopped" if kind is None else "failed",
            pending=0,
            cpu_s=time.process_time() - self._cpu,
            wall_s=self.progress.elapsed_s,
        )

    def summary(self, code: int) -> EnvironmentSummary:
        """The summary of the session."""
        progress = self.progress
        return EnvironmentSummary(
            code=code,
            run=str(progress.session.run),
            version=progress.version,
            steps=progress.steps,
            matches=progress.matches,
            updates=progress.updates,
            steps_s=self._steps_s,
            evaluation=self._evaluation,
            problem=progress.problem,
            win_rates=progress.win_rates(),
            stage=progress.stage,
            rating=progress.rating,
            anchor=self.league.anchor if self.league else "",
            snapshots=len(self.league.opponents.league.names) if self.league else 0,
            workers=progress.workers,
        )

    def _journal_evaluation(self, evaluation: Evaluation) -> None:
        tallies = {
            name: events.OpponentTally(one.wins, one.draws, one.losses)
            for name, one in evaluation.opponents.items()
        }
        self._journal.write(
            events.CheckpointJudged(
                steps=self.progress.steps,
                version=evaluation.version,
                seconds=evaluation.seconds,
                opponents=tallies,
                matches=len(evaluation.matches),
                reward=evaluation.reward,
                sides=evaluation.sides,
            )
        )

    def _noted(self, played: Played) -> list[Finished]:
        """The matches that ended, counted."""
        finished = []
        for _, one, _, _ in played.finished:
            if self._first_sides is None:
                self._first_sides = one.sides
            finished.append(one._replace(alike=one.alike and one.sides == self._first_sides))
        if self.league is not None and self._config.train.zero_sum == "detect":
            odd = [one for one in finished if not zero_sum([one])]
            if odd:
                raise not_zero_sum(self.progress.session.environment, odd[0])
        progress = self.progress
        progress.recent.extend(finished)
        progress.matches += len(finished)
        self._since += finished
        return finished

    def _worker_players(self, plan: RolloutPlan) -> WorkerPlayers:
        session = self.progress.session
        pool = worker_pool(
            min(session.workers, plan.games),
            ray=session.ray,
            errors=self._folder.logs / "workers.err",
            problem=self._problem,
        )
        kind = AheadPlayers if session.config.train.asynchronous else WorkerPlayers
        return kind(plan, pool, note=self.progress.news.append)

    def _note_workers(self, players: WorkerPlayers, learning_s: float) -> None:
        """Show how the workers do; say once where they do not pay."""
        progress = self.progress
        progress.workers = players.report()
        if progress.updates > 1:  # the first one compiled
            self._learning_s.append(learning_s)
        if len(self._learning_s) == _JUDGED and not self._judged_workers:
            self._judged_workers = True
            words = do_not_pay(progress.workers, float(np.mean(self._learning_s)))
            if words:
                self._journal.write(events.Note(where=_WHERE, message=words))
                if self.league is None:  # else it hears of it by the journal
                    progress.news.append(words)

    def _problem(self, message: str) -> None:
        self._journal.write(events.Problem(where=_WHERE, message=message))
        if self.league is None:  # else it hears of it by the journal
            self.progress.news.append(message)

    def _note_endings(self, finished: list[Finished]) -> None:
        event = self._endings.add(finished, steps=self.progress.steps)
        if event is not None:
            self._journal.write(event)
            if self.league is None:  # else it hears of it by the journal
                self.progress.news.append(event.message)
            self.progress.problem = event.message if isinstance(event, events.Problem) else ""

    def _learn(self, segments: Segments, finished: list[Finished], *, lag: NDArray | None) -> None:
        from understudy.learner.hardware import as_numpy, float32_products
        from understudy.learner.maths.segments import improve

        config, trainer = as_numpy(self._config.learner), self._trainer
        began = time.monotonic()
        with float32_products():
            state, report, return_square = improve(
                trainer.spec, config, trainer.state, trainer.fixed_inputs, segments
            )
        metrics: dict[str, Any] | None = self._schedule.attempt(
            lambda: trainer.accept(state, report)
        )
        if metrics is None:
            return
        trainer.absorb(seen(segments), return_square=float(return_square))
        rate = self._schedule.follow(self.progress.share, kl=metrics["kl"])
        self.progress.updates += 1
        self.progress.metrics = metrics
        self._journal.write(
            events.BatchTrained(
                matches=len(finished),
                replayed=0,
                steps=int(segments.valid.sum()),
                seconds=time.monotonic() - began,
                learning_rate=rate,
                samples_per_insert=float(self._config.learner.epochs),
                version_lag=_lag_counts(segments, lag),
                **metrics,
            )
        )

    def _journal_matches(self, played: Played, finished: list[Finished]) -> None:
        progress = self.progress
        if self.league is not None:
            iteration = self.league.note(
                dict(progress.metrics), played.finished, played.started, steps=progress.steps
            )
            progress.meet(iteration)
            # Before what the league made of it: `stage` is that of the matches.
            self._journal.write(
                matches_trained(iteration, steps=progress.steps, stage=progress.stage)
            )
            progress.stage, progress.rating = self.league.stages.stage, self.league.rating
            return
        mean = {ENVIRONMENT: float(np.mean([m.reward for m in finished]))} if finished else {}
        self._journal.write(
            events.MatchesTrained(
                steps=self.progress.steps,
                results={},
                returns=mean,
                matches=len(finished),
                total_matches=self.progress.matches,
                sides=mean_sides(self.progress.agents, finished),
                alike=sum(match.alike for match in finished),
            )
        )


def fit_first_segment(trainer: Trainer, segments: Segments, gamma: float) -> None:
    """Fit the normaliser, the return scale and the critic's bias to the first segment of a run.

    The critic begins with the same value for every state. If that value is far from the usual
    return, the critic first moves further where features are large, and the policy avoids (or
    seeks) those states before it found anything there. Acrobot stayed at -500 on five seeds of
    five; with this it is between -88 and -116 after 100,000 steps on four of the same five.
    """
    level = usual_return(segments, gamma)
    discounts = np.float32(gamma) * segments.ongoing
    returns = returns_of(segments.rewards, discounts, later=level)[segments.valid > 0]
    trainer.absorb(seen(segments), return_square=float(np.square(returns).mean()))
    weights = trainer.weights()
    params = {
        name: np.zeros_like(value) if name.startswith("value.") else value
        for name, value in weights.params.items()
    }
    params["value.b"] = params["value.b"] + np.float32(level) / weights.value_scale
    levelled = weight_files.encode(replace(weights, params=params))
    trainer.restore({**trainer.snapshot(), WEIGHTS: levelled}, what="the first segment")


def _lag_counts(segments: Segments, lag: NDArray | None) -> dict[str, int]:
    """How many decisions were so many updates old; nothing where none can be."""
    if lag is None:
        return {}
    counted = np.asarray(segments.valid).sum(0)
    return {str(age): int(counted[lag == age].sum()) for age in np.unique(lag)}


def seen(segments: Segments) -> NDArray:
    """The observations [N, F] that count."""
    counted: NDArray = segments.obs[segments.valid > 0]
    return counted


def usual_return(segments: Segments, gamma: float) -> float:
    """The constant value that satisfies v = mean reward + gamma * share ongoing * v."""
    counted = segments.valid > 0
    ends = 1.0 - gamma * float(segments.ongoing[counted].mean())
    return float(segments.rewards[counted].mean()) / max(ends, 1.0 / len(segments.rewards))


class Endings:
    """Detects a run in which nothing can be learned: a time limit ends every match, with the same
    rewards in all of them. One match that differs, in any session, is enough to learn from."""

    def __init__(self, *, differed: bool, noise_steps: int) -> None:
        """`differed`: whether a match of an earlier session did."""
        self._differed = differed
        self._noise_steps = noise_steps
        self._alike = 0
        self._said = False

    def add(
        self, finished: Sequence[Finished], *, steps: int
    ) -> events.Problem | events.Note | None:
        """Add matches that ended after `steps` of the run; an event where one is due, each once."""
        if self._differed or not finished:
            return None
        if not all(match.alike for match in finished):
            self._differed = True
            message = f"the first match that did not end like all before it: after {steps:,} steps"
            return events.Note(where=_WHERE, message=message) if self._said else None
        self._alike += len(finished)
        if self._said or self._alike < _ENOUGH:
            return None
        self._said = True
        advice = (
            "explore further: --set train.noise_steps=16"
            if self._noise_steps == 1
            else "try another --seed, another train.noise_steps or more train.games"
        )
        message = (
            f"no match ended by a goal: the time limit ended all {self._alike} of this session, "
            f"each with the reward {finished[0].reward:g}, so nothing can be learned yet; {advice}"
        )
        return events.Problem(where=_WHERE, message=message)


def do_not_pay(workers: WorkersReport, learning_s: float) -> str:
    """Why more workers make a session no faster, in words; empty: they may."""
    whole = workers.wait_s + learning_s
    share = workers.wait_s / max(whole, 1e-9)
    if share < _LITTLE:
        return (
            f"workers do not pay: playing takes {share:.0%} of an iteration ({workers.wait_s:.2f} "
            f"of {whole:.2f} s), the learner the rest; fewer workers would do"
        )
    if workers.busy < _LITTLE:
        return (
            f"workers do not pay: they play {workers.busy:.0%} of the time that a segment takes, "
            "and else wait for each other or for what travels; fewer workers, more train.games or "
            "a longer train.segment would do"
        )
    return ""


def _segments_of(played: Played) -> Segments:
    """What follows a segment is needed only where older weights played it."""
    from understudy.learner.maths.segments import Segments

    arrays = dict(played.arrays)
    if played.lag is None or not played.lag.any():
        del arrays["next_obs"], arrays["next_first"]
    return Segments(**arrays, memory=played.memory)


def open_folder(session: EnvironmentSession, make: Callable[[], Any]) -> RunFolder:
    """The run folder for the spaces of the environment; an error if nothing could be learned."""
    before = RunFolder.kept(session.run) if session.resume else None
    facts = facts_of(make, before.spec.features if before else ())
    train = session.config.train
    if session.league:
        check_league(session, make, facts)
    sides = 1 if session.league or facts.aec else len(facts.agents)
    # The first segment only shows the normaliser what numbers look like.
    least = 2 * sides * train.games * train.segment
    steps = session.budget.steps
    if steps is not None and steps < least:
        raise ConfigError(
            f"--steps: expected {least} or more (two segments of train.segment {train.segment} in "
            f"train.games {train.games} environments); {steps} would train nothing"
        )
    return RunFolder.open(
        session.run,
        spec=PolicySpec(facts.features, facts.actions, session.network),
        config=session.config,
        clock=SystemClock(),
        game=session.environment,
        game_options={name: str(value) for name, value in session.options.items()},
        bot_code=tuple(
            CodeSource.of(load_module(source, flag="--bots"), session.run)
            for source in session.bots
        ),
    )
