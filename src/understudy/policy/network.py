"""What a network is: hyper-parameters with `init`, `memory`, `step` and `unroll` over `ops`.

`step` is what plays and `unroll` is what is trained; both are built from the same layers, and a
test shows them equal across match boundaries. `first[t]` empties the memory before step t.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import Array, Ops, Tree
from understudy.policy.layers import Params


class Network(Protocol):
    """Hyper-parameters that know how to run."""

    @property
    def input_layers(self) -> tuple[str, ...]:
        """Names of the linear layers that read the observation."""

    def init(self, rng: np.random.Generator, inputs: int, outputs: int) -> dict[str, NDArray]:
        """Fresh parameters for this many features and action options."""

    def memory(self, ops: Ops, batch: int) -> Tree:
        """What is carried from step to step, empty: arrays [B, ...] in a tuple."""

    def step(self, ops: Ops, params: Params, obs: Array, memory: Tree) -> tuple[Array, Array, Tree]:
        """obs [B, F] to logits [B, options], values [B] and the next memory."""

    def unroll(
        self, ops: Ops, params: Params, obs: Array, first: Array, memory: Tree
    ) -> tuple[Array, Array, Tree]:
        """obs [T, B, F] and first [T, B] to logits [T, B, options], values [T, B] and memory."""
