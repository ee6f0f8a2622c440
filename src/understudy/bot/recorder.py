"""The recorder: the decisions of one match, in arrays that grow."""

from __future__ import annotations

import numpy as np

from understudy.core.arrays import NDArray
from understudy.experience.episode import Episode, Meta
from understudy.policy.spec import PolicySpec

_FIRST_ROWS = 256


class Recorder:
    """A row is a decision. Callers write row `length` of the arrays and then call `advance`."""

    def __init__(self, spec: PolicySpec) -> None:
        self.length = 0
        self.rows = _FIRST_ROWS
        self.observations = np.zeros((self.rows, len(spec.features)), np.float32)
        self.actions = np.zeros((self.rows, len(spec.actions.parts)), np.int32)
        self.log_probs = np.zeros(self.rows, np.float32)
        self.values = np.zeros(self.rows, np.float32)
        self.rewards = np.zeros(self.rows, np.float32)
        self.sampled = np.zeros(self.rows, np.bool_)
        self.versions = np.zeros(self.rows, np.int64)
        self.took_ns = np.zeros(self.rows, np.int64)
        self.legal: NDArray | None = None
        self.cuts: NDArray | None = None
        self._options = spec.actions.options

    def allow(self, legal: NDArray) -> None:
        """Records the mask of the present decision; those before the first mask get all true."""
        if self.legal is None:
            self.legal = np.ones((self.rows, self._options), np.bool_)
        self.legal[self.length] = legal

    def cut(self) -> None:
        """The policy's memory was emptied before the present decision."""
        if self.cuts is None:
            self.cuts = np.zeros(self.rows, np.bool_)
        self.cuts[self.length] = True

    def advance(self) -> None:
        """The present row is complete."""
        self.length += 1
        if self.length == self.rows:
            self._grow()

    def episode(self, meta: Meta, *, result: float, cameos: NDArray | None = None) -> Episode:
        """Everything recorded so far, and the reward of the result on the last decision."""
        n = self.length
        rewards = self.rewards[:n].copy()  # a second call must not add the result twice
        rewards[-1] += result
        return Episode(
            meta=meta,
            observations=self.observations[:n],
            actions=self.actions[:n],
            log_probs=self.log_probs[:n],
            values=self.values[:n],
            rewards=rewards,
            sampled=self.sampled[:n],
            versions=self.versions[:n],
            legal=None if self.legal is None else self.legal[:n],
            cuts=None if self.cuts is None else self.cuts[:n],
            cameos=cameos,
        )

    def _grow(self) -> None:
        for name in ("observations", "actions", "log_probs", "values", "rewards", "sampled",
                     "versions", "took_ns"):  # fmt: skip
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros_like(array)]))
        if self.legal is not None:
            self.legal = np.concatenate([self.legal, np.ones_like(self.legal)])
        if self.cuts is not None:
            self.cuts = np.concatenate([self.cuts, np.zeros_like(self.cuts)])
        self.rows *= 2
