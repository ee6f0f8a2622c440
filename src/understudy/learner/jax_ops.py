"""The JAX twin of `core.ops.NUMPY`."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from understudy.core.ops import Ops, Tree
from understudy.learner.recurrence import recur


def _each(f: Callable[..., Tree], *trees: Tree) -> Tree:
    return jax.vmap(f)(*trees)


JAX = Ops(
    name="jax",
    xp=jnp,
    scan=jax.lax.scan,
    barrier=jax.lax.optimization_barrier,
    recur=recur,
    each=_each,
)
