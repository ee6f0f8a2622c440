"""A decision model with memory: causal attention over the last decisions of a match.

In each layer a decision sees itself and at most `window - 1` decisions before it (`streaming`).
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError
from understudy.core.ops import Array, Ops, Tree
from understudy.policy.layers import Params, init_linear, linear, read_out
from understudy.policy.network import Reads
from understudy.policy.streaming import band, empty_caches, init_stack, step_stack, unroll_stack


class Transformer(msgspec.Struct, frozen=True, tag="transformer", forbid_unknown_fields=True):
    """Attends over observations up to `layers * (window - 1)` decisions ago.

    Memory: the caches of its layers (see `streaming`), [B, window - 1, 2 * width] each, and which
    of these slots hold a decision, bool [B, window - 1].
    """

    width: int = 64
    heads: int = 4
    layers: int = 2
    feed: int = 256
    """Hidden units between the attention of one layer and that of the next."""
    window: int = 10
    """How many decisions one layer sees, the present one included."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"network.{name}: expected a whole number above 0, got {getattr(self, name)}"
                )
        if self.width % self.heads:
            raise ConfigError(
                f"network.width: expected a multiple of heads ({self.heads}), got {self.width}"
            )

    @property
    def input_layers(self) -> tuple[Reads, ...]:
        return (Reads("embed"),)

    def init(
        self, rng: np.random.Generator | None, inputs: int, outputs: int
    ) -> dict[str, NDArray]:
        """Small policy weights, so that a fresh policy explores evenly."""
        params = init_linear(rng, "embed", inputs, self.width, gain=1.0)
        params |= init_stack(rng, self)
        params |= init_linear(rng, "policy", self.width, outputs, gain=0.01)
        params |= init_linear(rng, "value", self.width, 1, gain=1.0)
        return params

    def memory(self, ops: Ops, batch: int, dtype: Any = np.float32) -> Tree:
        caches = empty_caches(ops, self, batch, dtype)
        return (*caches, ops.xp.zeros((batch, self.window - 1), np.bool_))

    def step(self, ops: Ops, params: Params, obs: Array, memory: Tree) -> tuple[Array, Array, Tree]:
        """obs [B, F] to logits [B, options], values [B] and the next memory."""
        *caches, held = memory
        held = ops.xp.concatenate([held, ops.xp.ones((len(obs), 1), np.bool_)], 1)
        x = linear(ops, params, "embed", obs)
        x, kept = step_stack(ops, params, self, x, tuple(caches), held)
        return *self._out(ops, params, x), (*kept, held[:, 1:])

    def unroll(
        self, ops: Ops, params: Params, obs: Array, first: Array, memory: Tree
    ) -> tuple[Array, Array, Tree]:
        """obs [T, B, F] and first [T, B] to logits [T, B, options], values [T, B] and memory."""
        *caches, held = memory
        seen = band(ops, self, first, held)
        x = linear(ops, params, "embed", obs.swapaxes(0, 1))
        x, kept = unroll_stack(ops, params, self, x, tuple(caches), seen)
        logits, values = self._out(ops, params, x)
        return logits.swapaxes(0, 1), values.swapaxes(0, 1), (*kept, seen.held)

    def _out(self, ops: Ops, params: Params, x: Array) -> tuple[Array, Array]:
        return read_out(ops, params, "policy", x), read_out(ops, params, "value", x)[..., 0]
