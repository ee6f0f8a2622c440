"""A new normaliser under a policy that has learned something, without changing what it does.

Where no feature is clipped, parameters can say exactly what they said before. Where a feature left
the range of the old normaliser, the network saw it clipped, and no weights do the same under
another scale: then the new weight is the least-squares fit to what the network saw, over the
observations at hand. How far the policy moves is measured on them; the normaliser goes only as far
towards the new statistics as a bound on that allows, and the rest of the way with later batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.policy.layers import Params
from understudy.policy.network import Reads
from understudy.policy.weights import CLIP, reread

MOST_KL = 0.02
"""How far one fit may move the policy, in nats a decision."""
_MOST_STRETCH = 10.0
"""No weight grows or shrinks by more than this in one fit."""
_TRIES = 8
_STEADY = 1e-6


class Normaliser(NamedTuple):
    """Mean and scale of each feature, float32 [F]."""

    mean: NDArray
    scale: NDArray


class Fit(NamedTuple):
    """What a policy has after a fit."""

    normaliser: Normaliser
    params: Params
    share: float
    """How much of the way was gone, 0 to 1."""


def fit(
    params: Params,
    layers: tuple[Reads, ...],
    *,
    before: Normaliser,
    wanted: Normaliser,
    observations: NDArray,
    moved: Callable[[Normaliser, Params], float],
) -> Fit:
    """As far towards `wanted` as `MOST_KL` allows; observations [N, F] are raw.

    `moved` measures how far a policy with these parameters is from the present one.
    """
    share = 1.0
    for _ in range(_TRIES):
        normaliser = between(before, wanted, share)
        carried = carry(params, layers, before=before, after=normaliser, observations=observations)
        if moved(normaliser, carried) < MOST_KL:
            return Fit(normaliser, carried, share)
        share /= 2.0
    return Fit(before, params, 0.0)


def between(before: Normaliser, wanted: Normaliser, share: float) -> Normaliser:
    """A share of the way; scales go in ratios."""
    if share == 1.0:
        return wanted
    mean = before.mean + np.float32(share) * (wanted.mean - before.mean)
    scale = before.scale * (wanted.scale / before.scale) ** np.float32(share)
    return Normaliser(mean.astype(np.float32), scale.astype(np.float32))


def carry(
    params: Params,
    layers: tuple[Reads, ...],
    *,
    before: Normaliser,
    after: Normaliser,
    observations: NDArray,
) -> Params:
    """Parameters that say after what they said before, where they can."""
    slope, offset = _as_seen(before, after, observations)
    return reread(params, layers, slope=slope, offset=offset)


def _as_seen(
    before: Normaliser, after: Normaliser, observations: NDArray
) -> tuple[NDArray, NDArray]:
    """slope and offset [F] such that what was seen before is about slope * seen after + offset."""
    m0, s0, m1, s1 = (np.asarray(x, np.float64) for x in (*before, *after))
    exact = s0 / s1
    slope, offset = np.clip(exact, 1.0 / _MOST_STRETCH, _MOST_STRETCH), (m1 - m0) * s0
    raw = observations.astype(np.float64)
    old, new = (raw - m0) * s0, (raw - m1) * s1
    saw, sees = np.clip(old, -CLIP, CLIP), np.clip(new, -CLIP, CLIP)
    fitted = (saw != old).any(0) | (sees != new).any(0) | (slope != exact)
    middle, middle_after = saw.mean(0), sees.mean(0)
    spread = np.square(sees - middle_after).mean(0)
    together = ((saw - middle) * (sees - middle_after)).mean(0)
    regressed = np.where(spread > _STEADY, together / np.maximum(spread, _STEADY), slope)
    regressed = np.clip(regressed, -_MOST_STRETCH, _MOST_STRETCH)
    slope = np.where(fitted, regressed, slope)
    offset = np.where(fitted, middle - slope * middle_after, offset)
    return slope, offset
