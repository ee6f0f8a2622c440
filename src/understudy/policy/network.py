"""What a network is: hyper-parameters with `init`, `memory`, `step` and `unroll` over `ops`.

`step` is what plays and `unroll` is what is trained; both are built from the same layers, and a
test shows them equal across match boundaries. `first[t]` empties the memory before step t.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import Array, Ops, Tree, mapped
from understudy.policy.layers import Params


class Reads(NamedTuple):
    """A linear layer that reads the observation, and which of its features."""

    layer: str
    features: slice = slice(None)


class Network(Protocol):
    """Hyper-parameters that know how to run."""

    @property
    def input_layers(self) -> tuple[Reads, ...]:
        """The linear layers that read the observation."""

    def init(
        self, rng: np.random.Generator | None, inputs: int, outputs: int
    ) -> dict[str, NDArray]:
        """Fresh parameters for this many features and action options.

        Without rng they have their names and shapes, but nothing was drawn: a second's work saved
        for a large network.
        """

    def memory(self, ops: Ops, batch: int, dtype: Any = np.float32) -> Tree:
        """What is carried from step to step, empty: arrays [B, ...] in a tuple.

        `dtype` is that of the large caches; what adds up over a match stays float32.
        """

    def step(self, ops: Ops, params: Params, obs: Array, memory: Tree) -> tuple[Array, Array, Tree]:
        """obs [B, F] to logits [B, options], values [B] and the next memory."""

    def unroll(
        self, ops: Ops, params: Params, obs: Array, first: Array, memory: Tree
    ) -> tuple[Array, Array, Tree]:
        """obs [T, B, F] and first [T, B] to logits [T, B, options], values [T, B] and memory."""


@runtime_checkable
class ReadsRaw(Protocol):
    """A network that wants some features as they are: ids, or numbers that it compares."""

    @property
    def raw_features(self) -> tuple[int, ...]:
        """Their indices; a normaliser leaves them alone."""


def raw_features(network: Network) -> tuple[int, ...]:
    """Which features a network must be given as they are: mean 0, scale 1. Most have none."""
    return network.raw_features if isinstance(network, ReadsRaw) else ()


def emptied(ops: Ops, memory: Tree, first: Array) -> Tree:
    """Memory [B, ...] with nothing in it where `first` [B]: where a match begins.

    Caches [B, past, ...] keep their bytes, since the flags beside them [B, past] say that no entry
    of them holds anything: writing zeros into them would cost as much as reading them.
    """

    def at_first(x: Array) -> Array:
        return ops.xp.where(first[:, None], ops.xp.zeros_like(x), x) if x.ndim <= 2 else x

    return mapped(at_first, memory)
