"""Compiled duels and encoders of frozen policies, and XLA's options for programs with a game.

Weights are an argument of a program, not part of it. Duels with equal program keys share one
program, so an agent that is judged again and again while it learns is compiled once.
"""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import numpy as np

from understudy.analysis.encoding import Unroll
from understudy.core.arrays import NDArray
from understudy.core.ops import Array, Tree
from understudy.learner.maths.jax_ops import JAX
from understudy.match.duel import Duel, DuelState, stride
from understudy.match.series import Stride
from understudy.policy.layers import Params
from understudy.policy.strategist import Strategist

_CPU_OPTIONS = {"xla_disable_hlo_passes": "cse_barrier_expander"}
"""XLA's CPU backend drops barriers early, and fusion then computes a game's phases many times over;
kept, they make the game hundreds of times faster."""

_GPU_OPTIONS = {"xla_disable_hlo_passes": "triton-softmax-rewriter"}
"""In JAX 0.11, on which the figures for GPUs were measured, that pass makes a kernel of the seed's
network in bfloat16 that fails to compile; 0.10 was not tried on a GPU."""

_KEPT = 64
"""Programs that are kept: an evaluation needs a handful, as its matches end and columns go."""


def options() -> dict[str, str] | None:
    """How to compile a game for this machine."""
    return {"cpu": _CPU_OPTIONS, "gpu": _GPU_OPTIONS}.get(jax.default_backend())


def compiled_duel(duel: Duel) -> Stride:
    """An `Engine`: a stride of frames in one program, compiled at the first stride of the first
    duel with this program key."""
    key = duel.program_key
    program = _duel_program(duel) if key is None else _shared_program(key)
    weights = jax.device_put(duel.weights)

    def carry_on(state: DuelState) -> DuelState:
        after: DuelState = program(weights, state)
        return after

    return carry_on


def compiled_encoder(network: Strategist) -> Unroll:
    """An `Encoder`: latents of recorded matches, span by span, compiled once for any weights."""

    def unroll(params: Params, obs: Array, memory: Tree) -> tuple[Array, Tree]:
        first = JAX.xp.zeros(obs.shape[:2], np.bool_)
        insight = network.unroll_insight(JAX, params, obs, first, memory)
        # The LSTM's memory is not returned, so XLA does not compute the LSTM.
        return insight.latent, (*insight.memory[:-2], *memory[-2:])

    program = jax.jit(unroll, compiler_options=options())

    def carry_on(params: Params, obs: NDArray, memory: Tree) -> tuple[NDArray, Tree]:
        latent, memory = program(params, obs, memory)
        return np.asarray(latent), memory

    return carry_on


@lru_cache(maxsize=_KEPT)
def _shared_program(key: Duel) -> jax.stages.Wrapped:
    return _duel_program(key)


def _duel_program(duel: Duel) -> jax.stages.Wrapped:
    return jax.jit(partial(stride, JAX, duel), donate_argnums=1, compiler_options=options())
