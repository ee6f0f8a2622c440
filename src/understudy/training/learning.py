"""The shell of every session that learns, and the events that an iteration leaves in the journal.

`Learning` journals the start and the end of a session and iterates in between, until the budget is
spent or a signal asks for the end. The arena (`arena_learning`), environments
(`environments.learning`) and populations (`population.learning`) say what an iteration is and what
is kept. The functions below `Learning` make events and are pure.
"""

from __future__ import annotations

import contextlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from understudy.arena.results import Iteration, OpponentLatents
from understudy.core.errors import UnderstudyError
from understudy.league.curriculum import StageChange
from understudy.match.tally import EvaluationReport, Tally
from understudy.registry.run_folder import RunFolder
from understudy.supervise.interrupts import Interrupts
from understudy.supervise.lock import learner_lock
from understudy.telemetry import events
from understudy.telemetry.journal import Journal
from understudy.telemetry.summary import SummaryWriter
from understudy.training.session import TrainingProgress

P = TypeVar("P", bound=TrainingProgress[Any])

_SUMMARISE_S = 5.0
_FEW = 3
"""Numbers of a latent in the journal: enough to tell opponents apart, few enough to keep."""


@contextlib.contextmanager
def locked_folder(
    run: Path, open_folder: Callable[[], RunFolder], *, resume: bool
) -> Iterator[RunFolder]:
    """Open the run folder of a session under its learner's lock."""
    if not resume:
        open_folder()  # the lock lies in it
    with learner_lock(run):
        yield open_folder()  # again: until now another learner may have changed its settings


class Learning(ABC, Generic[P]):
    """A session that learns; use it as a context, under the learner's lock."""

    progress: P
    shows_start = True
    """Whether `show` is called before the first iteration, which may compile for a minute."""

    @abstractmethod
    def journals(self) -> Sequence[tuple[Journal, int]]:
        """Where the start and the end are noted, each with its newest version."""

    @abstractmethod
    def begin(self) -> None:
        """Prepare the first iteration."""

    @abstractmethod
    def iterate(self, stop: Callable[[], bool]) -> bool:
        """Play, learn, journal it, update `progress` and make a version where one is due. False
        where `stop` cut the play short, so nothing was learned."""

    @abstractmethod
    def finish(self, interrupts: Interrupts, show: Callable[[P], None]) -> None:
        """Do what follows the last iteration."""

    @abstractmethod
    def commit(self) -> None:
        """Make a version of what was learned."""

    def keep(self) -> None:
        """Keep what was learned when the session ends, be it by an `UnderstudyError`."""
        self.commit()

    def run(self, interrupts: Interrupts, show: Callable[[P], None]) -> None:
        """Iterate until the budget is spent or a signal asks for the end."""
        self.begin()
        if self.shows_start:
            show(self.progress)
        limits = self.progress.session.config.retention
        writers = [
            SummaryWriter(one.folder, one.clock, limits=limits, journal=one, every_s=_SUMMARISE_S)
            for one, _ in self.journals()
        ]
        for _ in self.progress.turns(interrupts):
            if self.iterate(lambda: interrupts.asked):
                show(self.progress)
            for writer in writers:
                writer.work()
        self.finish(interrupts, show)

    def __enter__(self) -> Self:
        for journal, version in self.journals():
            journal.write(events.LearnerStarted(pid=os.getpid(), version=version, pending=0))
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None or issubclass(kind, UnderstudyError):
                self.keep()
        finally:
            for journal, _ in self.journals():
                journal.write(self._stopped(kind))

    def _stopped(self, kind: type[BaseException] | None) -> events.LearnerStopped:
        reason = "done" if kind is None else f"ended by {kind.__name__}"
        return events.LearnerStopped(reason=reason, pending=0)


def batch_trained(
    iteration: Iteration, *, steps: int, seconds: float, learning_rate: float, passes: int
) -> events.BatchTrained:
    """The update of an iteration."""
    return events.BatchTrained(
        matches=iteration.matches,
        replayed=0,
        steps=steps,
        seconds=seconds,
        learning_rate=learning_rate,
        samples_per_insert=float(passes),
        **iteration.metrics,  # type: ignore[arg-type]  # all floats, by name
    )


def evaluated(tally: Tally, *, version: int, opponent: str) -> events.Evaluated:
    """Frozen matches against one opponent."""
    return events.Evaluated(
        version=version,
        matches=tally.matches,
        wins=tally.wins,
        draws=tally.draws,
        losses=tally.losses,
        opponent=opponent,
    )


def matches_trained(iteration: Iteration, *, steps: int, stage: str) -> events.MatchesTrained:
    """The matches of an iteration."""
    results = iteration.results
    played = {name: one for name, one in results.items() if one.matches}
    return events.MatchesTrained(
        steps=steps,
        stage=stage,
        results={name: (one.started, *one.counts) for name, one in results.items()},
        returns={name: one.returns / one.matches for name, one in played.items()},
        terms={name: one.terms for name, one in played.items()},
        measures={name: one.measures for name, one in played.items() if one.measures},
        ended=[(one.opponent, one.score, one.frames, one.returned) for one in iteration.ended],
        residual=iteration.residual,
    )


def stage_changed(change: StageChange) -> events.StageChanged:
    """A move of the curriculum."""
    return events.StageChanged(
        steps=change.steps, before=change.before, after=change.after, reason=change.reason
    )


def strategy_measured(
    now: OpponentLatents, before: OpponentLatents | None, *, steps: int
) -> events.StrategyMeasured:
    """The latents of the opponents, and how far they moved since the last time."""
    return events.StrategyMeasured(
        steps=steps,
        latent_mean=now.mean,
        latent_spread=now.spread,
        attention_entropy=now.attention_entropy,
        drift=drift(now, before),
        by_opponent={name: latent[:_FEW] for name, latent in now.latents.items()},
    )


def drift(now: OpponentLatents, before: OpponentLatents | None) -> float:
    """The mean distance between the latents of each opponent then and now; 0 at the start."""
    known = before.latents if before else {}
    moved = [math.dist(now.latents[name], known[name]) for name in now.latents if name in known]
    return sum(moved) / len(moved) if moved else 0.0


def checkpoint_judged(
    reports: dict[str, EvaluationReport], *, steps: int, version: int, seconds: float
) -> events.CheckpointJudged:
    """Frozen matches of a version, by opponent."""
    return events.CheckpointJudged(
        steps=steps,
        version=version,
        seconds=seconds,
        opponents={name: _judged(report) for name, report in reports.items()},
    )


def _judged(report: EvaluationReport) -> events.OpponentTally:
    tally, means = report.tally, report.measures
    sums = {name: means.get(name, 0.0) * tally.matches for name in events.OPPONENT_MEASURES}
    return events.OpponentTally(
        wins=tally.wins,
        draws=tally.draws,
        losses=tally.losses,
        mean_return=report.mean_return,
        **sums,
    )
