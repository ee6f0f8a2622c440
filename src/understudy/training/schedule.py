"""The schedule of a session: learning rate and entropy bonus over the budget, and smaller steps
after numbers that are not finite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from understudy.core.config import Config
from understudy.core.errors import NotFinite
from understudy.learner.trainer import Trainer
from understudy.registry.checkpoints import TRAIN, Checkpoints
from understudy.registry.run_folder import RunFolder
from understudy.supervise.budget import Budget
from understudy.telemetry import events
from understudy.telemetry.journal import Journal

_TRIES = 3

T = TypeVar("T")


def resume_training(
    folder: RunFolder, journal: Journal, trainer: Trainer
) -> tuple[Checkpoints, LearningSchedule]:
    """Restore a fresh trainer from the version that training resumes from, if there is one."""
    checkpoints = Checkpoints(folder, journal, mode=TRAIN)
    checkpoints.resume(trainer, follow=True)
    resumed = checkpoints.version > 0
    return checkpoints, LearningSchedule(folder.config, journal, trainer, resumed=resumed)


class LearningSchedule:
    """Sets a trainer's rates; make it after the trainer was restored, if it is (`resumed`)."""

    def __init__(
        self, config: Config, journal: Journal, trainer: Trainer, *, resumed: bool
    ) -> None:
        self._train = config.train
        self._learner = config.learner
        self._journal = journal
        self._trainer = trainer
        self._failures = 0
        self._caution = 1.0
        self._bonus = 1.0
        """The share of the entropy bonus that the session begins with, at a share of 0."""
        if resumed:
            learner = config.learner
            if config.train.schedule == "constant":
                trainer.learning_rate = learner.learning_rate
            bounded = max(trainer.learning_rate, learner.learning_rate_min)
            trainer.learning_rate = min(bounded, learner.learning_rate_max)

    def begin(self, budget: Budget) -> None:
        """Say what the shares are of. Steps are those of the whole run, so its schedule goes on by
        itself. Minutes begin anew: the entropy bonus falls to nothing from what the earlier
        sessions left of it, and is not paid in full once more."""
        self._bonus = 1.0 if budget.minutes is None else self._trainer.entropy_left

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

    def follow(self, share: float, *, kl: float | None = None) -> float:
        """Set all rates for this share of the budget spent; the learning rate that was.

        `kl`: how far the last update moved the policy.
        """
        trainer, learner = self._trainer, self._learner
        rate = trainer.learning_rate
        if self._train.schedule == "adaptive" and kl is not None:
            trainer.adapt(kl)
        elif self._train.schedule == "linear":
            first, last = learner.learning_rate, learner.learning_rate_min
            trainer.learning_rate = self._caution * (first + (last - first) * share)
        if self._train.entropy_schedule == "linear":
            # A policy that is paid to waver to the end wavers where it is judged, too.
            trainer.entropy_weight = learner.entropy_weight * self.spend_bonus(share)
        return rate

    def spend_bonus(self, share: float) -> float:
        """What is left of the entropy bonus when this share of the budget is spent; noted in the
        next version."""
        self._trainer.entropy_left = self._bonus * (1.0 - share)
        return self._trainer.entropy_left
