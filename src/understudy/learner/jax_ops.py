"""The JAX twin of `core.ops.NUMPY`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from understudy.core.ops import Ops
from understudy.learner.recurrence import recur

JAX = Ops(
    name="jax",
    xp=jnp,
    scan=jax.lax.scan,
    barrier=jax.lax.optimization_barrier,
    recur=recur,
)
