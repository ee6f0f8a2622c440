"""A long short-term memory: what a network carries over a whole match, in two vectors a row.

Its inputs are projected for all frames at once (`lstm_inputs`), outside the recurrence, of which
only one product of matrices a frame is left. The cell adds up, so it is float32 in any case.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import Array, Ops
from understudy.policy.layers import Params, cast, init_linear, linear, product

_HALF = np.full((), 0.5, np.float32)


def init_lstm(
    rng: np.random.Generator | None, observed: int, latent: int, hidden: int
) -> dict[str, NDArray]:
    """Matrices [.., 4 * hidden]: input, forget and output gate, then what is proposed to the cell.

    Units start by forgetting over 4 to 55 frames, so that some carry a cue until it is asked for.
    """
    params = init_linear(rng, "lstm.obs", observed, 4 * hidden, gain=math.sqrt(2.0))
    params["lstm.obs.b"][hidden : 2 * hidden] = np.linspace(1.0, 4.0, hidden)
    for name, inputs, gain in (("lstm.latent", latent, 1.0), ("lstm.hidden", hidden, 1.0)):
        params[f"{name}.w"] = init_linear(rng, name, inputs, 4 * hidden, gain=gain)[f"{name}.w"]
    return params


def lstm_inputs(ops: Ops, params: Params, obs: Array, latent: Array) -> Array:
    """obs [..., F] and latent [..., L] to their share of the gates [..., 4 * hidden]."""
    return linear(ops, params, "lstm.obs", obs) + product(ops, latent, params["lstm.latent.w"])


def lstm_step(
    ops: Ops, params: Params, inputs: Array, hidden: Array, cell: Array
) -> tuple[Array, Array]:
    """inputs [B, 4 * hidden], hidden and cell [B, hidden] to the next hidden and cell."""
    gates = inputs + product(ops, hidden, params["lstm.hidden.w"])
    after, cell = _gated(ops, gates, cell)
    return cast(after, hidden), cell


def lstm_unroll(
    ops: Ops, params: Params, inputs: Array, first: Array, hidden: Array, cell: Array
) -> tuple[Array, Array, Array]:
    """inputs [T, B, 4 * hidden] and first [T, B] to all hidden [T, B, hidden], and the last two."""
    every, last, cell = ops.recur(
        partial(_gated, ops),
        params["lstm.hidden.w"],
        inputs,
        first,
        cast(hidden, inputs),  # within a segment, hidden in the type of the products
        cell,
    )
    return every, cast(last, hidden), cell


def _gated(ops: Ops, gates: Array, cell: Array) -> tuple[Array, Array]:
    """gates [B, 4 * hidden] and cell [B, hidden] to the next hidden (typed as gates) and cell."""
    xp, size = ops.xp, cell.shape[-1]
    wide = cast(gates, cell)
    # A logistic curve is a tanh of half its argument, and that overflows nowhere.
    opened = xp.tanh(wide[:, : 3 * size] * _HALF) * _HALF + _HALF
    proposed = xp.tanh(wide[:, 3 * size :])
    cell = opened[:, size : 2 * size] * cell + opened[:, :size] * proposed
    return cast(opened[:, 2 * size :] * xp.tanh(cell), gates), cell
