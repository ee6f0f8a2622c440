"""Model files of the old StarCraft II bot: read, written, and committed as a first version.

An old model is a softmax network over raw features, so an `Mlp` gives the same probabilities. When
a version is written as an old model, its normaliser is folded into the first layer; only the
clipping at ten standard deviations is lost, which old files cannot express.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.core.arrays import NDArray, to_npz
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.core.spaces import Discrete
from understudy.policy import weights as weight_files
from understudy.policy.layers import Params
from understudy.policy.mlp import Mlp
from understudy.policy.network import Reads
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights, renormalised
from understudy.registry.checkpoints import publish
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest
from understudy.telemetry.journal import Journal

FEATURES = (
    "minerals", "vespene", "supply_used", "supply_cap", "workers", "units", "enemy_units",
    "townhalls", "time_s", "enemy_bases", "upgrades", "larva", "map_control", "our_army_hp",
    "enemy_hp",
)  # fmt: skip
ACTIONS = ("ECONOMY", "AGGRESSIVE", "DEFENSIVE", "TECH", "ALL_IN")
WIDTHS = (64, 64)

ARRAYS = ("W1", "b1", "W2", "b2", "W3", "b3")
_LAYERS = ("trunk.0", "trunk.1", "policy")


@dataclass(frozen=True)
class OldModel:
    """The content of an old model file."""

    weights: Weights
    baseline: float
    """The moving average of returns"""
    episodes: int
    """Matches that it had played"""


def features(count: int) -> tuple[str, ...]:
    """The names of an old bot's features; `state_0` and so on for any other number."""
    return FEATURES if count == len(FEATURES) else tuple(f"state_{i}" for i in range(count))


def spec(*, state_dim: int = len(FEATURES), labels: Sequence[str] = ACTIONS) -> PolicySpec:
    """The spec of an old bot's policy."""
    return PolicySpec(features(state_dim), Discrete(tuple(labels)), Mlp(widths=WIDTHS))


def decode(arrays: Mapping[str, NDArray], spec: PolicySpec, *, what: str) -> OldModel:
    """The model in these arrays; `FileFormatError` if it does not fit the spec."""
    network = spec.network
    if not isinstance(network, Mlp) or network.widths != WIDTHS:
        raise FileFormatError(
            f"{what}: an old model fits a network of widths {WIDTHS}, this run has {network}"
        )
    sizes = (len(spec.features), *WIDTHS, spec.actions.options)
    params: Params = dict(network.init(np.random.default_rng(0), sizes[0], sizes[-1]))
    for index, layer in enumerate(_LAYERS):
        inputs, outputs = sizes[index], sizes[index + 1]
        params[f"{layer}.w"] = _array(arrays, f"W{index + 1}", (inputs, outputs), what)
        params[f"{layer}.b"] = _array(arrays, f"b{index + 1}", (outputs,), what)
    baseline = _number(arrays, "baseline", what)
    # The old baseline is one number for all states: the initial output of the value head.
    params["value.w"] = np.zeros((WIDTHS[-1], 1), np.float32)
    params["value.b"] = np.full(1, baseline, np.float32)
    inputs = len(spec.features)
    weights = Weights(
        params, np.zeros(inputs, np.float32), np.ones(inputs, np.float32), np.float32(1.0)
    )
    return OldModel(weights, baseline, max(0, int(_number(arrays, "episode_count", what))))


def encode(model: OldModel) -> bytes:
    """The `.npz` file that the old code reads."""
    weights = model.weights
    inputs = len(weights.obs_mean)
    params = renormalised(
        weights.params,
        (Reads(_LAYERS[0]),),
        before=(weights.obs_mean, weights.obs_scale),
        after=(np.zeros(inputs, np.float32), np.ones(inputs, np.float32)),
    )
    arrays: dict[str, NDArray] = {}
    for index, layer in enumerate(_LAYERS):
        arrays[f"W{index + 1}"] = np.asarray(params[f"{layer}.w"])
        arrays[f"b{index + 1}"] = np.asarray(params[f"{layer}.b"])
    arrays["baseline"] = np.array([model.baseline])
    arrays["episode_count"] = np.array([model.episodes])
    return to_npz(arrays)


def identify(model: OldModel) -> str:
    """The id of a model: a hash of its numbers."""
    return f"model-{hashlib.sha256(encode(model)).hexdigest()[:32]}"


def _array(arrays: Mapping[str, NDArray], name: str, shape: tuple[int, ...], what: str) -> NDArray:
    if name not in arrays:
        raise FileFormatError(f"{what}: has no {name}, so it is not a whole model")
    array = arrays[name]
    if array.dtype.kind != "f" or array.shape not in (shape, (1, *shape)):
        raise FileFormatError(f"{what}: {name} is {array.dtype} {array.shape}, expected {shape}")
    with np.errstate(over="ignore"):
        array = array.reshape(shape).astype(np.float32)
    if not np.isfinite(array).all():
        raise FileFormatError(f"{what}: {name} holds numbers that are not finite")
    return array


def _number(arrays: Mapping[str, NDArray], name: str, what: str) -> float:
    array = arrays.get(name, np.zeros(1))
    if array.size != 1 or array.dtype.kind not in "fiu" or not abs(float(array.item())) < 1e30:
        raise FileFormatError(f"{what}: {name} is not one finite number")
    return float(array.item())


def begin_with(folder: RunFolder, model: OldModel, journal: Journal) -> Manifest:
    """Commits the model as version 1 and promotes it; `Fenced` if a learner commits first."""
    if folder.versions.numbers():
        raise RunFolderError(
            f"{folder.root}: has versions of its own already; "
            "an old model can only be the first one, so import it into a new run folder"
        )
    manifest = Manifest(
        number=1,
        parent=None,
        created_at=folder.clock.time(),
        spec=folder.spec,
        counters={"old_episodes": model.episodes},
        session=1,
        mode="import",
    )
    contents = {WEIGHTS: weight_files.encode(model.weights)}
    return publish(folder, journal, manifest, contents, matches=0)
