"""The lineage: which version the trainer's state descends from, and how to go on or back.

A version is the only thing that is gone back to: trainer, counters and replay are always those of
one version plus what was learned since. How often an episode was sampled is never undone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

import numpy as np

from understudy.core import files
from understudy.core.errors import FileFormatError
from understudy.experience.episode import Episode, Outcome
from understudy.learner.commit import ROLLBACK, commit, finish_promotion
from understudy.learner.comparing import compared
from understudy.learner.intake import Intake
from understudy.learner.trainer_protocol import Resumable
from understudy.registry import scores as score_list
from understudy.registry.comparisons import Comparison, with_comparison
from understudy.registry.retention import comparisons_of, prune, scores_of
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest, ReplayEntry
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_INGESTED = "ingested"


class Kept(Protocol):
    """An episode that may be sampled again."""

    @property
    def name(self) -> str:
        """Of its file."""

    @property
    def samples(self) -> int:
        """How often it was sampled."""


class Remembers(Protocol):
    """What a learner samples from: whole episodes, or items of them."""

    @property
    def held(self) -> Mapping[str, Kept]:
        """Episodes that may be sampled again, by id."""

    def insert(self, name: str, episode: Episode, *, samples: int) -> object:
        """Hold an episode that has been sampled this often."""


R = TypeVar("R", bound=Remembers)


class Lineage(Generic[R]):
    """One line of versions, and the trainer at its end.

    `remember` makes an empty replay. `ingested_by_training`: an episode is ingested by the batch
    that learns from it, so that going back undoes both; else coming in is all there is to it, and
    going back undoes the learning alone.
    """

    def __init__(
        self,
        folder: RunFolder,
        trainer: Resumable,
        intake: Intake,
        journal: Journal,
        *,
        remember: Callable[[], R],
        ingested_by_training: bool = True,
    ) -> None:
        self._remember = remember
        self._ingested_by_training = ingested_by_training
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
        self.session = 0
        """The first number that this session can commit; a rollback begins another session."""
        self.mode = ""
        """`learn`: the policy decided in the match that came in last; `shadow`: the rules did."""
        self.scores: tuple[score_list.Score, ...] = ()
        """How versions played, in the episodes that were ingested."""
        self.comparisons: tuple[Comparison, ...] = ()
        """What the rewards of the last segments are measured against."""

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
        self.session = self.taken + 1
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
        self._restore(versions.head())
        self._hold_all_again()
        self.followed = self.counters.get(ROLLBACK, 0)
        if self.parent is not None:
            finish_promotion(self._folder, self.parent)
        self._intake.resume(ingested)

    def go_back_to(self, number: int | None) -> None:
        """The trainer, the counters and the replay as they were at a version."""
        another_line = number != self.parent
        self._restore(number)
        if self._ingested_by_training:
            self._intake.drop_uncommitted()
            self._hold_all_again()
        if another_line:
            self.session = self.taken + 1
            self.scores = score_list.closed(self.scores)

    def _restore(self, number: int | None) -> None:
        versions = self._folder.versions
        self.parent = number
        self.counters: dict[str, int] = {}
        self.metrics: dict[str, float] = {}
        self.rng = np.random.default_rng([self._config.seed, number or 0])
        if number is None:
            self._trainer.restore(None, what="a fresh start")
            return
        manifest = versions.manifest(number)
        contents = {name: versions.read(manifest, name) for name in manifest.files}
        self._trainer.restore(contents, what=f"version {number}")
        self.counters = dict(manifest.counters)
        self.metrics = dict(manifest.metrics)

    def _hold_all_again(self) -> None:
        self.replay = self._remember()
        self.scores = scores_of(self._folder)
        self.comparisons = comparisons_of(self._folder)
        if self.parent is None:
            return
        # How often an episode was sampled is not undone by going back: the newest version knows.
        versions = self._folder.versions
        newest = versions.head() or self.parent
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

    def follow_rollback(self) -> bool:
        """If a person rolled the champion back: learn on from there, and ingest nothing again."""
        champion = self._folder.pointers.read("champion")
        if champion is None or not champion.pinned or champion.sequence <= self.followed:
            return False
        self.followed = champion.sequence
        try:
            self._folder.versions.verify(champion.version)
        except (FileFormatError, OSError) as error:
            self._problem("registry", f"cannot learn on from version {champion.version}: {error}")
            return False
        self.go_back_to(champion.version)
        return True

    def played(self, episode: Episode) -> None:
        """Count an episode that was ingested for the version that decided in it.

        What the rules decided says nothing of the version that looked on.
        """
        self.mode = "learn" if 2 * episode.sampled.sum() > len(episode) else "shadow"
        version = int(episode.versions[-1])
        if self.mode == "shadow":
            return
        known = episode.rewards[episode.taught]
        if not episode.truncated:
            won = episode.meta.outcome is Outcome.VICTORY
            self.scores = score_list.with_match(
                self.scores, version, won=won, reward=float(known.sum())
            )
        elif len(known):
            self.scores = score_list.with_rewards(self.scores, version, [float(known.mean())])
        if episode.bootstrap is not None:
            self.comparisons = with_comparison(
                self.comparisons, compared(episode, self._folder.spec.actions)
            )

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
            session=self.session,
            mode=self.mode,
            scores=self.scores,
            comparisons=self.comparisons,
        )
        self.parent = self.taken = manifest.number
        self.total = total
        return manifest, promoted

    def tidy(self) -> None:
        """Remove versions and archived episodes beyond the limits."""
        if prune(self._folder):
            self.scores = score_list.thinned(self.scores, self._folder.versions.numbers())
        held = {one.name for one in self.replay.held.values()}
        self._intake.spool.prune(self._folder.config.spool, keep=held)

    def _problem(self, where: str, message: str) -> None:
        self._journal.write(events.Problem(where=where, message=message))
