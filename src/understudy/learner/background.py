"""The background learner: from the spool to the registry, safe to kill at any point.

The order that makes it safe: load, train, commit (which names what was ingested), archive. Whatever
a crash interrupts is finished or repeated by the next start: an episode that a version names is
archived, never trained on again; one that no version names is still in the buffer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from understudy.core import files
from understudy.core.errors import FileFormatError, NotFinite
from understudy.experience.episode import Episode
from understudy.experience.replay import Replay
from understudy.learner.batch import version_lags
from understudy.learner.commit import commit
from understudy.learner.intake import Intake
from understudy.registry.pointers import LATEST, NAMES
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest, ReplayEntry
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_TIDY_EVERY = 10
_ROLLBACK = "rollbacks_followed"
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


class Background:
    """One learner at work on one run folder."""

    def __init__(self, folder: RunFolder, trainer: Learns, journal: Journal) -> None:
        self._folder = folder
        self._config = folder.config.learner
        self._trainer = trainer
        self._journal = journal
        self._intake = Intake(folder, journal)
        self._parent: int | None = None
        self._total = 0
        self._taken = 0
        self._followed = 0
        self._retreats = 0
        self._last_publish = -float("inf")
        self._gather_until = float("inf")
        self._resume()

    @property
    def version(self) -> int:
        """The version that the trainer's state descends from; 0: none yet."""
        return self._parent or 0

    @property
    def total_matches(self) -> int:
        """Episodes ingested by any version, ever."""
        return self._total

    @property
    def samples_per_insert(self) -> float:
        """How often a match was sampled on average."""
        return self._replay.samples_per_insert

    @property
    def drain_s(self) -> float:
        """How long stopping may take."""
        return self._config.drain_s

    def pending(self) -> int:
        """How many episodes wait to be learned from."""
        return len(self._intake.waiting())

    def work(self, *, hurry: bool = False) -> bool:
        """Learn from one batch, if there is one; publish, if it is time. False: nothing to do.

        A batch that is not full waits a moment for more matches, unless in a hurry.
        """
        self._follow_rollback()
        waiting = self._intake.look(self._config.batch_matches)
        learned = (hurry or self._gathered(waiting)) and self._learn()
        if self._intake.uncommitted and self.publish_in_s() <= 0.0:
            self.publish()
        return learned

    def wait_s(self) -> float:
        """Seconds until `work` has something to do without being woken; may be infinite."""
        return min(self.publish_in_s(), self._gather_until - self._folder.clock.monotonic())

    def publish_in_s(self) -> float:
        """Seconds until the next version may be published; infinite if there is nothing new."""
        if not self._intake.uncommitted:
            return float("inf")
        elapsed = self._folder.clock.monotonic() - self._last_publish
        return self._config.publish_interval_s - elapsed

    def publish(self) -> Manifest:
        """Commit what was learned since the last version, then archive what it was learned from."""
        held = self._replay.held
        total = self._total + len(self._intake.uncommitted)
        manifest, promoted = commit(
            self._folder,
            self._trainer.snapshot(),
            number=self._taken + 1,
            parent=self._parent,
            ingested=self._intake.uncommitted,
            replay={key: ReplayEntry(one.name, one.samples) for key, one in held.items()},
            counters={**self._counters, _INGESTED: total, _ROLLBACK: self._followed},
            metrics=self._metrics,
        )
        self._last_publish = self._folder.clock.monotonic()
        self._journal.write(
            events.VersionPublished(
                version=manifest.number,
                parent=manifest.parent,
                matches=len(manifest.ingested),
                promoted=promoted,
                total_matches=total,
            )
        )
        self._parent = manifest.number
        self._taken = manifest.number
        self._total = total
        self._intake.committed()
        if manifest.number % _TIDY_EVERY == 0:
            try:
                self._tidy()
            except OSError as error:  # housekeeping can wait for the next turn
                self._problem("retention", str(error))
        return manifest

    def publish_rest(self) -> None:
        """Publish whatever is not published yet, without waiting for the interval."""
        if self._intake.uncommitted:
            self.publish()

    # --- starting and going back ---------------------------------------------------------------

    def _resume(self) -> None:
        """Go on from the head; finish what a crash left half done."""
        versions = self._folder.versions
        files.sweep(versions.root, older_than_s=0.0)  # we hold the lock: nobody else commits here
        spool = self._intake.spool
        for folder in (self._folder.root, spool.quarantined, *self._folder.pointers.folders):
            files.sweep(folder)
        numbers = versions.numbers()
        # Counted once: a number that appears from now on is another learner's, and fences us off.
        self._taken = max(numbers, default=0)
        ingested = versions.ingested_by_pruned()
        for number in numbers:
            try:
                manifest = versions.manifest(number)
                ingested |= manifest.ingested
                self._total = max(self._total, manifest.counters.get(_INGESTED, 0))
            except (FileFormatError, OSError) as error:
                self._problem(
                    "registry", f"version {number} is damaged and is passed over: {error}"
                )
        self._go_back_to(versions.head())
        self._followed = self._counters.get(_ROLLBACK, 0)
        self._finish_promotion()
        self._intake.resume(ingested)

    def _finish_promotion(self) -> None:
        """A crash may have come between a commit and the moves of the pointers."""
        for name in NAMES:
            record = self._folder.pointers.read(name)
            if self._parent is not None and (record is None or record.by == LATEST):
                self._folder.pointers.move(name, self._parent, by=LATEST)

    def _go_back_to(self, number: int | None) -> None:
        """The trainer, the counters and the replay as they were at a version."""
        versions = self._folder.versions
        config = self._config
        self._replay = Replay(
            capacity=config.replay_capacity,
            limit=config.samples_per_insert,
            priority=config.priority,
        )
        self._parent = number
        self._counters: dict[str, int] = {}
        self._metrics: dict[str, float] = {}
        self._intake.drop_uncommitted()
        self._rng = np.random.default_rng([config.seed, number or 0])
        if number is None:
            self._trainer.restore(None, what="a fresh start")
            return
        manifest = versions.manifest(number)
        contents = {name: versions.read(manifest, name) for name in manifest.files}
        self._trainer.restore(contents, what=f"version {number}")
        self._counters = dict(manifest.counters)
        # How often an episode was sampled is not undone by going back: the newest version knows.
        newest = versions.head() or number
        for entry in versions.manifest(newest).replay.values():
            self._hold_again(entry)

    def _hold_again(self, entry: ReplayEntry) -> None:
        for load in (self._intake.spool.load_archived, self._intake.spool.load):
            try:
                self._replay.insert(entry.name, load(entry.name), samples=entry.samples)
            except FileNotFoundError:
                continue
            except (FileFormatError, OSError) as error:
                self._problem("replay", str(error))
            return

    def _follow_rollback(self) -> None:
        """A person rolled the champion back: learn on from there, and ingest nothing again."""
        champion = self._folder.pointers.read("champion")
        if champion is None or not champion.pinned or champion.sequence <= self._followed:
            return
        self._followed = champion.sequence
        try:
            self._folder.versions.verify(champion.version)
        except (FileFormatError, OSError) as error:
            self._problem("registry", f"cannot learn on from version {champion.version}: {error}")
            return
        self._go_back_to(champion.version)

    # --- learning ------------------------------------------------------------------------------

    def _gathered(self, waiting: int) -> bool:
        """Whether to learn now, or to wait a moment for the batch to fill."""
        now = self._folder.clock.monotonic()
        if 0 < waiting < self._config.batch_matches and now < self._gather_until:
            self._gather_until = min(self._gather_until, now + self._config.gather_s)
            if now < self._gather_until:
                return False
        self._gather_until = float("inf")
        return waiting > 0

    def _learn(self) -> bool:
        intake = self._intake
        suspected = intake.suspects.next_group() is not None
        names = intake.next_names(self._config.batch_matches)
        if not names:
            return False
        batch = intake.load(names)
        if not batch:
            return True
        epochs = self._config.epochs
        # Suspects are tried alone: beside a poisonous neighbour the innocent would be condemned.
        others = 0 if suspected else self._config.replay_matches
        replayed = self._replay.sample(self._rng, others, times=epochs)
        tried = tuple(batch)
        intake.suspects.attempt(tried)
        started = self._folder.clock.monotonic()
        try:
            report = self._trainer.train(list(batch.values()), replayed, version=self.version)
        except NotFinite as error:
            self._retreat(tried, str(error))
            return True
        intake.suspects.succeeded(tried)
        self._retreats = 0
        for name, episode in batch.items():
            intake.uncommitted[episode.meta.id] = name
            self._replay.insert(name, episode, samples=epochs)
        self._count(batch, replayed, report, self._folder.clock.monotonic() - started)
        return True

    def _retreat(self, tried: tuple[str, ...], message: str) -> None:
        """Nothing of this batch is kept: back to the last good version, slower, and suspicious."""
        self._problem("training", message)
        self._intake.suspects.failed(tried)
        self._go_back_to(self._parent)
        self._retreats += 1
        for _ in range(self._retreats):  # going back has undone the earlier ones
            self._trainer.slow_down()

    def _count(
        self,
        batch: Mapping[str, Episode],
        replayed: Sequence[Episode],
        report: dict[str, float],
        seconds: float,
    ) -> None:
        steps = int(report.pop("steps"))
        for key, value in (("matches", len(batch)), ("steps", steps), ("updates", 1)):
            self._counters[key] = self._counters.get(key, 0) + value
        self._metrics = report
        self._journal.write(
            events.BatchTrained(
                matches=len(batch),
                replayed=len(replayed),
                steps=steps,
                seconds=seconds,
                samples_per_insert=self._replay.samples_per_insert,
                version_lag=version_lags(batch.values(), self.version),
                **report,
            )
        )

    # --- leaving things tidy -------------------------------------------------------------------

    def _tidy(self) -> None:
        named = [self._folder.pointers.read(name) for name in NAMES]
        keep = {record.version for record in named if record is not None}
        newest = self._folder.config.registry.keep_versions
        self._folder.versions.prune(keep_newest=newest, keep=keep)
        held = {one.name for one in self._replay.held.values()}
        self._intake.spool.prune(self._folder.config.spool, keep=held)

    def _problem(self, where: str, message: str) -> None:
        self._journal.write(events.Problem(where=where, message=message))
