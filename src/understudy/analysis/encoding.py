"""Latents and attention of recorded matches, under any weights: what the encoder makes of them.

The untrained encoder is the zero line of every figure. It differs from the trained one in its
parameters alone: same network, same normaliser, same matches. What it shows is what is in the
frames themselves, and what any wiring of this size would keep of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from understudy.analysis.recording import Show, nobody
from understudy.core.arrays import NDArray
from understudy.core.errors import InputError
from understudy.core.ops import NUMPY, Tree
from understudy.policy.layers import Params
from understudy.policy.policy import Policy
from understudy.policy.strategist import Strategist
from understudy.policy.weights import fresh, normalise

SPAN, COLUMNS = 256, 32
"""Frames and matches encoded at once: one shape for every record, so that it compiles once."""

Unroll: TypeAlias = Callable[[Params, NDArray, Tree], tuple[NDArray, Tree]]
"""Parameters, normalised obs [SPAN, COLUMNS, F] and memory to latents and the next memory."""
Encoder: TypeAlias = Callable[[Strategist], Unroll]
"""`plain` here, `arena.compiling.compiled_encoder` under JAX."""


def strategist_of(policy: Policy, *, who: str) -> Strategist:
    """The network, where it is one that recognises opponents."""
    network = policy.spec.network
    if not isinstance(network, Strategist):
        kind = type(network).__name__.lower()
        raise InputError(
            f"{who}: its network is of kind {kind}, which has no strategy latent to look into; "
            "analyze an agent that was trained with --network small, medium or seed"
        )
    return network


def untrained_twin(policy: Policy, seed: int) -> Policy:
    """The same spec and normaliser with parameters that have learned nothing."""
    params = fresh(policy.spec, np.random.default_rng(seed)).params
    return Policy(policy.spec, dataclasses.replace(policy.weights, params=params), version=0)


def plain(network: Strategist) -> Unroll:
    """Under NumPy."""

    def unroll(params: Params, obs: NDArray, memory: Tree) -> tuple[NDArray, Tree]:
        first = np.zeros(obs.shape[:2], np.bool_)
        insight = network.unroll_insight(NUMPY, params, obs, first, memory)
        return insight.latent, insight.memory

    return unroll


def latents(
    policy: Policy, seen: NDArray, *, encoder: Encoder = plain, show: Show = nobody
) -> NDArray:
    """seen [T, N, F] to latents float32 [T, N, latent]; every column is a match from its start."""
    network = strategist_of(policy, who="policy")
    carry_on = encoder(network)
    length, matches, _ = seen.shape
    found = np.empty((length, matches, network.latent), np.float32)
    for start in range(0, matches, COLUMNS):
        memory = network.memory(NUMPY, COLUMNS)
        for frame in range(0, length, SPAN):
            block = slice(frame, frame + SPAN), slice(start, start + COLUMNS)
            obs = normalise(NUMPY, policy.weights, seen[block])
            frames, columns, _ = obs.shape
            padded = np.pad(obs, [(0, SPAN - frames), (0, COLUMNS - columns), (0, 0)])
            latent, memory = carry_on(policy.weights.params, padded, memory)
            found[block] = latent[:frames, :columns]
        show(min((start + COLUMNS) / matches, 1.0))
    return found


def attention(policy: Policy, seen: NDArray, *, show: Show = nobody) -> NDArray:
    """seen [T, N, F] to the pool's weights float32 [T, N, window], the oldest frame first."""
    network = strategist_of(policy, who="policy")
    memory, rows = network.memory(NUMPY, seen.shape[1]), []
    for frame, obs in enumerate(seen, 1):
        insight = network.step_insight(
            NUMPY, policy.weights.params, normalise(NUMPY, policy.weights, obs), memory
        )
        memory = insight.memory
        rows.append(np.asarray(insight.attention))
        show(frame / len(seen))
    return np.stack(rows)
