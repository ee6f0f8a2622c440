"""Independent normal distributions over real numbers, for `Continuous` action spaces.

outputs [..., 2 n] are n means, then n raw log-spreads; actions and uniforms are [..., n], in the
policy's own units, where nothing is bounded.
"""

from __future__ import annotations

import math

import numpy as np

from understudy.core.ops import Array, Ops

# Spreads stay within e^-3 and e^3 of half a range. The bend is smooth, since a hard clip has no
# gradient on its far side and a spread that drifted there would never come back.
_BEND = np.full((), 3.0, np.float32)
_HALF_LOG_TAU = np.full((), 0.5 * math.log(2.0 * math.pi), np.float32)
_HALF = np.full((), 0.5, np.float32)
_LEAST, _MOST = np.float32(2.0**-25), np.float32(1.0 - 2.0**-24)
# Our own least-squares fit, reweighted towards equal errors, of the normal quantile over 2 u - 1,
# in sqrt(2 - log(4 u (1 - u))): 7e-5 spreads off at most, where u is a multiple of 2^-25.
_FIT = tuple(
    np.float32(c)
    for c in (
        3.506998,
        2.383134,
        -0.07658637,
        -0.05344161,
        0.1690611,
        -0.1495131,
        -0.01932502,
        0.06356081,
    )
)


def parameters(ops: Ops, outputs: Array) -> Array:
    """Means and log-spreads [..., 2 n], the log-spreads within their range."""
    means, spreads = _halves(outputs)
    return ops.xp.concatenate([means, _BEND * ops.xp.tanh(spreads / _BEND)], -1)


def choose(ops: Ops, outputs: Array, uniforms: Array | None) -> tuple[Array, Array]:
    """Draws [..., n], or the means where there are no uniforms, and their log-density [...]."""
    known = parameters(ops, outputs)
    means, log_spreads = _halves(known)
    if uniforms is None:
        return means, -(log_spreads + _HALF_LOG_TAU).sum(-1)
    actions = means + ops.xp.exp(log_spreads) * quantile(ops, uniforms)
    return actions, _log_density(ops, known, actions)


def log_prob(ops: Ops, outputs: Array, actions: Array) -> Array:
    """Log-density [...] of actions."""
    return _log_density(ops, parameters(ops, outputs), actions)


def entropy(ops: Ops, outputs: Array) -> Array:
    """Differential entropy [...] in nats; it may be negative."""
    _, log_spreads = _halves(parameters(ops, outputs))
    return (log_spreads + _HALF_LOG_TAU + _HALF).sum(-1)


def divergence(ops: Ops, old: Array, new: Array) -> Array:
    """KL(old || new) [...] between two results of `parameters`."""
    xp = ops.xp
    (old_means, old_logs), (new_means, new_logs) = _halves(old), _halves(new)
    apart = xp.square((old_means - new_means) * xp.exp(-new_logs))
    wider = xp.exp((old_logs - new_logs) * 2)
    return (new_logs - old_logs + _HALF * (wider + apart - 1)).sum(-1)


def quantile(ops: Ops, uniforms: Array) -> Array:
    """What a standard normal is below with these probabilities; exactly odd around a half."""
    xp = ops.xp
    u = xp.clip(uniforms, _LEAST, _MOST)
    x = (xp.sqrt(2 - xp.log(4 * u * (1 - u))) - 3) / np.float32(1.5)
    total = _FIT[-1]
    for coefficient in _FIT[-2::-1]:
        total = total * x + coefficient
    return (2 * u - 1) * total


def _log_density(ops: Ops, known: Array, actions: Array) -> Array:
    means, log_spreads = _halves(known)
    apart = (actions - means) * ops.xp.exp(-log_spreads)
    return -(_HALF * apart * apart + log_spreads + _HALF_LOG_TAU).sum(-1)


def _halves(outputs: Array) -> tuple[Array, Array]:
    n = outputs.shape[-1] // 2
    return outputs[..., :n], outputs[..., n:]
