"""A decision model with memory: causal attention over the last decisions of a match.

In each layer a decision sees itself and at most `window - 1` decisions before it. `step` keeps the
keys and values of those, so every decision is encoded once; `unroll` computes whole stretches in
parallel. Both are banded causal attention over the match so far, and a test shows them equal.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError
from understudy.core.ops import Array, Ops, Tree
from understudy.policy.layers import (
    Params,
    attend,
    init_linear,
    init_norm,
    layer_norm,
    linear,
    merge_heads,
    relu,
    split_heads,
)

_SMALLEST_BLOCK = 32
"""Below this, products of matrices are too small to be worth cutting a stretch into more blocks."""


class _Names(NamedTuple):
    """The parameters of one layer."""

    attention_norm: str
    attention_in: str
    attention_bias: str
    attention_out: str
    feed_norm: str
    feed_in: str
    feed_out: str


class Transformer(msgspec.Struct, frozen=True, tag="transformer", forbid_unknown_fields=True):
    """Attends over observations up to `layers * (window - 1)` decisions ago.

    Memory: for each layer keys and values side by side, float32 [B, window - 1, 2 * width], oldest
    first, and which of these slots hold a decision, bool [B, window - 1].
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
    def input_layers(self) -> tuple[str, ...]:
        """The embedding."""
        return ("embed",)

    def init(self, rng: np.random.Generator, inputs: int, outputs: int) -> dict[str, NDArray]:
        """Small policy weights, so that a fresh policy explores evenly."""
        width = self.width
        into_stream = 1.0 / math.sqrt(2.0 * self.layers)  # keeps the stream's spread near 1
        params = init_linear(rng, "embed", inputs, width, gain=1.0)
        for names in _layers(self.layers):
            params |= init_norm(names.attention_norm, width)
            params |= init_linear(rng, names.attention_in, width, 3 * width, gain=math.sqrt(3.0))
            params[names.attention_bias] = np.zeros((self.heads, self.window), np.float32)
            params |= init_linear(rng, names.attention_out, width, width, gain=into_stream)
            params |= init_norm(names.feed_norm, width)
            params |= init_linear(rng, names.feed_in, width, self.feed, gain=math.sqrt(2.0))
            params |= init_linear(rng, names.feed_out, self.feed, width, gain=into_stream)
        params |= init_norm("norm", width)
        params |= init_linear(rng, "policy", width, outputs, gain=0.01)
        params |= init_linear(rng, "value", width, 1, gain=1.0)
        return params

    def memory(self, ops: Ops, batch: int) -> Tree:
        """No decision is held."""
        past = self.window - 1
        cache_shape = (batch, past, 2 * self.width)
        caches = tuple(ops.xp.zeros(cache_shape, np.float32) for _ in range(self.layers))
        return (*caches, ops.xp.zeros((batch, past), np.bool_))

    def step(self, ops: Ops, params: Params, obs: Array, memory: Tree) -> tuple[Array, Array, Tree]:
        """obs [B, F] to logits [B, options], values [B] and the next memory."""
        xp, width, heads = ops.xp, self.width, self.heads
        *caches, held = memory
        held = xp.concatenate([held, xp.ones((len(obs), 1), np.bool_)], 1)
        allowed = held[:, None, None]
        x = linear(ops, params, "embed", obs)
        kept = []
        for names, past in zip(_layers(self.layers), caches, strict=True):
            inner = layer_norm(ops, params, names.attention_norm, x)
            mixed = linear(ops, params, names.attention_in, inner)
            seen = xp.concatenate([past, mixed[:, None, width:]], 1)
            kept.append(seen[:, 1:])
            y = attend(
                ops,
                split_heads(mixed[:, None, :width], heads),
                split_heads(seen[..., :width], heads),
                split_heads(seen[..., width:], heads),
                params[names.attention_bias][None, :, None, ::-1],  # oldest first
                allowed,
            )
            x = self._rest(ops, params, names, x, merge_heads(y)[:, 0])
        return *self._out(ops, params, x), (*kept, held[:, 1:])

    def unroll(
        self, ops: Ops, params: Params, obs: Array, first: Array, memory: Tree
    ) -> tuple[Array, Array, Tree]:
        """obs [T, B, F] and first [T, B] to logits [T, B, options], values [T, B] and memory."""
        xp, width, heads = ops.xp, self.width, self.heads
        length, past = len(obs), self.window - 1
        *caches, held = memory
        # Which stretch of which match: 0 is what the memory belongs to, -1 is an empty slot.
        stretch = first.swapaxes(0, 1).astype(np.int32).cumsum(1, dtype=np.int32)
        stretch = xp.concatenate([held.astype(np.int32) - 1, stretch], 1)
        size = min(length, max(past, _SMALLEST_BLOCK))
        asked, asking = _blocks(xp, stretch, size, past), _blocks(xp, stretch[:, past:], size, 0)
        distance = _distances(size, past)
        near = (distance >= 0) & (distance <= past)
        allowed = near & (asking[..., :, None] == asked[..., None, :])  # [B, n, size, size + past]
        x = linear(ops, params, "embed", obs.swapaxes(0, 1))
        kept = []
        for names, before in zip(_layers(self.layers), caches, strict=True):
            inner = layer_norm(ops, params, names.attention_norm, x)
            mixed = linear(ops, params, names.attention_in, inner)
            seen = xp.concatenate([before, mixed[..., width:]], 1)
            kept.append(seen[:, length:])
            blocks = _blocks(xp, seen, size, past)
            bias = params[names.attention_bias][:, np.clip(distance, 0, past)]
            y = attend(
                ops,
                split_heads(_blocks(xp, mixed[..., :width], size, 0), heads),
                split_heads(blocks[..., :width], heads),
                split_heads(blocks[..., width:], heads),
                bias,
                allowed[:, :, None],
            )
            y = merge_heads(y)
            y = y.reshape(len(y), -1, width)[:, :length]
            x = self._rest(ops, params, names, x, y)
        logits, values = self._out(ops, params, x)
        held = stretch[:, length:] == stretch[:, -1:]
        kept = [xp.where(held[..., None], one, np.float32(0.0)) for one in kept]
        return logits.swapaxes(0, 1), values.swapaxes(0, 1), (*kept, held)

    def _rest(self, ops: Ops, params: Params, names: _Names, x: Array, attended: Array) -> Array:
        """What a layer does after attention, to each decision alone."""
        x = x + linear(ops, params, names.attention_out, attended)
        inner = layer_norm(ops, params, names.feed_norm, x)
        inner = relu(ops, linear(ops, params, names.feed_in, inner))
        return x + linear(ops, params, names.feed_out, inner)

    def _out(self, ops: Ops, params: Params, x: Array) -> tuple[Array, Array]:
        x = layer_norm(ops, params, "norm", x)
        return linear(ops, params, "policy", x), linear(ops, params, "value", x)[..., 0]


