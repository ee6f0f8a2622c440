"""Keeps what a trainer learns: versions with their counters, and takes them up again.

A version holds parameters, optimiser, normaliser, random key and counters. It is all that a session
of training leaves behind and all that it goes on from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from understudy.core import files
from understudy.core.errors import NotFinite
from understudy.learner.commit import ROLLBACK, commit, finish_promotion
from understudy.learner.trainer import Trainer
from understudy.registry import scores as score_list
from understudy.registry.retention import prune, scores_of
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import LEARNER, WEIGHTS
from understudy.supervise.budget import Budget
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

STEPS, MATCHES = "steps", "matches"
"""Counters that every session of training has."""
MODE = "train"
"""Of the versions that training makes."""
_TRIES = 3

T = TypeVar("T")


class ResumePoint(NamedTuple):
    """Where a run goes on."""

    version: int
    head: int
    """The newest version; another one where a person rolled back."""
    rollback: int
    """The last rollback that is followed, by its number in the pointer."""


def resume_point(folder: RunFolder) -> ResumePoint | None:
    """The version that a session goes on from; None where there is none yet."""
    head = folder.versions.head()
    if head is None:
        return None
    followed = folder.versions.manifest(head).counters.get(ROLLBACK, 0)
    champion = folder.pointers.read("champion")
    if champion is not None and champion.pinned and champion.sequence > followed:
        # A person rolled back: go on from there, once. What came of it may be resumed again.
        return ResumePoint(champion.version, head, champion.sequence)
    return ResumePoint(head, head, followed)


class Keeper:
    """Between one trainer and one run folder; use it under the learner's lock."""

    def __init__(self, folder: RunFolder, journal: Journal, trainer: Trainer) -> None:
        self._folder = folder
        self._journal = journal
        self._trainer = trainer
        self._taken = 0
        self._followed = 0
        self._failures = 0
        self._caution = 1.0
        self._bonus = 1.0
        """The share of the entropy bonus that the session begins with, at a share of 0."""
        self._session = 1
        self._scores: tuple[score_list.Score, ...] = ()
        self.version = 0
        self.kept: dict[str, int] = {}
        """Counters of that version."""
        self.rolled_back = False
        """Whether there is a newer version than that: a person went back, or it is damaged."""
        self.extras: dict[str, bytes] = {}
        """What that version holds beside what the trainer learned, by file name."""

    @property
    def next(self) -> int:
        """The number that the next version gets."""
        return self._taken + 1

    def resume(self) -> Mapping[str, int]:
        """The trainer as the version that is gone on from left it; its counters, or none."""
        versions, config = self._folder.versions, self._folder.config
        files.sweep(versions.root, older_than_s=0.0)  # we hold the lock: nobody else commits here
        # Counted once: a number that appears from now on is another learner's, and fences us off.
        self._taken = max(versions.numbers(), default=0)
        self._session = self.next
        self._scores = score_list.closed(scores_of(self._folder))
        point = resume_point(self._folder)
        if point is None:
            return {}
        finish_promotion(self._folder, point.head)
        self.version, self._followed = point.version, point.rollback
        self.rolled_back = self.version != self._taken
        manifest = versions.manifest(self.version)
        contents = {name: versions.read(manifest, name) for name in manifest.files}
        self._trainer.restore(contents, what=f"version {self.version}")
        self.extras = {name: contents[name] for name in contents.keys() - {WEIGHTS, LEARNER}}
        learner = config.learner
        if config.train.schedule == "constant":
            self._trainer.learning_rate = learner.learning_rate
        bounded = max(self._trainer.learning_rate, learner.learning_rate_min)
        self._trainer.learning_rate = min(bounded, learner.learning_rate_max)
        self.kept = dict(manifest.counters)
        return self.kept

    def begin(self, budget: Budget) -> None:
        """Say what the session's shares are of, after `resume`. Steps are those of the whole run,
        so its schedule goes on by itself. Minutes begin anew: the entropy bonus falls to nothing
        from what the earlier sessions left of it, and is not paid in full once more."""
        self._bonus = 1.0 if budget.minutes is None else self._trainer.entropy_left

    def due(self, steps: int) -> bool:
        """Whether a version should be kept now."""
        return steps - self.kept.get(STEPS, 0) >= self._folder.config.train.checkpoint_steps

    def attempt(self, learn: Callable[[], T]) -> T | None:
        """What `learn` gives, or None where the numbers were not finite: the trainer is as it was,
        and takes smaller steps. The third time in a row the error is raised."""
        try:
            result = learn()
        except NotFinite as error:
            self._journal.write(events.Problem(where="training", message=str(error)))
            self._failures += 1
            if self._failures == _TRIES:
                raise
            self._caution /= 2.0
            self._trainer.slow_down()
            return None
        self._failures = 0
        return result

    def follow_schedule(self, share: float, *, kl: float | None = None) -> float:
        """The learning rate that was; from now on all is as it should be when this share of the
        budget is spent, and the last update moved the policy by `kl`."""
        trainer, learner = self._trainer, self._folder.config.learner
        rate, train = trainer.learning_rate, self._folder.config.train
        if train.schedule == "adaptive" and kl is not None:
            trainer.adapt(kl)
        elif train.schedule == "linear":
            first, last = learner.learning_rate, learner.learning_rate_min
            trainer.learning_rate = self._caution * (first + (last - first) * share)
        if train.entropy_schedule == "linear":
            # A policy that is paid to waver to the end wavers where it is judged, too.
            trainer.entropy_weight = learner.entropy_weight * self.spend_bonus(share)
        return rate

    def spend_bonus(self, share: float) -> float:
        """What is left of the entropy bonus when this share of the budget is spent; noted in the
        next version."""
        self._trainer.entropy_left = self._bonus * (1.0 - share)
        return self._trainer.entropy_left

    def benchmarked(self, *, matches: int, wins: int) -> None:
        """The present version played frozen matches; the next one knows how that went."""
        score = score_list.Score(
            first=self.version, last=self.version, matches=matches, wins=wins, closed=True
        )
        self._scores = (*self._scores, score)

    def returned(self, rewards: Sequence[float]) -> None:
        """Matches ended with these returns on the way to the next version, which knows of them."""
        self._scores = score_list.with_rewards(score_list.closed(self._scores), self.next, rewards)

    def commit(
        self,
        counters: Mapping[str, int],
        metrics: Mapping[str, float],
        *,
        extras: Mapping[str, bytes] | None = None,
    ) -> bool:
        """What was learned becomes the next version, with `extras` as further files of it; False
        where no counter has moved since the last one."""
        moved = {key for key, count in counters.items() if count != self.kept.get(key)}
        if not moved - {ROLLBACK}:
            return False
        manifest, promoted = commit(
            self._folder,
            {**self._trainer.snapshot(), **(extras or {})},
            number=self.next,
            parent=self.version or None,
            ingested={},
            replay={},
            counters={**counters, ROLLBACK: self._followed},
            metrics=metrics,
            session=self._session,
            mode=MODE,
            scores=self._scores,
        )
        self._journal.write(
            events.VersionPublished(
                version=manifest.number,
                parent=manifest.parent,
                matches=counters[MATCHES] - self.kept.get(MATCHES, 0),
                promoted=promoted,
            )
        )
        self.version = self._taken = manifest.number
        self.kept = dict(manifest.counters)
        if prune(self._folder):
            self._scores = score_list.thinned(self._scores, self._folder.versions.numbers())
        return True
