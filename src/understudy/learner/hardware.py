"""What suits the machine: what networks compute in, and how loops over frames are compiled.

Parameters, their gradients and the optimiser's moments are float32 everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec
from msgspec import structs

from understudy.core.config import LearnerConfig
from understudy.core.ops import Tree


def computing(config: LearnerConfig, tree: Tree) -> Tree:
    """float32 arrays in the precision that networks compute in."""
    if not narrow(config):
        return tree
    return jax.tree.map(
        lambda array: array.astype(jnp.bfloat16) if array.dtype == jnp.float32 else array, tree
    )


def narrow(config: LearnerConfig) -> bool:
    """Whether networks compute in bfloat16 here."""
    if config.precision == "auto":
        return has_gpu()
    return config.precision == "bfloat16"


def as_numpy(config: LearnerConfig) -> LearnerConfig:
    """The settings to train what NumPy played, which is float32: in another precision the policy
    that is trained would not be the one that played. Train inside `float32_products`, too."""
    return structs.replace(config, precision="float32")


def float32_products() -> AbstractContextManager[None]:
    """Matrix products of float32 stay float32 in here; a GPU would round to TensorFloat-32."""
    context: AbstractContextManager[None] = jax.default_matmul_precision("float32")
    return context


def has_gpu() -> bool:
    """Whether programs run on a GPU unless told otherwise."""
    return jax.default_backend() == "gpu"


def frames_at_once() -> int:
    """How many frames a compiled loop writes out in one go.

    Small kernels leave a GPU idle between the turns of a loop (64 frames of 512 games with the
    seed's network: 52 ms one by one, 43 ms in twos, and fewer in fours); a CPU only has more code.
    """
    return 4 if has_gpu() else 1


def partition(*axes: str | tuple[str, ...] | None) -> Any:
    """How the devices of a mesh share an array: along which axes of the mesh each of its axes is
    cut, None: not at all. Without arguments every device has it whole.

    A `PartitionSpec`, which stands in the place of the arrays of a tree: so it is of any type.
    """
    return PartitionSpec(*axes)  # type: ignore[no-untyped-call]


def per_device(
    function: Callable[..., Any], mesh: Mesh | None, *, given: Any, made: Any
) -> Callable[..., Any]:
    """The function as each device of the mesh runs it on its own part of the arrays; the function
    itself where there is no mesh.

    `given` and `made` are the partitions of arguments and results. Left to XLA, every layer
    that joins frames and columns to one axis would first collect all columns on each device.
    """
    if mesh is None:
        return function
    # Networks' own gradients do not say what varies by device, so that is not checked.
    return jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=made, check_vma=False)
