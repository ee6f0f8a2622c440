"""What the ring and the continuous learner share: experience comes in, versions go out.

Trainer, counters and replay are always those of one version plus what was learned since. A version
is the only thing that a learner goes back to; how often an episode was sampled is never undone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from understudy.core import files
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.experience.episode import IMPORTED, Episode
from understudy.experience.spool import saved_at
from understudy.learner.intake import Intake
from understudy.learner.scoring import compared, decided_by_policy, scored
from understudy.policy.policy import Policy
from understudy.registry.checkpoints import Checkpoints, Resumable
from understudy.registry.comparisons import with_comparison
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest, ReplayEntry
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_READ_AGAIN_S = 10.0
"""Seconds until a champion that could not be read is tried again."""
_TIDY_EVERY = 10
"""Versions from one removal of old versions and archived episodes to the next."""


class HeldEpisode(Protocol):
    """An episode that may be sampled again."""

    @property
    def name(self) -> str:
        """The name of its file."""

    @property
    def samples(self) -> int:
        """How often it was sampled."""


class LearnerReplay(Protocol):
    """What a learner samples from: whole episodes, or items of them."""

    @property
    def held(self) -> Mapping[str, HeldEpisode]:
        """Episodes that may be sampled again, by id."""

    @property
    def samples_per_insert(self) -> float:
        """How often what came in was sampled, on average."""

    def insert(self, name: str, episode: Episode, *, samples: int) -> object:
        """Hold an episode that has been sampled this often."""


R = TypeVar("R", bound=LearnerReplay)


class BackgroundLearner(ABC, Generic[R]):
    """One learner at work on one run folder; a subclass says when it learns, and from what.

    `empty_replay` makes a replay. `ingested_by_training`: an episode is ingested by the batch that
    learns from it, so that going back undoes both; else an episode is ingested when it comes in,
    and going back undoes the learning alone.
    """

    def __init__(
        self,
        folder: RunFolder,
        trainer: Resumable,
        journal: Journal,
        *,
        empty_replay: Callable[[], R],
        ingested_by_training: bool,
        max_age_s: float | None = None,
    ) -> None:
        self._folder = folder
        self._config = folder.config.learner
        self._champion: tuple[int, Policy | None] = (0, None)
        """The version that evidence chose to play, as last read; None: it cannot be."""
        self._read_champion_at = -float("inf")
        """When that was tried last, by the monotonic clock."""
        self._clock = folder.clock
        self._trainer = trainer
        self._journal = journal
        self._empty_replay = empty_replay
        self._ingested_by_training = ingested_by_training
        self._intake = Intake(folder, journal, max_age_s=max_age_s)
        self._checkpoints = Checkpoints(folder, journal)
        self._published_at = -float("inf")
        """When a version was last published, by the monotonic clock."""
        quarantined = self._intake.spool.quarantined
        for swept in (folder.root, quarantined, *folder.pointers.folders):
            files.sweep(swept)
        ingested = self._checkpoints.ingested()
        self._checkpoints.resume(trainer, follow=False)
        self._begin_at_version()
        self._refill_replay()
        self._intake.resume(ingested, forgotten=self._checkpoints.forgotten)

    @property
    def version(self) -> int:
        """The version that the trainer's state descends from; 0: none yet."""
        return self._checkpoints.version

    @property
    def total_matches(self) -> int:
        """Episodes ingested by any version, ever."""
        return self._checkpoints.total_ingested

    @property
    def samples_per_insert(self) -> float:
        """How often what came in was sampled, on average."""
        return self._replay.samples_per_insert

    @property
    def drain_s(self) -> float:
        """How long stopping may take."""
        return self._config.drain_s

    def pending(self) -> int:
        """How many episodes wait to come in."""
        return len(self._intake.waiting())

    @abstractmethod
    def work(self, *, hurry: bool = False) -> bool:
        """Do what there is to do; True: there is more. In a hurry: before the process ends."""

    @abstractmethod
    def wait_s(self) -> float:
        """Seconds until `work` has something to do without being woken; may be infinite."""

    @abstractmethod
    def publish_rest(self) -> None:
        """Publish whatever is not published yet, without waiting for the interval."""

    @property
    def _by_evidence(self) -> bool:
        """Whether evidence moves the champion."""
        return self._folder.by_evidence

    def _judged(self) -> dict[str, Any]:
        """What the trainer knows of the champion, where evidence moves it: its weights, none while
        the rules play. Elsewhere the newest version plays, and there is nothing to know.

        A champion that cannot be read is a problem that is told once: nothing bounds learning
        until it can. It is tried again now and then.
        """
        if not self._by_evidence:
            return {}
        record = self._folder.pointers.read("champion")
        number = 0 if record is None else record.version
        known, policy = self._champion
        now = self._clock.monotonic()
        unread = policy is None and now - self._read_champion_at >= _READ_AGAIN_S
        if number != known or (number and unread):
            self._read_champion_at = now
            policy = self._readable(number, tell=number != known) if number else None
            self._champion = number, policy
        return {"by_evidence": True, "champion": policy and policy.weights}

    def _readable(self, version: int, *, tell: bool) -> Policy | None:
        """The policy of a version, if its features, actions and network are those of the run."""
        try:
            policy = self._folder.versions.policy(version)
            if policy.spec != self._folder.spec:
                raise RunFolderError(f"version {version} was made for another run")
            return policy
        except (FileFormatError, RunFolderError, OSError) as error:
            if tell:
                self._problem("champion", f"{error}; the learner is not held near it")
            return None

    # --- going back ------------------------------------------------------------------------------

    def _follow_rollback(self) -> bool:
        """If a person rolled the champion back: learn on from there, and ingest nothing again."""
        number = self._checkpoints.rollback()
        if number is None:
            return False
        self._go_back_to(number)
        return True

    def _go_back_to(self, number: int) -> None:
        """The trainer, the counters and the replay as they were at a version; 0: before any."""
        keep_scores = not self._ingested_by_training
        self._checkpoints.go_back_to(self._trainer, number, keep_scores=keep_scores)
        self._begin_at_version()
        if self._ingested_by_training:
            self._intake.drop_uncommitted()
            self._refill_replay()

    def _begin_at_version(self) -> None:
        parent = self._checkpoints.parent
        self._counters = dict(parent.counters) if parent else {}
        """Those of the next version."""
        self._metrics = dict(parent.metrics) if parent else {}
        """Those of the last batch."""
        self._rng = np.random.default_rng([self._config.seed, self.version])

    def _refill_replay(self) -> None:
        self._replay = self._empty_replay()
        if self._checkpoints.parent is None:
            return
        # How often an episode was sampled is not undone by going back: the newest version knows.
        newest = self._folder.versions.head_manifest() or self._checkpoints.parent
        for entry in newest.replay.values():
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

    # --- from episodes to versions ---------------------------------------------------------------

    def _ingest(self, name: str, episode: Episode, *, samples: int) -> None:
        """Hold an episode that was sampled this often; the next version names and scores it.

        What the rules decided says nothing of the version that looked on.
        """
        self._replay.insert(name, episode, samples=samples)
        self._intake.uncommitted[episode.meta.id] = name
        checkpoints = self._checkpoints
        checkpoints.mode = "learn" if decided_by_policy(episode) else "shadow"
        if checkpoints.mode == "shadow":
            return
        checkpoints.scores = scored(checkpoints.scores, episode)
        if episode.bootstrap is not None:
            comparison = compared(episode, self._folder.spec.actions)
            checkpoints.comparisons = with_comparison(checkpoints.comparisons, comparison)

    def _may_publish_in_s(self) -> float:
        """Seconds until the next version may be published; 0 or less: now.

        At most one in `learner.publish_interval_s`: updating is not publishing.
        """
        return self._config.publish_interval_s - (self._clock.monotonic() - self._published_at)

    def _commit(self) -> Manifest:
        """Commit what was learned, then archive what it was learned from; now and then, prune."""
        held = self._replay.held
        manifest = self._checkpoints.commit(
            self._trainer.snapshot(),
            self._counters,
            self._metrics,
            ingested=self._intake.uncommitted,
            replay={key: ReplayEntry(one.name, one.samples) for key, one in held.items()},
        )
        self._published_at = self._clock.monotonic()
        self._intake.committed()
        if manifest.number % _TIDY_EVERY == 0:
            try:
                self._checkpoints.prune()
                names = {one.name for one in self._replay.held.values()}
                self._intake.spool.prune(self._folder.config.spool, keep=names)
                self._keep_bounds()
            except OSError as error:  # housekeeping can wait for the next turn
                self._problem("retention", str(error))
        return manifest

    def _keep_bounds(self) -> None:
        """Of what would grow for ever: ids of removed versions, and the quarantine."""
        most = self._folder.config.retention.remembered_episodes
        count = self._folder.versions.forget_oldest(most=most, keep=_never_forgotten)
        if count:
            message = (
                f"{count:,} of the oldest episodes were forgotten (retention.remembered_episodes = "
                f"{most:,}): none as old as they are is learned from again"
            )
            self._journal.write(events.Note(where="retention", message=message))
        self._intake.prune_quarantine()

    def _problem(self, where: str, message: str) -> None:
        self._journal.write(events.Problem(where=where, message=message))


def _never_forgotten(key: str, name: str) -> bool:
    """An import is dated when it is imported, and a file that a person laid there not at all: their
    age does not tell whether they were learned from."""
    return key.startswith(IMPORTED) or not saved_at(name)
