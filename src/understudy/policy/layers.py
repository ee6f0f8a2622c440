"""The pieces that networks are made of, over `ops`; parameters are a flat dict of named arrays.

Products of matrices run in the type of the parameters. Where these are bfloat16, sums that must
not be rounded (the statistics of a norm, a softmax, what a network answers) are still float32.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TypeAlias

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import Array, Ops

Params: TypeAlias = dict[str, Array]
"""Names with dots (`trunk.0.w`) to float32 arrays."""

# Constants are arrays without axes: NumPy takes them 0.15 us faster than its own scalars.
_ZERO = np.zeros((), np.float32)
_TINY = np.full((), 1e-5, np.float32)
_ILLEGAL = np.full((), -1e9, np.float32)


def init_linear(
    rng: np.random.Generator | None, name: str, inputs: int, outputs: int, *, gain: float
) -> dict[str, NDArray]:
    """An orthogonal matrix [inputs, outputs] times gain, and a zero bias. Without rng all zeros."""
    if rng is None:
        matrix = np.zeros((inputs, outputs), np.float32)
        return {f"{name}.w": matrix, f"{name}.b": np.zeros(outputs, np.float32)}
    wide = rng.standard_normal((max(inputs, outputs), min(inputs, outputs)))
    q, r = np.linalg.qr(wide)
    q = q * np.sign(np.diag(r))
    matrix = q if inputs >= outputs else q.T
    return {
        f"{name}.w": (gain * matrix).astype(np.float32),
        f"{name}.b": np.zeros(outputs, np.float32),
    }


def init_norm(name: str, width: int) -> dict[str, NDArray]:
    """A layer norm that changes nothing but mean and spread."""
    return {
        f"{name}.scale": np.ones(width, np.float32),
        f"{name}.shift": np.zeros(width, np.float32),
    }


def cast(x: Array, like: Array) -> Array:
    """x in the type of `like`: x itself where that is its type already."""
    return x if x.dtype == like.dtype else x.astype(like.dtype)


def product(ops: Ops, x: Array, matrix: Array) -> Array:
    """x [..., inputs] times a matrix [inputs, outputs], in the type of the matrix."""
    x = cast(x, matrix)
    if x.ndim == 2:
        return ops.xp.dot(x, matrix)
    # XLA's gradient of a product with more axes runs at 40-75% of this speed on a CPU.
    flat = ops.xp.dot(x.reshape(-1, x.shape[-1]), matrix)
    return flat.reshape(*x.shape[:-1], matrix.shape[-1])


def linear(ops: Ops, params: Params, name: str, x: Array) -> Array:
    """x [..., inputs] to [..., outputs]."""
    weight, bias = _linear_names(name)
    # `[None]`: at batch 1, NumPy adds equal ranks three times faster than it broadcasts.
    return product(ops, x, params[weight]) + params[bias][None]


def read_out(ops: Ops, params: Params, name: str, x: Array) -> Array:
    """`linear` in float32: rounded to bfloat16, a logit of 3 is off by a percent of probability."""
    weight, bias = _linear_names(name)
    return product(ops, x, cast(params[weight], _ZERO)) + params[bias][None]


def relu(ops: Ops, x: Array) -> Array:
    return ops.xp.maximum(x, cast(_ZERO, x))


def layer_norm(ops: Ops, params: Params, name: str, x: Array) -> Array:
    """x [..., width] with mean 0 and spread 1 over its last axis, then scaled and shifted."""
    scale, shift = _norm_names(name)
    wide = cast(x, _ZERO)
    share = np.float32(1.0 / x.shape[-1])  # `sum` costs a third of what `mean` costs under NumPy
    centred = wide - wide.sum(-1, keepdims=True) * share
    spread = ops.xp.sqrt((centred * centred).sum(-1, keepdims=True) * share + _TINY)
    return cast(centred / spread * params[scale][None] + params[shift][None], x)


def split_heads(x: Array, heads: int) -> Array:
    """x [..., N, width] to [..., heads, N, width / heads]."""
    *lead, length, width = x.shape
    return x.reshape(*lead, length, heads, width // heads).swapaxes(-2, -3)


def merge_heads(x: Array) -> Array:
    """x [..., heads, N, size] to [..., N, heads * size]."""
    *lead, heads, length, size = x.shape
    return x.swapaxes(-2, -3).reshape(*lead, length, heads * size)


def attend(
    ops: Ops, queries: Array, keys: Array, values: Array, bias: Array, allowed: Array
) -> Array:
    """Softmax attention: queries [..., Q, D] over keys and values [..., K, D] give [..., Q, D].

    bias and allowed broadcast to [..., Q, K]; every query must be allowed at least one key.
    """
    xp = ops.xp
    queries = queries * cast(root(queries.shape[-1]), queries)
    scores = cast(xp.matmul(queries, cast(keys, queries).swapaxes(-1, -2)), _ZERO) + bias
    odds = softmax_odds(ops, scores, allowed)
    mixed = xp.matmul(cast(odds, queries), cast(values, queries))
    return cast(mixed / odds.sum(-1, keepdims=True), queries)


def attend_once(
    ops: Ops, query: Array, keys: Array, values: Array, bias: Array, allowed: Array
) -> Array:
    """`attend` for one query a head: [B, H, D] over keys and values [B, K, H, D] to [B, H, D].

    bias broadcasts to [B, K, H], allowed [B, K]. Products of one row with a matrix are better
    written out: nothing is transposed, and a GPU reads keys and values once, at full speed.
    """
    query = cast(query, _ZERO) * root(query.shape[-1])
    scores = (query[:, None] * cast(keys, _ZERO)).sum(-1) + bias
    scores = ops.xp.where(allowed[..., None], scores, _ILLEGAL)
    odds = ops.xp.exp(scores - scores.max(1, keepdims=True))
    mixed = (odds[..., None] * cast(values, _ZERO)).sum(1)
    return mixed / odds.sum(1)[..., None]


def softmax_odds(ops: Ops, scores: Array, allowed: Array) -> Array:
    """float32 scores [..., K] to their softmax before it is divided by its sum; 0 if not allowed.

    Each row is shifted by a whole number: `ceil` has no derivative, so that the gradient does not
    run through the maximum, where it cancels out anyway (8% of the training of a deep network).
    """
    xp = ops.xp
    scores = xp.where(allowed, scores, _ILLEGAL)
    return xp.exp(scores - xp.ceil(scores.max(-1, keepdims=True)))


@cache
def root(size: int) -> NDArray:
    """1 / sqrt(size): what keeps products of two vectors of this size near 1."""
    return np.full((), 1.0 / math.sqrt(size), np.float32)


@cache
def _linear_names(name: str) -> tuple[str, str]:
    return f"{name}.w", f"{name}.b"


@cache
def _norm_names(name: str) -> tuple[str, str]:
    return f"{name}.scale", f"{name}.shift"
