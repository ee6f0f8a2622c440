"""Causal attention over a stream: each frame sees itself and at most `window - 1` frames before it.

In every layer, that is, so a stack reaches further back than its window. `step_stack` keeps the
keys and values of the last frames, so every frame is encoded once; `unroll_stack` computes whole
segments in parallel. Both are banded causal attention over the match so far, as tests show.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import Array, Ops
from understudy.policy.layers import (
    Params,
    attend,
    attend_once,
    cast,
    init_linear,
    init_norm,
    layer_norm,
    linear,
    merge_heads,
    relu,
    split_heads,
)

_BLOCK = 32
"""Frames that attend together. Fewer waste less on frames out of reach, and more make larger
products: a gradient of preset seed (64 frames back) took 1.34 s with 64, 1.22 s with 32 and 1.27 s
with 16."""
_NOTHING = np.zeros((), np.float32)


class Stack(Protocol):
    """The sizes of a stack of layers; a network that has one carries them as its own fields."""

    @property
    def width(self) -> int:
        """Numbers in the stream."""

    @property
    def heads(self) -> int:
        """Parts of the stream that attend apart."""

    @property
    def layers(self) -> int:
        """How often a frame attends."""

    @property
    def feed(self) -> int:
        """Hidden units between the attention of one layer and that of the next."""

    @property
    def window(self) -> int:
        """How many frames one layer sees, the present one included."""


class Band(NamedTuple):
    """Who sees whom in a segment of T frames after `past` remembered ones, cut into n blocks."""

    size: int
    """Frames in a block."""
    allowed: Array
    """bool [B, n, size, past + size]."""
    held: Array
    """bool [B, past]: which of the last frames belong to the match that is on at the end."""


class _Names(NamedTuple):
    """The parameters of one layer."""

    attention_norm: str
    attention_in: str
    attention_bias: str
    attention_out: str
    feed_norm: str
    feed_in: str
    feed_out: str


def init_stack(rng: np.random.Generator | None, stack: Stack) -> dict[str, NDArray]:
    """Fresh layers, and the norm after the last of them."""
    width = stack.width
    into_stream = 1.0 / math.sqrt(2.0 * stack.layers)  # keeps the stream's spread near 1
    params: dict[str, NDArray] = {}
    for names in _layers(stack.layers):
        params |= init_norm(names.attention_norm, width)
        params |= init_linear(rng, names.attention_in, width, 3 * width, gain=math.sqrt(3.0))
        params[names.attention_bias] = np.zeros((stack.heads, stack.window), np.float32)
        params |= init_linear(rng, names.attention_out, width, width, gain=into_stream)
        params |= init_norm(names.feed_norm, width)
        params |= init_linear(rng, names.feed_in, width, stack.feed, gain=math.sqrt(2.0))
        params |= init_linear(rng, names.feed_out, stack.feed, width, gain=into_stream)
    return params | init_norm("norm", width)


def empty_caches(ops: Ops, stack: Stack, batch: int, dtype: Any) -> tuple[Array, ...]:
    """For each layer keys and values side by side, [B, window - 1, 2 * width], oldest first."""
    shape = (batch, stack.window - 1, 2 * stack.width)
    return tuple(ops.xp.zeros(shape, dtype) for _ in range(stack.layers))


def step_stack(
    ops: Ops, params: Params, stack: Stack, x: Array, caches: tuple[Array, ...], held: Array
) -> tuple[Array, tuple[Array, ...]]:
    """One frame x [B, width] through all layers, and the next caches.

    held: bool [B, window], which frames there are, the present one (True) last.
    """
    xp, width = ops.xp, stack.width
    heads = (stack.heads, width // stack.heads)
    kept = []
    for names, past in zip(_layers(stack.layers), caches, strict=True):
        inner = layer_norm(ops, params, names.attention_norm, x)
        mixed = linear(ops, params, names.attention_in, inner)
        seen = xp.concatenate([past, cast(mixed[:, None, width:], past)], 1)
        kept.append(seen[:, 1:])
        pairs = seen.reshape(*seen.shape[:2], 2, *heads)
        y = attend_once(
            ops,
            mixed[:, :width].reshape(-1, *heads),
            pairs[:, :, 0],
            pairs[:, :, 1],
            params[names.attention_bias].T[None, ::-1],  # oldest first
            held,
        )
        x = _after_attention(ops, params, names, x, cast(y.reshape(x.shape), x))
    return layer_norm(ops, params, "norm", x), tuple(kept)


def band(ops: Ops, stack: Stack, first: Array, held: Array) -> Band:
    """The band of a segment with first [T, B], after a memory with held [B, window - 1]."""
    xp = ops.xp
    length, past = len(first), stack.window - 1
    # Which stretch of which match: 0 is what the memory belongs to, -1 is an empty slot.
    stretch = first.swapaxes(0, 1).astype(np.int32).cumsum(1, dtype=np.int32)
    stretch = xp.concatenate([held.astype(np.int32) - 1, stretch], 1)
    size = min(length, _BLOCK)
    asked, asking = blocks(ops, stretch, size, past), blocks(ops, stretch[:, past:], size, 0)
    distance = np.arange(size)[:, None] + past - np.arange(size + past)[None, :]
    near = (distance >= 0) & (distance <= past)
    allowed = near & (asking[..., :, None] == asked[..., None, :])
    return Band(size, allowed, stretch[:, length:] == stretch[:, -1:])


def unroll_stack(
    ops: Ops, params: Params, stack: Stack, x: Array, caches: tuple[Array, ...], band: Band
) -> tuple[Array, tuple[Array, ...]]:
    """A segment x [B, T, width] through all layers, and the next caches."""
    xp, width, heads = ops.xp, stack.width, stack.heads
    length, past = x.shape[1], stack.window - 1
    allowed = band.allowed[:, :, None]
    kept = []
    for names, before in zip(_layers(stack.layers), caches, strict=True):
        inner = layer_norm(ops, params, names.attention_norm, x)
        mixed = linear(ops, params, names.attention_in, inner)
        seen = xp.concatenate([cast(before, mixed), mixed[..., width:]], 1)
        kept.append(keep(ops, seen[:, length:], band.held, before))
        cut = blocks(ops, seen, band.size, past)
        y = attend(
            ops,
            split_heads(blocks(ops, mixed[..., :width], band.size, 0), heads),
            split_heads(cut[..., :width], heads),
            split_heads(cut[..., width:], heads),
            by_distance(ops, params[names.attention_bias], band.size),
            allowed,
        )
        y = merge_heads(y)
        y = y.reshape(len(y), -1, width)[:, :length]
        x = _after_attention(ops, params, names, x, y)
    return layer_norm(ops, params, "norm", x), tuple(kept)


def by_distance(ops: Ops, bias: Array, size: int) -> Array:
    """bias [..., window], of how long ago, to [..., size, past + size] for the frames of a block.

    Rows of one number more than they show: each begins one place further to the right. (A table
    of distances as an index does the same; its gradient took 3% of the training.)
    """
    *lead, window = bias.shape
    shown = size + window - 1
    row = ops.xp.pad(bias[..., ::-1], [*((0, 0) for _ in lead), (0, shown + 1 - window)])
    rows = ops.xp.broadcast_to(row[..., None, :], (*lead, size, shown + 1))
    return rows.reshape(*lead, -1)[..., : size * shown].reshape(*lead, size, shown)


def keep(ops: Ops, last: Array, held: Array, before: Array) -> Array:
    """What a memory keeps of last [B, past, ...]: frames of the present match, typed as before."""
    held = held.reshape(*held.shape, *(1 for _ in last.shape[2:]))
    return cast(ops.xp.where(held, last, cast(_NOTHING, last)), before)


def blocks(ops: Ops, x: Array, size: int, past: int) -> Array:
    """x [B, past + T, ...] to [B, n, past + size, ...]: block i has its `size` frames of the T
    and the `past` before them. So the cost grows with T, not with its square.
    """
    batch, length, *rest = x.shape
    count = -(-(length - past) // size)
    if count == 1:
        return x[:, None]
    more = -(-past // size)
    padding = [(0, 0), (0, (count + more) * size - length), *((0, 0) for _ in rest)]
    cut = ops.xp.pad(x, padding).reshape(batch, count + more, size, *rest)
    joined = ops.xp.concatenate([cut[:, at : at + count] for at in range(more + 1)], 2)
    return joined[:, :, : past + size]


def _after_attention(ops: Ops, params: Params, names: _Names, x: Array, attended: Array) -> Array:
    """What a layer does to each frame alone."""
    x = x + linear(ops, params, names.attention_out, attended)
    inner = layer_norm(ops, params, names.feed_norm, x)
    inner = relu(ops, linear(ops, params, names.feed_in, inner))
    return x + linear(ops, params, names.feed_out, inner)


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
