"""How programs with a game in them are compiled, on each kind of machine."""

from __future__ import annotations

import jax

_CPU_OPTIONS = {"xla_disable_hlo_passes": "cse_barrier_expander"}
"""XLA's CPU backend drops barriers early, and fusion then computes a game's phases many times over;
kept, they make the game hundreds of times faster."""

_GPU_OPTIONS = {"xla_disable_hlo_passes": "triton-softmax-rewriter"}
"""In JAX 0.11, on which the figures for GPUs were measured, that pass makes a kernel of the seed's
network in bfloat16 that fails to compile; 0.10 was not tried on a GPU."""


def options() -> dict[str, str] | None:
    """How to compile a game for this machine."""
    return {"cpu": _CPU_OPTIONS, "gpu": _GPU_OPTIONS}.get(jax.default_backend())
