"""Keeps what the arena learns: versions, counters and the journal, and takes them up again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from understudy.arena.arena import Arena, Iteration, check
from understudy.arena.mix import Mix, parse
from understudy.arena.rivals import named
from understudy.core import files
from understudy.core.config import Config
from understudy.games import catalog
from understudy.games.base import Bot
from understudy.learner.commit import commit
from understudy.registry.pointers import NAMES
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_ITERATIONS, _STEPS, _MATCHES, _MET, _SNAPSHOT = (
    "iterations",
    "steps",
    "matches",
    "met.",
    "snapshot_at",
)


def check_arena(game: str, options: Mapping[str, str], config: Config) -> None:
    """What no arena can play is an error, before anything is written."""
    check(catalog.make(game, **options), config)
    _mix(config, catalog.bots(game, **options))


class Keeper:
    """Between one arena and one run folder."""

    def __init__(self, folder: RunFolder, journal: Journal) -> None:
        self.folder = folder
        self.journal = journal
        self.version = 0
        self.counters: dict[str, int] = {}
        self.uncommitted = False
        self._metrics: dict[str, float] = {}
        self._committed_at = 0
        self._matches = 0

    @property
    def steps(self) -> int:
        """Trained on so far, by the whole run."""
        return self.counters.get(_STEPS, 0)

    @property
    def due(self) -> bool:
        """Whether a version should be kept now."""
        checkpoint = self.folder.config.train.checkpoint_steps
        return self.steps - self._committed_at >= checkpoint or self._rival_due

    @property
    def _rival_due(self) -> bool:
        """Whether the next version becomes a rival; only what is kept can be met after a resume."""
        since = self.steps - self.counters.get(_SNAPSHOT, 0)
        return self.arena.plan.mix.meets_itself and since >= self.folder.config.train.snapshot_steps

    def open(self, game: str, options: Mapping[str, str]) -> Arena:
        """The arena, as the last version left it, or new."""
        folder, config = self.folder, self.folder.config
        versions = folder.versions
        files.sweep(versions.root, older_than_s=0.0)  # we hold the lock: nobody else commits here
        bots = catalog.bots(game, **options)
        mix = _mix(config, bots)
        head = versions.head()
        if head is not None:
            self.counters = dict(versions.manifest(head).counters)
        # Matches that were in flight are not played again: the slots begin with other seeds.
        seed = config.learner.seed * 1_000_003 + self.counters.get(_ITERATIONS, 0)
        self.arena = Arena(folder.spec, config, catalog.make(game, **options), bots, mix, seed=seed)
        if head is not None:
            self._restore(head)
        return self.arena

    def _restore(self, head: int) -> None:
        versions = self.folder.versions
        manifest = versions.manifest(head)
        contents = {name: versions.read(manifest, name) for name in manifest.files}
        self.arena.trainer.restore(contents, what=f"version {head}")
        load = {
            number: versions.policy(number).weights.params for number in named(manifest.counters)
        }
        self.arena.rivals.restore(manifest.counters, load)
        self.version, self._committed_at = head, self.steps

    def note(self, iteration: Iteration, *, seconds: float, share: float) -> None:
        """Count and journal one iteration, and set the learning rate for the next."""
        steps, results = self.arena.steps_an_iteration, iteration.results
        finished = sum(one.wins + one.draws + one.losses for one in results.values())
        self._grow(_ITERATIONS, 1)
        self._grow(_STEPS, steps)
        self._grow(_MATCHES, finished)
        for name, result in results.items():
            self._grow(_MET + name, result.started)
        self._matches += finished
        self._metrics = iteration.metrics
        self.uncommitted = True
        rate = self._schedule(iteration.metrics["kl"], share)
        self.journal.write(
            events.BatchTrained(
                matches=finished,
                replayed=0,
                steps=steps,
                seconds=seconds,
                learning_rate=rate,
                samples_per_insert=float(self.folder.config.learner.epochs),
                **iteration.metrics,  # type: ignore[arg-type]  # all floats, by name
            )
        )
        self.journal.write(
            events.MatchesTrained(
                steps=self.steps,
                results={
                    name: (one.started, one.wins, one.draws, one.losses)
                    for name, one in results.items()
                },
                returns={
                    name: one.returns / (one.wins + one.draws + one.losses)
                    for name, one in results.items()
                    if one.wins + one.draws + one.losses
                },
            )
        )

    def _schedule(self, kl: float, share: float) -> float:
        """The rate that this iteration was trained with; the next one may have another."""
        trainer, config = self.arena.trainer, self.folder.config
        rate = trainer.learning_rate
        if config.train.schedule == "adaptive":
            trainer.adapt(kl)
        elif config.train.schedule == "linear":
            first, last = config.learner.learning_rate, config.learner.learning_rate_min
            trainer.learning_rate = first + (last - first) * share
        return rate

    def commit(self) -> None:
        """What was learned becomes the next version, and perhaps a rival."""
        numbers = self.folder.versions.numbers()
        number = max(numbers, default=0) + 1
        arena = self.arena
        if self._rival_due:
            arena.rivals.offer(number, arena.trainer.weights().params)
            self.counters[_SNAPSHOT] = self.steps
        self.counters = {
            key: value for key, value in self.counters.items() if not key.startswith("rival.")
        } | arena.rivals.counters()
        manifest, promoted = commit(
            self.folder,
            arena.trainer.snapshot(),
            number=number,
            parent=self.version or None,
            ingested={},
            replay={},
            counters=self.counters,
            metrics=self._metrics,
        )
        self.journal.write(
            events.VersionPublished(
                version=number,
                parent=manifest.parent,
                matches=self._matches,
                promoted=promoted,
                total_matches=0,
            )
        )
        self.version, self._committed_at, self._matches = number, self.steps, 0
        self.uncommitted = False
        self._tidy()

    def _tidy(self) -> None:
        records = [self.folder.pointers.read(name) for name in NAMES]
        pointed = {record.version for record in records if record is not None}
        self.folder.versions.prune(
            keep_newest=self.folder.config.registry.keep_versions,
            keep=pointed | named(self.counters),
        )

    def _grow(self, key: str, by: int) -> None:
        self.counters[key] = self.counters.get(key, 0) + int(np.int64(by))


def _mix(config: Config, bots: Mapping[str, Bot]) -> Mix:
    return parse(config.train.opponents, tuple(bots), flag="train.opponents")
