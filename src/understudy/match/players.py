"""Who plays: a policy or a scripted bot, over `ops`, choosing for many matches at once.

A player holds nothing that changes: weights and memory are handed to `act`, so that the same code
plays under NumPy and, compiled once for any weights, under JAX.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from understudy.core import chance
from understudy.core.ops import Array, Ops, Tree
from understudy.games.base import Bot
from understudy.policy import distributions
from understudy.policy.policy import Policy
from understudy.policy.weights import Weights, normalise

_DRAW_SALT = 0x5EED


class View(NamedTuple):
    """What one side has before it when it chooses: the batch is the last axis."""

    obs: Array
    """float32 [features, B]"""
    legal: Array
    """bool [options, B]"""
    seeds: Array
    """uint32 [B]: what this side's chance comes from."""
    frame: Array
    """int32 [B]"""


class Player(Protocol):
    """Chooses for many matches at once."""

    @property
    def weights(self) -> Tree:
        """The arrays that `act` is handed; () for a script."""

    def memory(self, ops: Ops, matches: int) -> Tree:
        """What is carried from frame to frame, empty: arrays [B, ...] in a tuple."""

    def act(self, ops: Ops, weights: Tree, view: View, memory: Tree) -> tuple[Array, Tree]:
        """Actions int32 [parts, B] and the next memory."""


@dataclass(frozen=True)
class PolicyPlayer:
    """A policy that plays its likeliest action, or draws one, as it does while it learns."""

    policy: Policy
    sampled: bool = False

    @property
    def weights(self) -> Tree:
        """Parameters, normaliser and scale of the policy."""
        held = self.policy.weights
        return held.params, held.obs_mean, held.obs_scale, held.value_scale

    def memory(self, ops: Ops, matches: int) -> Tree:
        """The network's own."""
        return self.policy.spec.network.memory(ops, matches)

    def act(self, ops: Ops, weights: Tree, view: View, memory: Tree) -> tuple[Array, Tree]:
        """Legal actions; draws come from (seed, frame), never from the rest of the batch."""
        spec, held = self.policy.spec, Weights(*weights)
        obs = normalise(ops, held, view.obs.T)
        logits, _, memory = spec.network.step(ops, held.params, obs, memory)
        if self.sampled:
            key = chance.fold(view.seeds, _DRAW_SALT)
            key = chance.fold(key, view.frame.astype(ops.xp.uint32))
            parts = np.arange(len(spec.actions.parts), dtype=np.uint32)
            uniforms = chance.uniform(ops, key, parts).T
            actions, _ = distributions.choose(ops, spec.actions, logits, view.legal.T, uniforms)
        else:
            actions, _ = distributions.mode(ops, spec.actions, logits, view.legal.T)
        return actions.T, memory


@dataclass(frozen=True)
class BotPlayer:
    """A scripted bot."""

    bot: Bot

    @property
    def weights(self) -> Tree:
        """None."""
        return ()

    def memory(self, ops: Ops, matches: int) -> Tree:
        """Nothing."""
        return ()

    def act(self, ops: Ops, weights: Tree, view: View, memory: Tree) -> tuple[Array, Tree]:
        """What the script says."""
        return self.bot.act(ops, view.obs, view.seeds, view.frame), memory
