"""Learning in the arena: iterations, what they come to, and the versions along the way.

Matches in flight are lost when a session ends; whoever goes on begins new ones, on other seeds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from understudy.arena.arena import Arena, Iteration, check
from understudy.arena.mix import Mix, parse
from understudy.arena.rivals import named
from understudy.core.config import Config
from understudy.core.errors import NotFinite
from understudy.games import catalog
from understudy.games.base import Bot
from understudy.registry.run_folder import RunFolder
from understudy.run.keeper import MATCHES, STEPS, Keeper, start
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_ITERATIONS, _MET, _RIVAL, _SNAPSHOT = "iterations", "met.", "rival.", "snapshot_at"
_TRIES = 3


def check_arena(game: str, options: Mapping[str, str], config: Config) -> None:
    """What no arena can play is an error, before anything is written."""
    mix = _mix(config, catalog.bots(game, **options))
    check(catalog.make(game, **options), config, mix)


class ArenaLearning:
    """The arena of one session, and what is kept of it; use it under the learner's lock."""

    def __init__(
        self, folder: RunFolder, journal: Journal, game: str, options: Mapping[str, str]
    ) -> None:
        self._folder = folder
        self._journal = journal
        self._failures = 0
        self._metrics: dict[str, float] = {}
        config, versions = folder.config, folder.versions
        bots = catalog.bots(game, **options)
        head = start(folder)
        before = versions.manifest(head).counters if head is not None else {}
        # Matches that were in flight are not played again: the slots begin with other seeds.
        seed = config.learner.seed * 1_000_003 + before.get(_ITERATIONS, 0)
        self.arena = Arena(
            folder.spec,
            config,
            catalog.make(game, **options),
            bots,
            _mix(config, bots),
            seed=seed,
        )
        self._keeper = Keeper(folder, journal, self.arena.trainer)
        self.counters = dict(self._keeper.resume())
        load = {number: versions.policy(number).weights.params for number in named(self.counters)}
        self.arena.rivals.restore(self.counters, load)

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
        try:
            iteration = self.arena.iterate()
        except NotFinite as error:
            self._failures += 1
            self._journal.write(events.Problem(where="training", message=str(error)))
            if self._failures == _TRIES:
                raise
            self.arena.trainer.slow_down()
            return None
        self._failures = 0
        self._count(iteration)
        self._tell(iteration, seconds=time.monotonic() - began)
        return iteration

    def keep(self, iteration: Iteration, share: float) -> None:
        """Follow the schedule, and make a version where one is due."""
        self._keeper.follow_schedule(iteration.metrics["kl"], share)
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
    return parse(config.train.opponents, tuple(bots), flag="train.opponents")
