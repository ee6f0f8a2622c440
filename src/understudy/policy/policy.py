"""The policy that acts, under NumPy: one immutable set of weights that answers observations.

A policy never changes. A bot that learns holds a reference to one and swaps the reference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.ops import NUMPY, Array, Tree
from understudy.policy import distributions
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights, fresh, normalise


class Choice(NamedTuple):
    """actions [B, parts], log_probs [B], values [B] in units of reward, the next memory."""

    actions: NDArray
    log_probs: NDArray
    values: NDArray
    memory: Tree


class Policy:
    """A spec with weights, and the number of the version that they are."""

    def __init__(self, spec: PolicySpec, weights: Weights, version: int) -> None:
        self.spec = spec
        self.weights = weights
        self.version = version

    @property
    def remembers(self) -> bool:
        """Whether it carries anything from step to step."""
        return self.spec.remembers

    def begin(self, batch: int = 1) -> Tree:
        """Empty memory for new matches."""
        return self.spec.network.memory(NUMPY, batch)

    def act(
        self,
        obs: NDArray,
        memory: Tree,
        *,
        legal: NDArray | None = None,
        uniforms: Array | None = None,
    ) -> Choice:
        """Decide for obs [B, F]: sampled with uniforms [B, parts], else the likeliest action."""
        weights = self.weights
        logits, values, memory = self.spec.network.step(
            NUMPY, weights.params, normalise(NUMPY, weights, obs), memory
        )
        space = self.spec.actions
        if uniforms is None:
            actions, log_probs = distributions.mode(NUMPY, space, logits, legal)
        else:
            actions, log_probs = distributions.choose(NUMPY, space, logits, legal, uniforms)
        return Choice(actions, log_probs, values * weights.value_scale, memory)


def untrained(spec: PolicySpec, seed: int) -> Policy:
    """Version 0: what plays before anything was learned."""
    return Policy(spec, fresh(spec, np.random.default_rng(seed)), version=0)
