"""The background learner: from the spool to the registry, safe to kill at any point.

The order that makes it safe: load, train, commit (which names what was ingested), archive. Whatever
a crash interrupts is finished or repeated by the next start: an episode that a version names is
archived, never trained on again; one that no version names is still in the buffer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from understudy.core.errors import NotFinite
from understudy.experience.episode import Episode
from understudy.experience.episode_replay import EpisodeReplay
from understudy.learner.batch import version_lags
from understudy.learner.intake import Intake
from understudy.learner.lineage import Lineage
from understudy.learner.publisher import Publisher
from understudy.learner.trainer_protocol import EpisodeTrainer
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_TIDY_EVERY = 10


class RingLearner:
    """One learner at work on one run folder."""

    def __init__(self, folder: RunFolder, trainer: EpisodeTrainer, journal: Journal) -> None:
        self._folder = folder
        self._config = folder.config.learner
        self._trainer = trainer
        self._journal = journal
        self._intake = Intake(folder, journal)
        self._lineage = Lineage(folder, trainer, self._intake, journal, remember=self._replay)
        self._publisher = Publisher(
            folder, self._lineage, self._intake, journal, tidy_every=_TIDY_EVERY
        )
        self._retreats = 0
        self._gather_until = float("inf")
        self._lineage.resume()

    @property
    def version(self) -> int:
        """The version that the trainer's state descends from; 0: none yet."""
        return self._lineage.parent or 0

    @property
    def total_matches(self) -> int:
        """Episodes ingested by any version, ever."""
        return self._lineage.total

    @property
    def samples_per_insert(self) -> float:
        """How often a match was sampled on average."""
        return self._lineage.replay.samples_per_insert

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
        self._lineage.follow_rollback()
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
        return self._publisher.in_s() if self._intake.uncommitted else float("inf")

    def publish(self) -> Manifest:
        """Commit what was learned since the last version, then archive what it was learned from."""
        return self._publisher.publish()

    def publish_rest(self) -> None:
        """Publish whatever is not published yet, without waiting for the interval."""
        if self._intake.uncommitted:
            self.publish()

    def _replay(self) -> EpisodeReplay:
        config = self._config
        return EpisodeReplay(
            capacity=config.replay_capacity,
            limit=config.samples_per_insert,
            priority=config.priority,
            gamma=config.gamma,
            lam=config.target_lambda,
        )

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
        replayed = self._lineage.replay.sample(self._lineage.rng, others, times=epochs)
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
            self._lineage.replay.insert(name, episode, samples=epochs)
            self._lineage.played(episode)
        self._count(batch, replayed, report, self._folder.clock.monotonic() - started)
        return True

    def _retreat(self, tried: tuple[str, ...], message: str) -> None:
        """Nothing of this batch is kept: back to the last good version, slower, and suspicious."""
        self._journal.write(events.Problem(where="training", message=message))
        self._intake.suspects.failed(tried)
        self._lineage.go_back_to(self._lineage.parent)
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
            self._lineage.counters[key] = self._lineage.counters.get(key, 0) + value
        self._lineage.metrics = report
        self._journal.write(
            events.BatchTrained(
                matches=len(batch),
                replayed=len(replayed),
                steps=steps,
                seconds=seconds,
                samples_per_insert=self._lineage.replay.samples_per_insert,
                version_lag=version_lags(batch.values(), self.version),
                **report,
            )
        )
