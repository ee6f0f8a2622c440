"""A strategist's encoder compiled by JAX: latents of recorded matches, span by span."""

from __future__ import annotations

import jax
import numpy as np

from understudy.analysis.encoding import Unroll
from understudy.arena.compiling import options
from understudy.core.arrays import NDArray
from understudy.core.ops import Array, Tree
from understudy.learner.maths.jax_ops import JAX
from understudy.policy.layers import Params
from understudy.policy.strategist import Strategist


def compiled(network: Strategist) -> Unroll:
    """An `Encoder`: compiled once for any weights of this network."""

    def unroll(params: Params, obs: Array, memory: Tree) -> tuple[Array, Tree]:
        first = JAX.xp.zeros(obs.shape[:2], np.bool_)
        insight = network.unroll_insight(JAX, params, obs, first, memory)
        # The LSTM is not asked: what nobody reads is not computed.
        return insight.latent, (*insight.memory[:-2], *memory[-2:])

    one = jax.jit(unroll, compiler_options=options())

    def carry_on(params: Params, obs: NDArray, memory: Tree) -> tuple[NDArray, Tree]:
        latent, memory = one(params, obs, memory)
        return np.asarray(latent), memory

    return carry_on
