"""What networks compute in: float32, or bfloat16 where the machine is made for it.

Parameters, their gradients and the optimiser's moments are float32 everywhere.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

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


def has_gpu() -> bool:
    """Whether programs run on a GPU unless told otherwise."""
    return jax.default_backend() == "gpu"
