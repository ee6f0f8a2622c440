"""Weights as text inside of an exported file: lines of base64 of zlib of `.npz`.

Exported files hold `weights_of` and what it uses, so NumPy and the standard library must do.
"""

from __future__ import annotations

import base64
import zlib

import numpy as np

from understudy.core.arrays import NDArray, from_npz, to_npz
from understudy.core.errors import RunFolderError
from understudy.policy.weights import Weights

_LINE = 100
_FLOAT16_MOST = float(np.finfo(np.float16).max)


def text_of(weights: Weights, *, float16: bool = False) -> str:
    """float16 halves the text and rounds the parameters; a normaliser is float32 in any case."""
    arrays = {f"params.{name}": np.asarray(value) for name, value in weights.params.items()}
    if float16:
        arrays = {name: _halved(name, value) for name, value in arrays.items()}
    arrays["normaliser.mean"] = np.asarray(weights.obs_mean)
    arrays["normaliser.scale"] = np.asarray(weights.obs_scale)
    arrays["value.scale"] = np.asarray(weights.value_scale)
    text = base64.b64encode(zlib.compress(to_npz(arrays), 6)).decode()
    return "\n".join(text[at : at + _LINE] for at in range(0, len(text), _LINE))


def weights_of(text: str) -> Weights:
    """The weights that a text holds, read without pickle."""
    data = zlib.decompress(base64.b64decode(text))
    arrays = from_npz(data, what="WEIGHTS")
    return Weights(
        params={
            name.partition(".")[2]: value.astype(np.float32, copy=False)
            for name, value in arrays.items()
            if name.startswith("params.")
        },
        obs_mean=arrays["normaliser.mean"],
        obs_scale=arrays["normaliser.scale"],
        value_scale=arrays["value.scale"][()],
    )


def _halved(name: str, value: NDArray) -> NDArray:
    if np.abs(value).max(initial=0.0) > _FLOAT16_MOST:
        raise RunFolderError(
            f"--float16: {name} has numbers above {_FLOAT16_MOST:g}; export without --float16"
        )
    return value.astype(np.float16)
