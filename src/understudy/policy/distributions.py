"""Probabilities over action spaces, under the mask of what is legal, in every formula.

logits and legal are [..., options]; actions (int32; float32 where they are real numbers) and
uniforms are [..., parts]; see `core.spaces`. Real numbers are normal (`policy.gaussian`), their
probabilities are densities, and `legal` does not concern them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import Array, Ops
from understudy.core.spaces import ActionSpace, Continuous
from understudy.policy import gaussian

# Arrays without axes: NumPy takes them faster than its own scalars.
_NONE = np.zeros((), np.float32)
_ONE = np.ones((), np.float32)
_ILLEGAL = np.full((), -1e9, np.float32)
# A draw that was made in float64 can round up to 1; this keeps it inside the last option.
_BELOW_ONE = np.full((), 1.0 - 1e-6, np.float32)


def choose(
    ops: Ops, space: ActionSpace, logits: Array, legal: Array | None, uniforms: Array
) -> tuple[Array, Array]:
    """Sample by inverse transform: actions [..., parts] and their log-probability [...]."""
    if isinstance(space, Continuous):
        return gaussian.choose(ops, logits, uniforms)
    return _each_part(ops, space.parts, logits, legal, uniforms)


def mode(ops: Ops, space: ActionSpace, logits: Array, legal: Array | None) -> tuple[Array, Array]:
    """The likeliest action of each part, and its log-probability."""
    if isinstance(space, Continuous):
        return gaussian.choose(ops, logits, None)
    return _each_part(ops, space.parts, logits, legal, None)


def log_prob(
    ops: Ops, space: ActionSpace, logits: Array, actions: Array, legal: Array | None
) -> Array:
    """Log-probability [...] of actions."""
    if isinstance(space, Continuous):
        return gaussian.log_prob(ops, logits, actions)
    xp = ops.xp
    total = None
    for index, piece in enumerate(_pieces(space.parts, log_probs(ops, space, logits, legal))):
        chosen = xp.take_along_axis(piece, actions[..., index : index + 1], axis=-1)[..., 0]
        total = chosen if total is None else total + chosen
    return total


def entropy(ops: Ops, space: ActionSpace, logits: Array, legal: Array | None) -> Array:
    """Entropy [...] in nats, summed over the parts; illegal options add nothing."""
    if isinstance(space, Continuous):
        return gaussian.entropy(ops, logits)
    xp = ops.xp
    log_p = log_probs(ops, space, logits, legal)
    return -(xp.exp(log_p) * xp.maximum(log_p, _ILLEGAL)).sum(-1)


def largest_entropy(ops: Ops, space: ActionSpace, legal: Array) -> Array:
    """The entropy [...] of choosing evenly among legal [..., options]; 0 for real numbers, whose
    entropy has no bound."""
    xp = ops.xp
    if isinstance(space, Continuous):
        return xp.zeros(legal.shape[:-1], xp.float32)
    counts = [count.astype(xp.float32) for count in legal_options(space, legal)]
    return sum(xp.log(xp.maximum(count, _ONE)) for count in counts)


def legal_options(space: ActionSpace, legal: Array) -> list[Array]:
    """How many options of each part are legal, each [...]."""
    return [piece.sum(-1) for piece in _pieces(space.parts, legal)]


def divergence(ops: Ops, space: ActionSpace, old_log_p: Array, new_log_p: Array) -> Array:
    """KL(old || new) [...] between two results of `log_probs`."""
    if isinstance(space, Continuous):
        return gaussian.divergence(ops, old_log_p, new_log_p)
    return (ops.xp.exp(old_log_p) * (old_log_p - new_log_p)).sum(-1)


def log_probs(ops: Ops, space: ActionSpace, logits: Array, legal: Array | None) -> Array:
    """The whole distribution [..., options]: the log-probability of every option, each part of
    which sums to one, or, of real numbers, their means and log-spreads."""
    if isinstance(space, Continuous):
        return gaussian.parameters(ops, logits)
    xp = ops.xp
    if legal is not None:
        logits = xp.where(legal, logits, _ILLEGAL)
    pieces = []
    for piece in _pieces(space.parts, logits):
        shifted = piece - piece.max(-1, keepdims=True)
        pieces.append(shifted - xp.log(xp.exp(shifted).sum(-1, keepdims=True)))
    return pieces[0] if len(pieces) == 1 else xp.concatenate(pieces, -1)


def executed(ops: Ops, space: ActionSpace, actions: Array) -> Array:
    """Actions [..., parts] as an environment takes them: real numbers scaled to their bounds and
    clipped there. What is recorded and trained on is what was drawn, before this."""
    if isinstance(space, Continuous):
        low, high, middle, half = _bounds(space)
        return ops.xp.clip(middle + half * actions, low, high)
    return actions


@lru_cache(maxsize=64)
def _bounds(space: Continuous) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Lower and upper bounds, and the middle and half of each range: 0 and 1 where it has none."""
    ends = [
        (-np.inf if low is None else low, np.inf if high is None else high)
        for low, high in zip(space.low, space.high, strict=True)
    ]
    low, high = np.array(ends, np.float32).T
    finite = np.isfinite(low) & np.isfinite(high)
    with np.errstate(invalid="ignore"):
        middle, half = np.where(finite, (low + high) / 2, 0), np.where(finite, (high - low) / 2, 1)
    return low, high, middle.astype(np.float32), half.astype(np.float32)


def _each_part(
    ops: Ops, parts: tuple[int, ...], logits: Array, legal: Array | None, uniforms: Array | None
) -> tuple[Array, Array]:
    xp = ops.xp
    if legal is not None:
        logits = xp.where(legal, logits, _ILLEGAL)
    actions, total = [], None
    for index, piece in enumerate(_pieces(parts, logits)):
        shifted = piece - piece.max(-1, keepdims=True)
        odds = xp.exp(shifted)
        mass = odds.cumsum(-1)
        if uniforms is None:
            action = piece.argmax(-1)
        else:
            threshold = uniforms[..., index : index + 1] * _BELOW_ONE * mass[..., -1:]
            # `odds > 0`: XLA may round the sums around an impossible option apart.
            action = ((mass > threshold) & (odds > _NONE)).argmax(-1)
        chosen = _pick(xp, shifted, action) - xp.log(mass[..., -1])
        total = chosen if total is None else total + chosen
        actions.append(action[..., None])
    joined = actions[0] if len(actions) == 1 else xp.concatenate(actions, -1)
    return joined.astype(xp.int32), total


def _pick(xp: Any, table: Array, action: Array) -> Array:
    """table [..., n] at action [...]; `take_along_axis` costs 3 us at batch 1 under NumPy."""
    rows = table.reshape(-1, table.shape[-1])
    return rows[xp.arange(rows.shape[0]), action.reshape(-1)].reshape(action.shape)


def _pieces(parts: tuple[int, ...], array: Array) -> Iterator[Array]:
    if len(parts) == 1:
        yield array
        return
    start = 0
    for size in parts:
        yield array[..., start : start + size]
        start += size
