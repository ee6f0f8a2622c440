"""Latents and attention of recorded matches, under trained and untrained weights.

The untrained encoder is the baseline of every figure. It differs from the trained one in its
parameters alone: same network, same normaliser, same matches. So it shows what the frames
themselves contain, as far as a random network of this size keeps it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from understudy.analysis.recording import Show, no_progress
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
    """The network of a policy; InputError if it has no strategy latent."""
    network = policy.spec.network
    if not isinstance(network, Strategist):
        kind = type(network).__name__.lower()
        raise InputError(
            f"{who}: its network is of kind {kind}, which has no strategy latent to look into; "
            "analyze an agent that was trained with --network small, medium or seed"
        )
    return network


def untrained_twin(policy: Policy, seed: int) -> Policy:
    """The same spec and normaliser with initial parameters."""
    params = fresh(policy.spec, np.random.default_rng(seed)).params
    return Policy(policy.spec, dataclasses.replace(policy.weights, params=params), version=0)


def plain(network: Strategist) -> Unroll:

    def unroll(params: Params, obs: NDArray, memory: Tree) -> tuple[NDArray, Tree]:
        first = np.zeros(obs.shape[:2], np.bool_)
        insight = network.unroll_insight(NUMPY, params, obs, first, memory)
        return insight.latent, insight.memory

    return unroll


def latents(
    policy: Policy, seen: NDArray, *, encoder: Encoder = plain, show: Show = no_progress
) -> NDArray:
    """seen [T, N, F] to latents float32 [T, N, latent]; every column is a match from its start."""
    network = strategist_of(policy, who="policy")
    unroll = encoder(network)
    length, matches, _ = seen.shape
    found = np.empty((length, matches, network.latent), np.float32)
    for start in range(0, matches, COLUMNS):
        memory = network.memory(NUMPY, COLUMNS)
        for frame in range(0, length, SPAN):
            block = slice(frame, frame + SPAN), slice(start, start + COLUMNS)
            obs = normalise(NUMPY, policy.weights, seen[block])
            frames, columns, _ = obs.shape
            padded = np.pad(obs, [(0, SPAN - frames), (0, COLUMNS - columns), (0, 0)])
            latent, memory = unroll(policy.weights.params, padded, memory)
            found[block] = latent[:frames, :columns]
        show(min((start + COLUMNS) / matches, 1.0))
    return found


def attention(policy: Policy, seen: NDArray, *, show: Show = no_progress) -> NDArray:
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
