"""Attention pooling: the last `window` frames of a stream as one, by scores that are learned.

A frame's score depends on the frame and on how long ago it was, not on who asks: so the weights
say which frames told most. Both forms are one softmax over the frames of the match in the window.
"""

from __future__ import annotations

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import Array, Ops
from understudy.policy.layers import Params, cast, init_linear, product, softmax_odds
from understudy.policy.streaming import Band, blocks, by_distance, keep

_ZERO = np.zeros((), np.float32)


def init_pool(rng: np.random.Generator | None, width: int, window: int) -> dict[str, NDArray]:
    """Scores near 0, so that a fresh pool is nearly a mean. (A bias would cancel out.)"""
    return {
        "pool.score": init_linear(rng, "pool", width, 1, gain=0.1)["pool.w"],
        "pool.bias": np.zeros(window, np.float32),
    }


def step_pool(
    ops: Ops, params: Params, x: Array, frames: Array, scores: Array, held: Array
) -> tuple[Array, Array, Array, Array]:
    """One frame x [B, width] after frames [B, past, width] with scores [B, past].

    held [B, window] as for `step_stack`. Gives the pooled [B, width], the weights [B, window],
    oldest first, and the next frames and scores.
    """
    xp = ops.xp
    frames = xp.concatenate([frames, cast(x[:, None], frames)], 1)
    scores = xp.concatenate([scores, _scores(ops, params, x)], 1)
    weights = _weights(ops, scores + params["pool.bias"][None, ::-1], held)
    pooled = (weights[..., None] * cast(frames, _ZERO)).sum(1)  # written out: see `attend_once`
    return cast(pooled, x), weights, frames[:, 1:], scores[:, 1:]


def unroll_pool(
    ops: Ops, params: Params, x: Array, frames: Array, scores: Array, band: Band
) -> tuple[Array, Array, Array]:
    """A segment x [B, T, width]: the pooled [B, T, width], and the next frames and scores."""
    xp = ops.xp
    batch, length, width = x.shape
    past = scores.shape[1]
    seen = xp.concatenate([cast(frames, x), x], 1)
    rated = xp.concatenate([scores, _scores(ops, params, x)[..., 0]], 1)
    bias = by_distance(ops, params["pool.bias"], band.size)
    weights = _weights(ops, blocks(ops, rated, band.size, past)[:, :, None] + bias, band.allowed)
    pooled = xp.matmul(cast(weights, x), blocks(ops, seen, band.size, past))
    pooled = pooled.reshape(batch, -1, width)[:, :length]
    return (
        pooled,
        keep(ops, seen[:, length:], band.held, frames),
        keep(ops, rated[:, length:], band.held, scores),
    )


def _scores(ops: Ops, params: Params, x: Array) -> Array:
    """x [..., width] to float32 [..., 1]."""
    return product(ops, x, cast(params["pool.score"], _ZERO))


def _weights(ops: Ops, scores: Array, allowed: Array) -> Array:
    """Softmax over the last axis, exactly 0 where not allowed."""
    odds = softmax_odds(ops, scores, allowed)
    return odds / odds.sum(-1, keepdims=True)
