"""A plain network: layers of any widths with ReLU, once for the policy and once for the value.

The two share nothing: with a common trunk the value's gradients kept moving the policy, and frozen
evaluations of late versions swung by thirty points instead of five.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError
from understudy.core.ops import Array, Ops, Tree
from understudy.policy.layers import Params, init_linear, linear, read_out, relu
from understudy.policy.network import Reads


class Mlp(msgspec.Struct, frozen=True, tag="mlp", forbid_unknown_fields=True):
    """Remembers nothing: each decision depends on the present observation alone."""

    widths: tuple[int, ...] = (64, 64)

    def __post_init__(self) -> None:
        if any(width < 1 for width in self.widths):
            raise ConfigError(f"network.widths: expected whole numbers above 0, got {self.widths}")

    @property
    def input_layers(self) -> tuple[Reads, ...]:
        """The first layer of each, or the heads where there is none."""
        return tuple(map(Reads, ("trunk.0", "critic.0") if self.widths else ("policy", "value")))

    def init(
        self, rng: np.random.Generator | None, inputs: int, outputs: int
    ) -> dict[str, NDArray]:
        """Small policy weights, so that a fresh policy explores evenly."""
        params: dict[str, NDArray] = {}
        for index, (before, after) in enumerate(pairwise((inputs, *self.widths))):
            for name in ("trunk", "critic"):
                params |= init_linear(rng, f"{name}.{index}", before, after, gain=math.sqrt(2.0))
        last = self.widths[-1] if self.widths else inputs
        params |= init_linear(rng, "policy", last, outputs, gain=0.01)
        params |= init_linear(rng, "value", last, 1, gain=1.0)
        return params

    def memory(self, ops: Ops, batch: int, dtype: Any = np.float32) -> Tree:
        return ()

    def step(self, ops: Ops, params: Params, obs: Array, memory: Tree) -> tuple[Array, Array, Tree]:
        """obs [..., F] to logits [..., options], values [...] and no memory."""
        x = y = obs
        for index in range(len(self.widths)):
            x = relu(ops, linear(ops, params, f"trunk.{index}", x))
            y = relu(ops, linear(ops, params, f"critic.{index}", y))
        return read_out(ops, params, "policy", x), read_out(ops, params, "value", y)[..., 0], memory

    def unroll(
        self, ops: Ops, params: Params, obs: Array, first: Array, memory: Tree
    ) -> tuple[Array, Array, Tree]:
        """Without memory, all steps at once are one step on a larger batch."""
        return self.step(ops, params, obs, memory)