@cache
def _layers(count: int) -> tuple[_Names, ...]:
    return tuple(
        _Names(
            attention_norm=f"layer.{index}.attention.norm",
            attention_in=f"layer.{index}.attention.in",
            attention_bias=f"layer.{index}.attention.bias",
            attention_out=f"layer.{index}.attention.out",
            feed_norm=f"layer.{index}.feed.norm",
            feed_in=f"layer.{index}.feed.in",
            feed_out=f"layer.{index}.feed.out",
        )
        for index in range(count)
    )


def _distances(size: int, past: int) -> NDArray:
    """How long before each of `size` decisions each of `past + size` decisions was."""
    return np.arange(size)[:, None] + past - np.arange(size + past)[None, :]


def _blocks(xp: Any, x: Array, size: int, past: int) -> Array:
    """x [B, past + T, ...] to [B, n, past + size, ...]: block i has its `size` decisions of the T
    and the `past` before them. So the cost grows with T, not with its square.
    """
    batch, length, *rest = x.shape
    count = -(-(length - past) // size)
    if count == 1:
        return x[:, None]
    padding = [(0, 0), (0, (count + 1) * size - length), *((0, 0) for _ in rest)]
    cut = xp.pad(x, padding).reshape(batch, count + 1, size, *rest)
    return xp.concatenate([cut[:, :-1], cut[:, 1:, :past]], 2)
