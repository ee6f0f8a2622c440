"""What the loops of learning need of a trainer: to train, to become a version, to go on from one.

`Trainer` is all of it; tests that kill a learner a hundred times have something quicker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from understudy.core.arrays import NDArray
from understudy.experience.episode import Episode
from understudy.learner.batch import Batch


class Resumable(Protocol):
    """What a version can be made of, and made again from it."""

    def snapshot(self) -> dict[str, bytes]:
        """The files of a version."""

    def restore(self, contents: Mapping[str, bytes] | None, *, what: str) -> None:
        """Go on from the files of a version, or from nothing."""


class EpisodeTrainer(Resumable, Protocol):
    """What the ring trains: whole episodes."""

    def train(
        self, new: Sequence[Episode], replayed: Sequence[Episode], *, version: int
    ) -> dict[str, float]:
        """Learn from a batch and say how it went; `NotFinite` if it went wrong."""

    def slow_down(self) -> None:
        """Be more careful from here on."""


class ItemTrainer(Resumable, Protocol):
    """What is trained behind a server: batches of items, at a rate that is told."""

    def train_items(
        self,
        batch: Batch,
        *,
        new: Sequence[Episode],
        learning_rate: float,
        entropy_weight: float,
        keep: bool = True,
    ) -> tuple[dict[str, float], NDArray]:
        """Learn from a batch; metrics, and how much each column [B] surprised.

        `new` are episodes that came in since the last batch; without `keep` it is only tried.
        `NotFinite` if it went wrong.
        """
