"""Frozen matches compiled by JAX: the duel of `match.duel`, a stride of frames in one program."""

from __future__ import annotations

from functools import partial

import jax

from understudy.arena.compiling import options
from understudy.learner.jax_ops import JAX
from understudy.match.duel import Duel, Standing, stride
from understudy.match.series import Stride


def compiled(duel: Duel) -> Stride:
    """An `Engine`: compiled at the first stride; weights are an argument, not part of the code."""
    one = jax.jit(partial(stride, JAX, duel), donate_argnums=1, compiler_options=options())
    weights = jax.device_put(duel.weights)

    def carry_on(standing: Standing) -> Standing:
        after: Standing = one(weights, standing)
        return after

    return carry_on
