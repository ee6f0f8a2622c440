"""The continuous learner: behind a server, from the spool into a replay, a batch every interval.

An episode is ingested when its items are held, not when they are learned from. The next version
names it, and only then is it archived, so that a crash at any point neither loses it nor ingests it
twice. At most `continuous.samples_per_insert` samples are drawn for an item; then the learner
journals that it waits for experience, since going on would be memorising.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import FileFormatError, NotFinite
from understudy.experience.episode import Episode
from understudy.gates.decision import DecisionGate, OpenGate
from understudy.learner.background import BackgroundLearner
from understudy.learner.batch import Batch
from understudy.learner.continuous.batches import Ready, lay_out
from understudy.learner.continuous.item_replay import Drawn, ItemReplay, UncountedEpisodes
from understudy.learner.continuous.items import decisions
from understudy.learner.continuous.metrics import (
    BatchProgress,
    Collapse,
    entropy_bound,
    entropy_share,
    entropy_weight,
)
from understudy.policy.weights import Weights
from understudy.registry.checkpoints import STEPS, Resumable
from understudy.registry.retention import GOOD
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_INGEST_AT_ONCE = 64
_DECAY_BATCHES = 100
_DECISIONS_A_MATCH = 40
"""A served game has no matches, so `learner.imitation_fade_matches` counts as so many decisions of
policies in batches each. Measured on the game of benchmarks/serve_takeover.py, at 200 decisions a
second of which a fifth is practice: where nothing is imitated after 2,000 of them, a version passes
the rules after 75 s, after 8,000 it takes 200 s, and with imitation for ever it never does."""
_UPDATES, _COLLAPSES, _OWN = "updates", "collapses", "own"
"""Counters of versions: batches, collapses so far, and decisions of policies in all batches."""


def imitation_left(own: int, *, fade_matches: float) -> float:
    """The share of imitation that is left once batches held so many decisions of policies.

    This is the only fade of a served game: batches are laid out by it, and `Trainer.train_items`
    weighs what is imitated as it is there.

    The rules show one action a situation, so a policy that only imitates them cannot pass them. Its
    own decisions show others: as they come in, imitation fades.
    """
    return max(1.0 - own / (_DECISIONS_A_MATCH * fade_matches), 0.0)


class ItemTrainer(Resumable, Protocol):
    """What is trained behind a server: batches of items, at a rate that the learner sets."""

    def train_items(
        self,
        batch: Batch,
        *,
        new: Sequence[Episode],
        learning_rate: float,
        entropy_weight: float,
        keep: bool = True,
        by_evidence: bool = False,
        champion: Weights | None = None,
    ) -> tuple[dict[str, float], NDArray]:
        """Learn from a batch; metrics, and how much each column [B] surprised.

        `new` are episodes that came in since the last batch; without `keep` it is only tried. The
        rest is what `Trainer.train` takes.
        `NotFinite` if it went wrong.
        """


class ContinuousLearner(BackgroundLearner[ItemReplay]):
    """The learner behind a server."""

    _trainer: ItemTrainer

    def __init__(
        self,
        folder: RunFolder,
        trainer: ItemTrainer,
        journal: Journal,
        gate: DecisionGate | None = None,
    ) -> None:
        self._continuous = folder.config.continuous
        super().__init__(
            folder,
            trainer,
            journal,
            empty_replay=lambda: ItemReplay(folder.spec, folder.config, folder.clock),
            ingested_by_training=False,
            max_age_s=self._continuous.max_age_s,
        )
        judges = self._continuous.revalidate and not isinstance(gate, OpenGate | None)
        step = self._config.minibatches
        self._columns = -(-self._continuous.batch // step) * step
        self._lay_out = partial(
            lay_out, spec=folder.spec, config=folder.config, columns=self._columns,
            gate=gate if judges else None,
        )  # fmt: skip
        self._progress = BatchProgress(journal, folder.clock)
        self._collapse = Collapse(self._continuous.entropy_floor)
        self._replay.remember(self._counters)
        self._collapses = self._counters.get(_COLLAPSES, 0)
        self._good = self._counters.get(GOOD, 0)
        self._retreats = 0
        self._uncounted = UncountedEpisodes()
        self._counts = True
        """Whether the normaliser still counts what comes in (`_broken`)."""
        self._learned = False
        """Something, since the last version."""
        self._waiting = False
        self._next_at = -float("inf")

    @property
    def learning_rate(self) -> float:
        """By the schedule alone: it decays with the batches and halves for everything that went
        wrong. How far a batch moved the policy does not change it, unlike in the ring."""
        c, batches = self._config, self._counters.get(_UPDATES, 0)
        decayed = c.learning_rate * self._continuous.learning_rate_decay ** (
            batches // _DECAY_BATCHES
        )
        return max(decayed * 0.5 ** (self._collapses + self._retreats), c.learning_rate_min)

    @property
    def imitation(self) -> float:
        """The share of imitation that is left."""
        own = self._counters.get(_OWN, 0)
        return imitation_left(own, fade_matches=self._config.imitation_fade_matches)

    @property
    def _by_evidence(self) -> bool:
        """Not once a person serves the newest version of a run that was promoted by evidence."""
        auto = self._folder.config.live.promotion == "auto"
        return auto and self._folder.by_evidence

    @property
    def max_lag(self) -> int | None:
        """How many versions ago a decision may have been made and still train the policy.

        By evidence a version may play for hours while others follow each other every second: then
        its age says nothing, and `learner.max_behaviour_kl` decides in its place.
        """
        return None if self._by_evidence else self._config.max_version_lag

    def work(self, *, hurry: bool = False) -> bool:
        """Take in what waits, learn from one batch if it is time, publish. True: there is more.

        In a hurry nothing is begun: what waits, waits on disk for the next learner.
        """
        if hurry:
            return False
        if self._follow_rollback():
            self._learned = False
            self._good = self._counters.get(GOOD, 0)  # of that line, not of the one left
            self._uncounted.give_back()
            self._collapse.forget()
        more = self._take_in()
        if self._search_poison():
            return True
        if self._clock.monotonic() >= self._next_at:
            self._learn()
        if self._learned and self._may_publish_in_s() <= 0.0:
            self._publish()
        if self._progress.due():
            self._tell()
        return more

    def wait_s(self) -> float:
        publish_s = self._may_publish_in_s() if self._learned else float("inf")
        learn_s = self._next_at - self._clock.monotonic()
        return publish_s if self._waiting else min(publish_s, learn_s)

    def publish_rest(self) -> None:
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
            self._ingest(name, episode, samples=0)
            if self._counts:
                self._uncounted.add(name, episode)
            self._progress.came_in(1)

    # --- learning ------------------------------------------------------------------------------

    def _learn(self) -> None:
        epochs = self._config.epochs  # each pass is a sample of everything in the batch
        room = self._replay.ready(times=epochs)
        if room < self._continuous.min_batch:
            self._wait()
            return
        self._waiting = False
        started = self._clock.monotonic()
        self._next_at = started + self._continuous.training_interval_s
        drawn = self._replay.draw(self._rng, min(self._continuous.batch, room), times=epochs)
        names = tuple(sorted({*self._replay.names(drawn.slots), *self._uncounted.names}))
        self._intake.suspects.attempt(names)  # before the gate looks: it may be what fails
        ready = self._lay_out(
            drawn.items,
            version=self.version,
            weights=drawn.weights,
            max_lag=self.max_lag,
            imitation=self.imitation,
        )
        try:
            metrics, surprise = self._train(ready.batch, new=self._uncounted.take())
        except NotFinite as error:
            self._retreat(names, str(error), ready.batch)
            return
        self._intake.suspects.succeeded(names)
        self._retreats = 0
        self._learned = True
        self._replay.reprioritise(drawn.slots, surprise[: len(drawn.slots)])
        self._count(drawn, ready, metrics, self._clock.monotonic() - started)
        if self._collapse.add(self._metrics.get("entropy_share")):
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
        weight = entropy_weight(self._config.entropy_weight, self._collapses)
        return self._trainer.train_items(
            batch,
            new=new,
            learning_rate=self.learning_rate,
            entropy_weight=weight,
            keep=keep,
            **self._judged(),
        )

    def _count(self, drawn: Drawn, ready: Ready, metrics: dict[str, float], seconds: float) -> None:
        counters = self._counters
        own = int((drawn.items["sampled"] & decisions(drawn.items)).sum())
        for key, value in ((STEPS, int(metrics["steps"])), (_UPDATES, 1), (_OWN, own)):
            counters[key] = counters.get(key, 0) + value
        batch = ready.batch
        largest = entropy_bound(self._folder.spec.actions, batch.legal, batch.valid)
        share = entropy_share(metrics["entropy"], largest)
        if share is not None:
            metrics["entropy_share"] = share
        self._metrics = metrics
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
        healthy = self._collapse.healthy(self._metrics.get("entropy_share"))
        good = self._checkpoints.next if healthy else self._good
        self._counters |= {**self._replay.totals, _COLLAPSES: self._collapses, GOOD: good}
        self._tell()  # what came in is told before it is part of a version
        manifest = self._commit()
        self._uncounted.keep()
        self._good, self._learned = good, False
        return manifest.number

    def _tell(self) -> None:
        self._progress.tell(buffer=len(self._replay), samples_per_insert=self.samples_per_insert)

    # --- when something goes wrong -------------------------------------------------------------

    def _retreat(self, names: tuple[str, ...], message: str, batch: Batch) -> None:
        """Go back to the last version, with a smaller learning rate. Suspects are the episodes that
        came in since and those of the batch."""
        self._problem("training", message)
        self._retreats += 1
        self._learned = False
        self._go_back_to(self.version)
        self._uncounted.give_back()
        self._journal.write(
            events.RolledBack(reason="not finite", version=self.version, to=self.version)
        )
        if self._broken(batch):
            self._intake.suspects.succeeded(names)
            self._counts = False
            self._uncounted.clear()
            words = (
                "cannot be fitted again, after absurd numbers; learning goes on with it as it is"
            )
            self._problem("training", f"the normaliser of version {self.version} {words}")
        else:
            self._intake.suspects.failed(names)

    def _broken(self, batch: Batch) -> bool:
        """Whether a batch fails because of what the last version has counted: it fails with zeros
        in place of all that came in since. Then no new episode is to blame."""
        if not self._uncounted.names:
            return False
        try:
            self._train(batch, keep=False)
        except NotFinite:
            return False  # the batch itself is at fault, whatever is counted
        try:
            self._train(batch, new=self._uncounted.emptied(), keep=False)
        except NotFinite:
            return True
        return False

    def _fall_back(self) -> None:
        """After a collapse: publish the last good version again, under a new number.

        The head of a registry is its highest number, so the next learner goes on from there too.
        Where no good version is known, the trainer stays as it is. In any case the entropy bonus
        is larger and the learning rate is smaller from here on.
        """
        collapsed = self.version
        self._collapses += 1
        self._collapse.forget()
        try:
            if not self._good:
                raise FileFormatError("no version before it is known to be good")
            self._folder.versions.verify(self._good)
        except (FileFormatError, OSError) as error:
            self._problem("training", f"the policy collapsed, and {error}")
            return
        good = self._good
        self._go_back_to(good)
        self._uncounted.give_back()
        number = self._publish()
        self._journal.write(
            events.RolledBack(reason="collapse", version=collapsed, to=good, published=number)
        )

    def _search_poison(self) -> bool:
        """One step towards the episode that made a batch fail; False: no episode is suspected.

        Suspects are the episodes that were drawn and those that the normaliser counted: either can
        make training fail. They are tried alone, in ever smaller groups (`intake.Suspects`). Trying
        is not learning: no sample is counted, and no episode is condemned for a neighbour. A try
        that kills the process is counted as a failure by the next start.
        """
        intake, suspects = self._intake, self._intake.suspects
        group = suspects.next_group()
        if group is None:
            return False
        poison = suspects.poison()
        if poison is not None:
            self._replay.discard(poison)
            self._uncounted.discard(poison)
            intake.condemn(poison)
            return True
        self._hold(intake.named(group.names))  # a death has left them in the buffer
        gone = set(group.names) - set(self._replay.names()) - set(self._uncounted.names)
        for name in gone:
            suspects.forget(name)
        if gone:
            return True
        suspects.attempt(group.names)
        try:
            self._try(group.names)
        except NotFinite as error:
            self._problem("training", str(error))
            suspects.failed(group.names)
        else:
            suspects.succeeded(group.names)
        return True

    def _try(self, names: Sequence[str]) -> None:
        """Raise `NotFinite` if training on these files fails, or counting those that the normaliser
        has not counted yet; the trainer stays as it is."""
        items, new = self._replay.of(names), self._uncounted.of(names)
        for start in range(0, max(len(items["length"]), 1), self._columns):
            part = {key: array[start : start + self._columns] for key, array in items.items()}
            ones = np.ones(len(part["length"]), np.float32)
            batch = self._lay_out(
                part, version=self.version, weights=ones, max_lag=self.max_lag
            ).batch
            self._train(batch, new=new, keep=False)
