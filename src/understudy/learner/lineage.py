"""The lineage: which version the trainer's state descends from, and how to go on or back.

A version is the only thing that is gone back to: trainer, counters and replay are always those of
one version plus what was learned since. How often an episode was sampled is never undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from understudy.core import files
from understudy.core.errors import FileFormatError
from understudy.experience.episode import Episode
from understudy.experience.replay import Replay
from understudy.learner.commit import ROLLBACK, commit, finish_promotion, prune
from understudy.learner.intake import Intake
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest, ReplayEntry
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_INGESTED = "ingested"


class Learns(Protocol):
    """What trains: `Trainer`, or something quicker where a test kills it a hundred times."""

    def train(
        self, new: Sequence[Episode], replayed: Sequence[Episode], *, version: int
    ) -> dict[str, float]:
        """Learn from a batch and say how it went; `NotFinite` if it went wrong."""

    def snapshot(self) -> dict[str, bytes]:
        """The files of a version."""

    def restore(self, contents: Mapping[str, bytes] | None, *, what: str) -> None:
        """Go on from the files of a version, or from nothing."""

    def slow_down(self) -> None:
        """Be more careful from here on."""


class Lineage:
    """One line of versions, and the trainer at its end."""

    def __init__(
        self, folder: RunFolder, trainer: Learns, intake: Intake, journal: Journal
    ) -> None:
        self._folder = folder
        self._config = folder.config.learner
        self._trainer = trainer
        self._intake = intake
        self._journal = journal
        self.parent: int | None = None
        """The version that the trainer's state descends from."""
        self.taken = 0
        """The highest number of any version."""
        self.total = 0
        """Episodes ingested by any version, ever."""
        self.followed = 0
        """The last rollback that was followed, by its number in the pointer."""

    def resume(self) -> None:
        """Go on from the head; finish what a crash left half done."""
        versions = self._folder.versions
        files.sweep(versions.root, older_than_s=0.0)  # we hold the lock: nobody else commits here
        spool = self._intake.spool
        for folder in (self._folder.root, spool.quarantined, *self._folder.pointers.folders):
            files.sweep(folder)
        numbers = versions.numbers()
        # Counted once: a number that appears from now on is another learner's, and fences us off.
        self.taken = max(numbers, default=0)
        ingested = versions.ingested_by_pruned()
        for number in numbers:
            try:
                manifest = versions.manifest(number)
                ingested |= manifest.ingested
                self.total = max(self.total, manifest.counters.get(_INGESTED, 0))
            except (FileFormatError, OSError) as error:
                self._problem(
                    "registry", f"version {number} is damaged and is passed over: {error}"
                )
        self.go_back_to(versions.head())
        self.followed = self.counters.get(ROLLBACK, 0)
        if self.parent is not None:
            finish_promotion(self._folder, self.parent)
        self._intake.resume(ingested)

    def go_back_to(self, number: int | None) -> None:
        """The trainer, the counters and the replay as they were at a version."""
        versions = self._folder.versions
        config = self._config
        self.replay = Replay(
            capacity=config.replay_capacity,
            limit=config.samples_per_insert,
            priority=config.priority,
        )
        self.parent = number
        self.counters: dict[str, int] = {}
        self.metrics: dict[str, float] = {}
        self._intake.drop_uncommitted()
        self.rng = np.random.default_rng([config.seed, number or 0])
        if number is None:
            self._trainer.restore(None, what="a fresh start")
            return
        manifest = versions.manifest(number)
        contents = {name: versions.read(manifest, name) for name in manifest.files}
        self._trainer.restore(contents, what=f"version {number}")
        self.counters = dict(manifest.counters)
        # How often an episode was sampled is not undone by going back: the newest version knows.
        newest = versions.head() or number
        for entry in versions.manifest(newest).replay.values():
            self._hold_again(entry)

    def _hold_again(self, entry: ReplayEntry) -> None:
        for load in (self._intake.spool.load_archived, self._intake.spool.load):
            try:
                self.replay.insert(entry.name, load(entry.name), samples=entry.samples)
            except FileNotFoundError:
                continue
            except (FileFormatError, OSError) as error:
                self._problem("replay", str(error))
            return

    def follow_rollback(self) -> None:
        """A person rolled the champion back: learn on from there, and ingest nothing again."""
        champion = self._folder.pointers.read("champion")
        if champion is None or not champion.pinned or champion.sequence <= self.followed:
            return
        self.followed = champion.sequence
        try:
            self._folder.versions.verify(champion.version)
        except (FileFormatError, OSError) as error:
            self._problem("registry", f"cannot learn on from version {champion.version}: {error}")
            return
        self.go_back_to(champion.version)

    def commit(self) -> tuple[Manifest, bool]:
        """What was learned since the parent becomes the next version; also: does it play now."""
        total = self.total + len(self._intake.uncommitted)
        held = self.replay.held
        manifest, promoted = commit(
            self._folder,
            self._trainer.snapshot(),
            number=self.taken + 1,
            parent=self.parent,
            ingested=self._intake.uncommitted,
            replay={key: ReplayEntry(one.name, one.samples) for key, one in held.items()},
            counters={**self.counters, _INGESTED: total, ROLLBACK: self.followed},
            metrics=self.metrics,
        )
        self.parent = self.taken = manifest.number
        self.total = total
        return manifest, promoted

    def tidy(self) -> None:
        """Remove versions and archived episodes beyond the limits."""
        prune(self._folder)
        held = {one.name for one in self.replay.held.values()}
        self._intake.spool.prune(self._folder.config.spool, keep=held)

    def _problem(self, where: str, message: str) -> None:
        self._journal.write(events.Problem(where=where, message=message))
