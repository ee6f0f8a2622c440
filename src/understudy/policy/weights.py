"""The numbers of one version: network parameters, observation normaliser and return scale.

The normaliser is frozen into a version, so that what a version decided can be recomputed from the
raw features that an episode holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.core.arrays import NDArray, from_npz, to_npz
from understudy.core.errors import FileFormatError
from understudy.core.ops import Array, Ops
from understudy.policy.layers import Params
from understudy.policy.network import Reads
from understudy.policy.spec import PolicySpec

CLIP = 10.0
"""Features are clipped at this many spreads."""
_LIMIT = np.full((), CLIP, np.float32)
_LEAST = np.full((), -CLIP, np.float32)
_EXTRA = ("normaliser.mean", "normaliser.scale", "value.scale")


@dataclass(frozen=True)
class Weights:
    """params by name; mean and scale [F] of the observations; and the scale of the returns."""

    params: Params
    obs_mean: Array
    obs_scale: Array
    value_scale: Array


def fresh(spec: PolicySpec, rng: np.random.Generator | None) -> Weights:
    """Weights of a policy that has not learned anything (without rng: that knows nothing)."""
    inputs = len(spec.features)
    return Weights(
        params=spec.network.init(rng, inputs, spec.actions.options),
        obs_mean=np.zeros(inputs, np.float32),
        obs_scale=np.ones(inputs, np.float32),
        value_scale=np.float32(1.0),
    )


def normalise(ops: Ops, weights: Weights, obs: Array) -> Array:
    """Raw features [..., F] to numbers around 0, at most ten spreads away."""
    xp = ops.xp
    # `[None]`: at batch 1, NumPy takes equal ranks three times faster than it broadcasts.
    scaled = (obs - weights.obs_mean[None]) * weights.obs_scale[None]
    return xp.maximum(xp.minimum(scaled, _LIMIT), _LEAST)


def renormalised(
    params: Params,
    layers: tuple[Reads, ...],
    *,
    before: tuple[NDArray, NDArray],
    after: tuple[NDArray, NDArray],
) -> Params:
    """Parameters that say under one normaliser what they said under another (up to its clip).

    `layers` are those that read the observation; before and after are (mean [F], scale [F]).
    """
    (mean, scale), (new_mean, new_scale) = (
        (np.asarray(m, np.float64), np.asarray(s, np.float64)) for m, s in (before, after)
    )
    return reread(params, layers, slope=scale / new_scale, offset=(new_mean - mean) * scale)


def reread(params: Params, layers: tuple[Reads, ...], *, slope: NDArray, offset: NDArray) -> Params:
    """Parameters that say of features x what they said of slope * x + offset; both [F]."""
    changed = dict(params)
    for name, features in layers:
        weight = np.asarray(params[f"{name}.w"], np.float64)
        shift = offset[features] @ weight
        changed[f"{name}.w"] = (slope[features, None] * weight).astype(np.float32)
        changed[f"{name}.b"] = (np.asarray(params[f"{name}.b"]) + shift).astype(np.float32)
    return changed


def encode(weights: Weights) -> bytes:
    extra = (weights.obs_mean, weights.obs_scale, weights.value_scale)
    arrays = {f"params.{name}": np.asarray(value) for name, value in weights.params.items()}
    arrays |= {name: np.asarray(value) for name, value in zip(_EXTRA, extra, strict=True)}
    return to_npz(arrays)


def decode(spec: PolicySpec, data: bytes, *, what: str) -> Weights:
    """From `.npz`, every name, shape and type checked against the spec."""
    expected = fresh(spec, None)
    arrays = from_npz(data, what=what)
    shapes = {f"params.{name}": value.shape for name, value in expected.params.items()}
    shapes |= dict(zip(_EXTRA, (*(2 * [expected.obs_mean.shape]), ()), strict=True))
    check_shapes(arrays, shapes, what=what)
    return Weights(
        params={name: arrays[f"params.{name}"] for name in expected.params},
        obs_mean=arrays["normaliser.mean"],
        obs_scale=arrays["normaliser.scale"],
        value_scale=arrays["value.scale"][()],
    )


def check_shapes(
    arrays: Mapping[str, NDArray], shapes: Mapping[str, tuple[int, ...]], *, what: str
) -> None:
    """Exactly these names with these shapes, float32 and finite, or a `FileFormatError`."""
    if arrays.keys() != shapes.keys():
        odd = sorted(arrays.keys() ^ shapes.keys())
        raise FileFormatError(f"{what}: does not fit the network (missing or extra: {odd[:4]})")
    for name, shape in shapes.items():
        array = arrays[name]
        if array.shape != shape or array.dtype != np.float32:
            raise FileFormatError(
                f"{what}: {name} is {array.dtype} {array.shape}, expected float32 {shape}"
            )
        if not np.isfinite(array).all():
            raise FileFormatError(f"{what}: {name} holds numbers that are not finite")
