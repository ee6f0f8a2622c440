"""Keeps what a trainer learns: versions with their counters, and takes them up again.

A version holds parameters, optimiser, normaliser, random key and counters. It is all that a session
of training leaves behind and all that it goes on from.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from understudy.core import files
from understudy.learner.commit import commit
from understudy.learner.trainer import Trainer
from understudy.registry.pointers import NAMES
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

STEPS, MATCHES = "steps", "matches"
"""Counters that every session of training has."""


class Keeper:
    """Between one trainer and one run folder; use it under the learner's lock."""

    def __init__(self, folder: RunFolder, journal: Journal, trainer: Trainer) -> None:
        self._folder = folder
        self._journal = journal
        self._trainer = trainer
        self.version = 0
        self.kept: Mapping[str, int] = {}
        """Counters of that version."""

    @property
    def next(self) -> int:
        """The number that the next version gets."""
        return max(self._folder.versions.numbers(), default=0) + 1

    def resume(self) -> Mapping[str, int]:
        """The trainer as the version that is gone on from left it; its counters, or none."""
        versions, config = self._folder.versions, self._folder.config
        files.sweep(versions.root, older_than_s=0.0)  # we hold the lock: nobody else commits here
        head = start(self._folder)
        if head is None:
            return {}
        manifest = versions.manifest(head)
        contents = {name: versions.read(manifest, name) for name in manifest.files}
        self._trainer.restore(contents, what=f"version {head}")
        if config.train.schedule == "constant":
            self._trainer.learning_rate = config.learner.learning_rate
        self.version, self.kept = head, manifest.counters
        return manifest.counters

    def due(self, steps: int) -> bool:
        """Whether a version should be kept now."""
        return steps - self.kept.get(STEPS, 0) >= self._folder.config.train.checkpoint_steps

    def follow_schedule(self, kl: float, share: float) -> float:
        """The learning rate that was, and from now on the one that the schedule says."""
        rate, learner = self._trainer.learning_rate, self._folder.config.learner
        if self._folder.config.train.schedule == "adaptive":
            self._trainer.adapt(kl)
        elif self._folder.config.train.schedule == "linear":
            first, last = learner.learning_rate, learner.learning_rate_min
            self._trainer.learning_rate = first + (last - first) * share
        return rate

    def commit(
        self,
        counters: Mapping[str, int],
        metrics: Mapping[str, float],
        *,
        needed: Collection[int] = (),
    ) -> None:
        """What was learned becomes the next version, if there is anything new; versions that are
        `needed` are not pruned."""
        if counters.get(STEPS) == self.kept.get(STEPS):
            return
        manifest, promoted = commit(
            self._folder,
            self._trainer.snapshot(),
            number=self.next,
            parent=self.version or None,
            ingested={},
            replay={},
            counters=counters,
            metrics=metrics,
        )
        self._journal.write(
            events.VersionPublished(
                version=manifest.number,
                parent=manifest.parent,
                matches=counters[MATCHES] - self.kept.get(MATCHES, 0),
                promoted=promoted,
            )
        )
        self.version, self.kept = manifest.number, dict(counters)
        records = [self._folder.pointers.read(name) for name in NAMES]
        self._folder.versions.prune(
            keep_newest=self._folder.config.registry.keep_versions,
            keep={*needed, *(record.version for record in records if record is not None)},
        )


def start(folder: RunFolder) -> int | None:
    """The version to go on from: the one that a person rolled back to, else the newest."""
    champion = folder.pointers.read("champion")
    if champion is not None and champion.pinned:
        return champion.version
    return folder.versions.head()
