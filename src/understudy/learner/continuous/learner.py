"""The continuous learner: behind a server, from the spool into a replay, a batch every interval.

Coming in is one thing and being learned from another. An episode is ingested when its items are
held; the next version names it, and only then is it archived, so that a death at any point neither
loses it nor takes it in twice. Never more is sampled than `continuous.samples_per_insert` allows:
then it says that it waits for experience, since going on would be memorising.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import FileFormatError, NotFinite
from understudy.experience.episode import Episode
from understudy.gates.decision import DecisionGate, OpenGate
from understudy.learner.batch import Batch
from understudy.learner.continuous.batches import Ready, lay_out
from understudy.learner.continuous.collapse import (
    Collapse,
    entropy_bound,
    entropy_share,
    entropy_weight,
)
from understudy.learner.continuous.item_replay import Drawn, ItemReplay
from understudy.learner.continuous.poison_search import hunt
from understudy.learner.continuous.progress import BatchProgress
from understudy.learner.continuous.uncounted_episodes import UncountedEpisodes
from understudy.learner.intake import Intake
from understudy.learner.lineage import Lineage
from understudy.learner.publisher import Publisher
from understudy.learner.trainer_protocol import ItemTrainer
from understudy.registry.retention import GOOD
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_INGEST_AT_ONCE = 64
_DECAY_BATCHES = 100
_UPDATES, _COLLAPSES = "updates", "collapses"
"""Counters of versions: batches, and collapses so far."""


class ContinuousLearner:
    """One learner at work on the run folder of a server."""

    def __init__(
        self,
        folder: RunFolder,
        trainer: ItemTrainer,
        journal: Journal,
        gate: DecisionGate | None = None,
    ) -> None:
        self._folder = folder
        self._config = folder.config.continuous
        self._learner = folder.config.learner
        self._clock = folder.clock
        self._trainer = trainer
        self._journal = journal
        judges = self._config.revalidate and not isinstance(gate, OpenGate | None)
        step = self._learner.minibatches
        self._columns = -(-self._config.batch // step) * step
        self._lay_out = partial(
            lay_out, spec=folder.spec, config=folder.config, columns=self._columns,
            gate=gate if judges else None,
        )  # fmt: skip
        self._intake = Intake(folder, journal, max_age_s=self._config.max_age_s)
        self._lineage = Lineage(
            folder, trainer, self._intake, journal,
            remember=lambda: ItemReplay(folder.spec, folder.config, folder.clock),
            ingested_by_training=False,
        )  # fmt: skip
        self._publisher = Publisher(folder, self._lineage, self._intake, journal)
        self._progress = BatchProgress(journal, folder.clock)
        self._collapse = Collapse(self._config.entropy_floor)
        self._lineage.resume()
        self._items.remember(self._lineage.counters)
        self._collapses = self._lineage.counters.get(_COLLAPSES, 0)
        self._good = self._lineage.counters.get(GOOD, 0)
        self._retreats = 0
        self._new = UncountedEpisodes()
        self._counts = True
        """Whether the normaliser still counts what comes in (`_broken`)."""
        self._learned = False
        """Something, since the last version."""
        self._waiting = False
        self._next_at = -float("inf")

    @property
    def _items(self) -> ItemReplay:
        return self._lineage.replay

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
        """How often an item was sampled on average, since the run began."""
        return self._items.samples_per_insert

    @property
    def drain_s(self) -> float:
        """How long stopping may take."""
        return self._learner.drain_s

    @property
    def learning_rate(self) -> float:
        """By the schedule alone: it decays with the batches and halves for everything that went
        wrong. How far a batch moved the policy does not change it, unlike in the ring."""
        c, batches = self._learner, self._lineage.counters.get(_UPDATES, 0)
        decayed = c.learning_rate * self._config.learning_rate_decay ** (batches // _DECAY_BATCHES)
        return max(decayed * 0.5 ** (self._collapses + self._retreats), c.learning_rate_min)

    def pending(self) -> int:
        """How many episodes wait to come in."""
        return len(self._intake.waiting())

    def work(self, *, hurry: bool = False) -> bool:
        """Take in what waits, learn from one batch if it is time, publish. True: there is more.

        In a hurry nothing is begun: what waits, waits on disk for the next learner.
        """
        if hurry:
            return False
        if self._lineage.follow_rollback():
            self._learned = False
            self._good = self._lineage.counters.get(GOOD, 0)  # of that line, not of the one left
            self._new.give_back()
            self._collapse.forget()
        more = self._take_in()
        if hunt(
            self._intake, self._items, self._new, self._journal, hold=self._hold, attempt=self._try
        ):
            return True
        if self._clock.monotonic() >= self._next_at:
            self._learn()
        if self._learned and self._publisher.in_s() <= 0.0:
            self._publish()
        if self._progress.due():
            self._tell()
        return more

    def wait_s(self) -> float:
        """Seconds until `work` has something to do without being woken; may be infinite."""
        publish_s = self._publisher.in_s() if self._learned else float("inf")
        learn_s = self._next_at - self._clock.monotonic()
        return publish_s if self._waiting else min(publish_s, learn_s)

    def publish_rest(self) -> None:
        """Publish whatever is not published yet, without waiting for the interval."""
        if self._learned:
            self._publish()
        self._tell()

    # --- coming in -----------------------------------------------------------------------------

    def _take_in(self) -> bool:
        """Hold what waits, so many files a turn; True: there are more."""
        waiting = self._intake.look(_INGEST_AT_ONCE)
        names = self._intake.oldest(_INGEST_AT_ONCE)
        self._hold(names)
        return waiting > len(names)

    def _hold(self, names: Sequence[str]) -> None:
        for name, episode in self._intake.load(names).items():
            self._items.insert(name, episode)
            self._intake.uncommitted[episode.meta.id] = name
            self._lineage.played(episode)
            if self._counts:
                self._new.add(name, episode)
            self._progress.came_in(1)

    # --- learning ------------------------------------------------------------------------------

    def _learn(self) -> None:
        epochs = self._learner.epochs  # each pass is a sample of everything in the batch
        room = self._items.ready(times=epochs)
        if room < self._config.min_batch:
            self._wait()
            return
        self._waiting = False
        started = self._clock.monotonic()
        self._next_at = started + self._config.training_interval_s
        drawn = self._items.draw(self._lineage.rng, min(self._config.batch, room), times=epochs)
        names = tuple(sorted({*self._items.names(drawn.slots), *self._new.names}))
        self._intake.suspects.attempt(names)  # before the gate looks: it may be what fails
        ready = self._lay_out(drawn.items, version=self.version, weights=drawn.weights)
        try:
            metrics, surprise = self._train(ready.batch, new=self._new.take())
        except NotFinite as error:
            self._retreat(names, str(error), ready.batch)
            return
        self._intake.suspects.succeeded(names)
        self._retreats = 0
        self._learned = True
        self._items.reprioritise(drawn.slots, surprise[: len(drawn.slots)])
        self._count(drawn, ready, metrics, self._clock.monotonic() - started)
        if self._collapse.add(self._lineage.metrics.get("entropy_share")):
            self._fall_back()

    def _wait(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._tell()
            self._journal.write(
                events.WaitingForExperience(samples_per_insert=self.samples_per_insert)
            )

    def _train(
        self, batch: Batch, *, new: Sequence[Episode] = (), keep: bool = True
    ) -> tuple[dict[str, float], NDArray]:
        weight = entropy_weight(self._learner.entropy_weight, self._collapses)
        return self._trainer.train_items(
            batch, new=new, learning_rate=self.learning_rate, entropy_weight=weight, keep=keep
        )

    def _count(self, drawn: Drawn, ready: Ready, metrics: dict[str, float], seconds: float) -> None:
        counters = self._lineage.counters
        for key, value in (("steps", int(metrics["steps"])), (_UPDATES, 1)):
            counters[key] = counters.get(key, 0) + value
        batch = ready.batch
        largest = entropy_bound(self._folder.spec.actions, batch.legal, batch.valid)
        share = entropy_share(metrics["entropy"], largest)
        if share is not None:
            metrics["entropy_share"] = share
        self._lineage.metrics = metrics
        self._progress.batch(
            metrics,
            items=len(drawn.slots),
            skipped=ready.skipped,
            judged=ready.judged,
            agreed=ready.agreed,
            seconds=seconds,
        )

    # --- publishing ----------------------------------------------------------------------------

    def _publish(self) -> int:
        """The number of the version that it became."""
        healthy = self._collapse.healthy(self._lineage.metrics.get("entropy_share"))
        good = self._lineage.taken + 1 if healthy else self._good
        self._lineage.counters |= {
            **self._items.totals, _COLLAPSES: self._collapses, GOOD: good
        }  # fmt: skip
        self._tell()  # what came in is told before it is part of a version
        manifest = self._publisher.publish()
        self._new.keep()
        self._good, self._learned = good, False
        return manifest.number

    def _tell(self) -> None:
        self._progress.tell(buffer=len(self._items), samples_per_insert=self.samples_per_insert)

    # --- when something goes wrong -------------------------------------------------------------

    def _retreat(self, names: tuple[str, ...], message: str, batch: Batch) -> None:
        """Back to the last version, slower, and suspicious of all that has come in since and of
        what was in the batch."""
        self._journal.write(events.Problem(where="training", message=message))
        self._retreats += 1
        self._learned = False
        self._lineage.go_back_to(self._lineage.parent)
        self._new.give_back()
        self._journal.write(
            events.RolledBack(reason="not finite", version=self.version, to=self.version)
        )
        if self._broken(batch):
            self._intake.suspects.succeeded(names)
            self._counts = False
            self._new.clear()
            words = (
                "cannot be fitted again, after absurd numbers; learning goes on with it as it is"
            )
            self._journal.write(
                events.Problem(
                    where="training", message=f"the normaliser of version {self.version} {words}"
                )
            )
        else:
            self._intake.suspects.failed(names)

    def _broken(self, batch: Batch) -> bool:
        """Whether a batch fails for what the last version has counted itself, long ago: with zeros
        in place of everything that came in since. Then no episode of today is to blame."""
        if not self._new.names:
            return False
        try:
            self._train(batch, keep=False)
        except NotFinite:
            return False  # the batch itself is at fault, whatever is counted
        try:
            self._train(batch, new=self._new.emptied(), keep=False)
        except NotFinite:
            return True
        return False

    def _fall_back(self) -> None:
        """The policy stopped choosing: the last good version plays again, under a new number.

        A number of its own, since the head of a registry is its highest: whoever starts next goes
        on from there too. Where no good version is known, nothing is given up; from here on
        variety is worth more and learning is slower in any case.
        """
        collapsed = self.version
        self._collapses += 1
        self._collapse.forget()
        try:
            if not self._good:
                raise FileFormatError("no version before it is known to be good")
            self._folder.versions.verify(self._good)
        except (FileFormatError, OSError) as error:
            self._journal.write(
                events.Problem(where="training", message=f"the policy collapsed, and {error}")
            )
            return
        good = self._good
        self._lineage.go_back_to(good)
        self._new.give_back()
        number = self._publish()
        self._journal.write(
            events.RolledBack(reason="collapse", version=collapsed, to=good, published=number)
        )

    def _try(self, names: Sequence[str]) -> None:
        """Whether these files can be learned from, and counted by the normaliser if they are yet to
        be; nothing else comes of it."""
        items, new = self._items.of(names), self._new.of(names)
        for start in range(0, max(len(items["length"]), 1), self._columns):
            part = {key: array[start : start + self._columns] for key, array in items.items()}
            ones = np.ones(len(part["length"]), np.float32)
            batch = self._lay_out(part, version=self.version, weights=ones).batch
            self._train(batch, new=new, keep=False)
