"""The ring's learner: from the spool to the registry, safe to kill at any point.

The order that makes it safe: load, train, commit (which names what was ingested), archive. Whatever
a crash interrupts is finished or repeated by the next start: an episode that a version names is
archived, never trained on again; one that no version names is still in the buffer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from understudy.core.errors import NotFinite
from understudy.experience.episode import Episode
from understudy.experience.episode_replay import EpisodeReplay
from understudy.learner.background import BackgroundLearner
from understudy.learner.batch import version_lags
from understudy.learner.slow_games import batch_settings
from understudy.policy.weights import Weights
from understudy.registry.checkpoints import MATCHES, STEPS, Resumable
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import Manifest
from understudy.telemetry import events
from understudy.telemetry.journal import Journal


class EpisodeTrainer(Resumable, Protocol):
    """What the ring trains: whole episodes."""

    def train(
        self,
        new: Sequence[Episode],
        replayed: Sequence[Episode],
        *,
        version: int,
        by_evidence: bool = False,
        champion: Weights | None = None,
    ) -> dict[str, float]:
        """Learn from a batch and say how it went; `NotFinite` if it went wrong."""

    def slow_down(self) -> None:
        """Take smaller steps from here on."""


class RingLearner(BackgroundLearner[EpisodeReplay]):
    """The learner beside a bot: whole matches, each new one as soon as it is there."""

    _trainer: EpisodeTrainer

    def __init__(self, folder: RunFolder, trainer: EpisodeTrainer, journal: Journal) -> None:
        config = folder.config.learner
        super().__init__(
            folder,
            trainer,
            journal,
            empty_replay=lambda: EpisodeReplay(
                capacity=config.replay_capacity,
                limit=config.samples_per_insert,
                priority=config.priority,
                gamma=config.gamma,
                lam=config.target_lambda,
            ),
            ingested_by_training=True,
        )
        self._retreats = 0
        self._gather_until = float("inf")

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
        return min(self.publish_in_s(), self._gather_until - self._clock.monotonic())

    def publish_in_s(self) -> float:
        """Seconds until the next version may be published; infinite if there is nothing new."""
        return self._may_publish_in_s() if self._intake.uncommitted else float("inf")

    def publish(self) -> Manifest:
        """Commit what was learned since the last version, then archive what it was learned from."""
        return self._commit()

    def publish_rest(self) -> None:
        if self._intake.uncommitted:
            self.publish()

    # --- learning ------------------------------------------------------------------------------

    def _gathered(self, waiting: int) -> bool:
        """Whether to learn now, or to wait a moment for the batch to fill."""
        now = self._clock.monotonic()
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
        new = list(batch.values())
        settings = batch_settings(self._config, new, by_evidence=self._by_evidence)
        # Suspects are tried alone: with a poisonous neighbour, good ones would be condemned too.
        others = 0 if suspected else settings.replay_matches
        replayed = self._replay.sample(self._rng, others, times=settings.epochs)
        tried = tuple(batch)
        intake.suspects.attempt(tried)
        started = self._clock.monotonic()
        try:
            report = self._trainer.train(new, replayed, version=self.version, **self._judged())
        except NotFinite as error:
            self._retreat(tried, str(error))
            return True
        intake.suspects.succeeded(tried)
        self._retreats = 0
        for name, episode in batch.items():
            self._ingest(name, episode, samples=settings.epochs)
        self._count(batch, replayed, report, self._clock.monotonic() - started)
        return True

    def _retreat(self, tried: tuple[str, ...], message: str) -> None:
        """Go back to the last version, with smaller steps; the batch's episodes are suspects."""
        self._problem("training", message)
        self._intake.suspects.failed(tried)
        self._go_back_to(self.version)
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
        for key, value in ((MATCHES, len(batch)), (STEPS, steps), ("updates", 1)):
            self._counters[key] = self._counters.get(key, 0) + value
        self._metrics = report
        self._journal.write(
            events.BatchTrained(
                matches=len(batch),
                replayed=len(replayed),
                steps=steps,
                seconds=seconds,
                samples_per_insert=self.samples_per_insert,
                version_lag=version_lags(batch.values(), self.version),
                **report,
            )
        )
