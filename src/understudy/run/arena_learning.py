"""Learning in the arena: iterations, what they come to, and the versions along the way.

Matches in flight are lost when a session ends; whoever goes on begins new ones, on other seeds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Self

from understudy.arena.arena import Arena, Iteration, check
from understudy.arena.mix import Mix, parse
from understudy.arena.rivals import named
from understudy.core.config import Config
from understudy.core.errors import FileFormatError, RunFolderError, UnderstudyError
from understudy.games import catalog
from understudy.games.base import Bot
from understudy.learner.trainer import Trainer
from understudy.policy.layers import Params
from understudy.policy.spec import AnyNetwork
from understudy.registry.run_folder import RunFolder
from understudy.run.keeper import MATCHES, STEPS, Keeper
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_ITERATIONS, _MET, _RIVAL, _SNAPSHOT = "iterations", "met.", "rival.", "snapshot_at"


def check_arena(game: str, options: Mapping[str, str], network: AnyNetwork, config: Config) -> Mix:
    """What no arena can play is an error, before anything is written; else whom it meets."""
    rules = catalog.make(game, **options)
    mix = _mix(config, catalog.bots(game, **options))
    check(rules, config, mix)
    network.init(None, len(rules.features), rules.actions.options)
    return mix


class ArenaLearning:
    """The arena of one session, and what is kept of it; use it under the learner's lock."""

    def __init__(
        self, folder: RunFolder, journal: Journal, game: str, options: Mapping[str, str]
    ) -> None:
        self._folder = folder
        self._journal = journal
        self._metrics: dict[str, float] = {}
        trainer = Trainer(folder.spec, folder.config.learner)
        self._keeper = Keeper(folder, journal, trainer)
        self.counters = dict(self._keeper.resume())
        bots = catalog.bots(game, **options)
        # Matches that were in flight are not played again: the slots begin with other seeds.
        seed = folder.config.learner.seed * 1_000_003 + self.counters.get(_ITERATIONS, 0)
        self.arena = Arena(
            trainer,
            folder.config,
            catalog.make(game, **options),
            bots,
            _mix(folder.config, bots),
            seed=seed,
        )
        self.arena.rivals.restore(self.counters, self._rivals())

    def __enter__(self) -> Self:
        """Say that somebody learns here."""
        started = events.LearnerStarted(pid=os.getpid(), version=self.version, pending=0)
        self._journal.write(started)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Say that nobody does any more. What was learned is kept, whatever ended it."""
        try:
            if kind is None or issubclass(kind, UnderstudyError):
                self.commit()
        finally:
            reason = "done" if kind is None else f"ended by {kind.__name__}"
            self._journal.write(events.LearnerStopped(reason=reason, pending=0))

    def _rivals(self) -> dict[int, Params]:
        """The parameters of every rival that the counters name and that is still there."""
        found: dict[int, Params] = {}
        for number in named(self.counters):
            try:
                found[number] = self._folder.versions.policy(number).weights.params
            except (RunFolderError, FileFormatError) as error:
                self._journal.write(events.Problem(where="rivals", message=str(error)))
        return found

    @property
    def steps(self) -> int:
        """Trained on so far, by the whole run."""
        return self.counters.get(STEPS, 0)

    @property
    def version(self) -> int:
        """The newest one."""
        return self._keeper.version

    @property
    def due(self) -> bool:
        """Whether a version should be kept now."""
        return self._keeper.due(self.steps) or self._rival_due

    @property
    def _rival_due(self) -> bool:
        """Whether the next version becomes a rival; only what is kept can be met after a resume."""
        since = self.steps - self.counters.get(_SNAPSHOT, 0)
        snapshot_steps = self._folder.config.train.snapshot_steps
        return self.arena.plan.mix.meets_itself and since >= snapshot_steps

    def iterate(self) -> Iteration | None:
        """One iteration, counted; None if it broke and a smaller step is tried instead."""
        began = time.monotonic()
        iteration = self._keeper.attempt(self.arena.iterate)
        if iteration is None:
            return None
        self._count(iteration)
        self._tell(iteration, seconds=time.monotonic() - began)
        return iteration

    def begin(self, share: float) -> None:
        """Take up the schedule where so much of the budget is spent already."""
        self._keeper.follow_schedule(share)

    def keep(self, iteration: Iteration, share: float) -> None:
        """Follow the schedule, and make a version where one is due."""
        self._keeper.follow_schedule(share, kl=iteration.metrics["kl"])
        if self.due:
            self.commit()

    def commit(self) -> None:
        """What was learned becomes the next version, and perhaps a rival."""
        rivals = self.arena.rivals
        if self._rival_due:
            rivals.offer(self._keeper.next, self.arena.trainer.weights().params)
            self.counters[_SNAPSHOT] = self.steps
        self.counters = {
            key: value for key, value in self.counters.items() if not key.startswith(_RIVAL)
        } | rivals.counters()
        self._keeper.commit(self.counters, self._metrics, needed=named(self.counters))

    def _count(self, iteration: Iteration) -> None:
        self._metrics = iteration.metrics
        grown = {_ITERATIONS: 1, STEPS: self.arena.steps_an_iteration, MATCHES: iteration.matches}
        grown |= {_MET + name: result.started for name, result in iteration.results.items()}
        for key, by in grown.items():
            self.counters[key] = self.counters.get(key, 0) + by

    def _tell(self, iteration: Iteration, *, seconds: float) -> None:
        self._journal.write(
            events.BatchTrained(
                matches=iteration.matches,
                replayed=0,
                steps=self.arena.steps_an_iteration,
                seconds=seconds,
                learning_rate=self.arena.trainer.learning_rate,
                samples_per_insert=float(self._folder.config.learner.epochs),
                **iteration.metrics,  # type: ignore[arg-type]  # all floats, by name
            )
        )
        self._journal.write(
            events.MatchesTrained(
                steps=self.steps,
                results={
                    name: (one.started, one.wins, one.draws, one.losses)
                    for name, one in iteration.results.items()
                },
                returns={
                    name: one.returns / one.matches
                    for name, one in iteration.results.items()
                    if one.matches
                },
            )
        )


def _mix(config: Config, bots: Mapping[str, Bot]) -> Mix:
    return parse(config.train.opponents, tuple(bots))
