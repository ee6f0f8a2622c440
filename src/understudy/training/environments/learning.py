"""Learning from host rollouts: play a segment with NumPy, learn from it with JAX, and again.

Matches in flight are lost when a session ends; whoever goes on begins new ones, on other seeds.

What a trainer takes from the first segment of a run, before it learns: what numbers look like
here, and what a state like any other is worth.

The critic begins by saying the same of everything. One that has to sink (or rise) a long way first
does so further where features are large, and the policy flees (or seeks) those places before
anything was found there: Acrobot stayed at -500 on five seeds of five, and is between -88 and -116
after 100,000 steps on four of the same five with this.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from understudy.core.arrays import NDArray
from understudy.policy import weights as weight_files
from understudy.registry.versions import WEIGHTS

if TYPE_CHECKING:
    from understudy.learner.segments import Segments
    from understudy.learner.trainer import Trainer
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from understudy.core.clock import SystemClock
from understudy.core.errors import ConfigError
from understudy.experience.episode import returns_of
from understudy.match.live_match import TRAINING, match_seeds
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder, kept
from understudy.supervise.lock import missing
from understudy.telemetry import events
from understudy.telemetry.events import ENVIRONMENT
from understudy.telemetry.journal import Entry, Journal, Reader
from understudy.telemetry.training_log import LOG, TrainingLog
from understudy.training.environments.environments import HostEnvironments
from understudy.training.environments.rollout import EnvironmentRollout
from understudy.training.environments.session import (
    Evaluation,
    Finished,
    HostProgress,
    HostSession,
    mean_sides,
    zero_sum,
)

if TYPE_CHECKING:
    from understudy.learner.segments import Segments


def begin(trainer: Trainer, segments: Segments, gamma: float) -> None:
    """Fit the normaliser and the return scale, and level the critic."""
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


def seen(segments: Segments) -> NDArray:
    """The observations [N, F] that count."""
    counted: NDArray = segments.obs[segments.valid > 0]
    return counted


def usual_return(segments: Segments, gamma: float) -> float:
    """The number that, said of every decision, agrees with itself: v = reward + gamma ongoing v."""
    counted = segments.valid > 0
    ends = 1.0 - gamma * float(segments.ongoing[counted].mean())
    return float(segments.rewards[counted].mean()) / max(ends, 1.0 / len(segments.rewards))


_WHERE = "training"
_ENOUGH = 32
"""Matches that end alike before it is said: random play may need a few to find a goal."""


class HostLearning:
    """The environments and the trainer of one session; use it under the learner's lock."""

    def __init__(self, session: HostSession, make: Callable[[], Any], folder: RunFolder) -> None:
        try:
            from understudy.learner.trainer import Trainer
            from understudy.training.checkpoints import Keeper
        except ImportError as error:
            raise missing(error) from error
        self._config = session.config
        self._trainer = Trainer(folder.spec, self._config.learner)
        past = Reader(folder.journal).new()
        log = TrainingLog(folder.logs / LOG, past=past)
        self._journal = Journal(folder.journal, "train", folder.clock, also=log.add)
        self._keeper = Keeper(folder, self._journal, self._trainer)
        counters = self._keeper.resume()
        self._fresh = not counters
        steps = counters.get("steps", 0)
        self.progress = HostProgress(
            session,
            steps=steps,
            earlier=steps,
            matches=counters.get("matches", 0),
            updates=counters.get("updates", 0),
            version=self._keeper.version,
        )
        self._keeper.begin(session.budget)
        self._keeper.follow_schedule(self.progress.share)
        # Other seeds than before a resume: those matches were learned from already.
        games = session.config.train.games
        seeds = match_seeds(session.config.learner.seed, np.arange(games) + steps, purpose=TRAINING)
        self._environments = HostEnvironments(make, games, seeds, features=folder.spec.features)
        self.progress.agents = self._environments.agents
        self._endings = Endings(past, noise_steps=session.config.train.noise_steps)
        self._since: list[Finished] = []
        """Matches that ended since the last version."""
        self._rollout = EnvironmentRollout(
            self._environments,
            np.random.default_rng([session.config.learner.seed, steps]),
            noise_steps=session.config.train.noise_steps,
        )

    def __enter__(self) -> Self:
        """Say that somebody learns here."""
        self._cpu = time.process_time()
        version = self._keeper.version
        self._journal.write(events.LearnerStarted(pid=os.getpid(), version=version, pending=0))
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Let the environments go."""
        self._environments.close()
        stopped = events.LearnerStopped(
            reason="stopped" if kind is None else "failed",
            pending=0,
            cpu_s=time.process_time() - self._cpu,
            wall_s=self.progress.elapsed_s,
        )
        self._journal.write(stopped)

    def policy(self) -> Policy:
        """What would play now."""
        return Policy(self._trainer.spec, self._trainer.weights(), self._keeper.version)

    def iterate(self, *, stop: Callable[[], bool]) -> bool:
        """Play a segment and learn from it; False if `stop` said so before."""
        progress, steps = self.progress, self._config.train.segment
        # What a policy that knows nothing says of what might still have come is worth nothing.
        gamma = 0.0 if self._fresh else self._config.learner.gamma
        segments = self._rollout.play(self.policy(), steps, gamma=gamma, stop=stop)
        if segments is None:
            return False
        finished = [match for _, match in self._environments.finished]
        self._environments.finished.clear()
        progress.recent.extend(finished)
        progress.matches += len(finished)
        self._since += finished
        progress.steps += int(segments.valid.sum())
        self._tell_endings(finished)
        if self._fresh:
            begin(self._trainer, segments, self._config.learner.gamma)
            self._fresh = False
        else:
            self._learn(segments, finished)
        self._tell(finished)
        if self._keeper.due(progress.steps):
            self.checkpoint()
        return True

    def checkpoint(self) -> None:
        """What was learned since the last version becomes the next one."""
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
                self._keeper.returned([match.reward for match in self._since])
                metrics["reward"] = progress.reward
            self._since.clear()
            self._keeper.commit(counters, metrics)
            progress.version = self._keeper.version

    def evaluated(self, evaluation: Evaluation) -> None:
        """Journal the frozen matches of the newest version."""
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

    def _tell_endings(self, finished: list[Finished]) -> None:
        event = self._endings.add(finished, steps=self.progress.steps)
        if event is not None:
            self._journal.write(event)
            self.progress.news.append(event.message)
            self.progress.problem = event.message if isinstance(event, events.Problem) else ""

    def _learn(self, segments: Segments, finished: list[Finished]) -> None:
        from understudy.learner.hardware import as_numpy, float32_products
        from understudy.learner.segments import improve

        config, trainer = as_numpy(self._config.learner), self._trainer
        began = time.monotonic()
        with float32_products():
            state, report, return_square = improve(
                trainer.spec, config, trainer.state, trainer.fixed_inputs, segments
            )
        metrics: dict[str, Any] | None = self._keeper.attempt(lambda: trainer.accept(state, report))
        if metrics is None:
            return
        trainer.absorb(seen(segments), return_square=float(return_square))
        rate = self._keeper.follow_schedule(self.progress.share, kl=metrics["kl"])
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
                **metrics,
            )
        )

    def _tell(self, finished: list[Finished]) -> None:
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


class Endings:
    """Notices a run that nothing can be learned in: a time limit ends every match, and the rewards
    are the same in all of them. One match that differs, in any session, is enough to learn from.
    """

    def __init__(self, past: Iterable[Entry], *, noise_steps: int) -> None:
        """`past`: the journal of earlier sessions."""
        told = (entry.e for entry in past if isinstance(entry.e, events.MatchesTrained))
        self._differed = any(event.matches > event.alike for event in told)
        self._noise_steps = noise_steps
        self._alike = 0
        self._said = False

    def add(
        self, finished: Sequence[Finished], *, steps: int
    ) -> events.Problem | events.Note | None:
        """Matches that ended, and the steps of the run by then; what should be told, each once."""
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


def open_folder(session: HostSession, make: Callable[[], Any]) -> RunFolder:
    """The run folder for what the environment declares; an error if nothing could be learned."""
    before = kept(session.run) if session.resume else None
    features = before.spec.features if before else ()
    one = HostEnvironments(make, 1, np.zeros(1, np.uint32), features=features)
    one.close()
    train = session.config.train
    # The first segment only shows the normaliser what numbers look like.
    least = 2 * one.columns * train.games * train.segment
    steps = session.budget.steps
    if steps is not None and steps < least:
        raise ConfigError(
            f"--steps: expected {least} or more (two segments of train.segment {train.segment} in "
            f"train.games {train.games} environments); {steps} would train nothing"
        )
    return RunFolder.open(
        session.run,
        spec=PolicySpec(one.seam.features, one.seam.actions, session.network),
        config=session.config,
        clock=SystemClock(),
        game=session.environment,
        game_options={name: str(value) for name, value in session.options.items()},
    )
