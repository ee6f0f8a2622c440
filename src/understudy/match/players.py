"""Players: a policy, a pool of policies or a scripted bot, over `ops`, for many matches at once.

A player holds nothing that changes. Weights and memory are arguments of `act`, so that the same
code plays under NumPy and, compiled once for any weights, under JAX.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from understudy.core import chance
from understudy.core.ops import Array, Ops, Tree, mapped, stacked
from understudy.games.base import Bot
from understudy.policy import distributions
from understudy.policy.policy import Policy
from understudy.policy.spec import PolicySpec
from understudy.policy.weights import Weights, normalise


class PlayerView(NamedTuple):
    """What a player chooses from: the batch is the last axis of every field."""

    obs: Array
    """float32 [features, B]"""
    legal: Array
    """bool [options, B]"""
    seeds: Array
    """uint32 [B], of the matches"""
    side: Array
    """bool [B]: where the player is the game's second"""
    frame: Array
    """int32 [B]"""

    def key(self, ops: Ops, purpose: int = chance.SCRIPT) -> Array:
        """uint32 [B]: what this side draws random numbers from."""
        return chance.side_key(ops, self.seeds, self.side, purpose)


class Player(Protocol):
    """Chooses for many matches at once."""

    @property
    def weights(self) -> Tree:
        """The arrays that `act` is handed; () for a script."""

    def memory(self, ops: Ops, matches: int) -> Tree:
        """What is carried from frame to frame, empty: arrays [B, ...] in a tuple."""

    def act(self, ops: Ops, weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
        """Actions int32 [parts, B] and the next memory."""


@runtime_checkable
class ProgramPlayer(Protocol):
    """A player whose program is known apart from its weights, so that new weights need no new one.

    Any other player is compiled for itself alone.
    """

    @property
    def program_key(self) -> Player:
        """A hashable player that acts alike when it is handed the same weights; players of one
        program have equal keys."""


def members(player: Player) -> int:
    """How many there are of a player: its columns come in as many groups, all of one size."""
    return player.members if isinstance(player, PoolPlayer | _PoolProgram) else 1


@dataclass(frozen=True)
class _PolicyProgram:
    """How a policy of this spec plays, whatever its weights."""

    spec: PolicySpec
    sampled: bool

    @property
    def weights(self) -> Tree:
        return ()

    def memory(self, ops: Ops, matches: int) -> Tree:
        return self.spec.network.memory(ops, matches)

    def act(self, ops: Ops, weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
        """Legal actions; draws come from (seed, frame), never from the rest of the batch."""
        spec, held = self.spec, Weights(*weights)
        obs = normalise(ops, held, view.obs.T)
        logits, _, memory = spec.network.step(ops, held.params, obs, memory)
        if self.sampled:
            key = view.key(ops, chance.SAMPLING)
            key = chance.fold(key, view.frame.astype(ops.xp.uint32))
            parts = np.arange(len(spec.actions.parts), dtype=np.uint32)
            uniforms = chance.uniform(ops, key, parts).T
            actions, _ = distributions.choose(ops, spec.actions, logits, view.legal.T, uniforms)
        else:
            actions, _ = distributions.mode(ops, spec.actions, logits, view.legal.T)
        return actions.T, memory


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

    @property
    def program_key(self) -> _PolicyProgram:
        """One for all policies of this spec."""
        return _PolicyProgram(self.policy.spec, self.sampled)

    def memory(self, ops: Ops, matches: int) -> Tree:
        return self.program_key.memory(ops, matches)

    def act(self, ops: Ops, weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
        return self.program_key.act(ops, weights, view, memory)


@dataclass(frozen=True)
class _PoolProgram:
    """How a pool of so many policies plays, whatever their weights."""

    one: _PolicyProgram
    members: int

    @property
    def weights(self) -> Tree:
        return ()

    def memory(self, ops: Ops, matches: int) -> Tree:
        return self.one.memory(ops, matches)

    def act(self, ops: Ops, weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
        """Each member for its own columns, from weights [members, ...]."""
        columns = view.seeds.shape[0]
        if columns % self.members:
            raise ValueError(f"{columns} columns do not come in {self.members} equal groups")
        group = columns // self.members

        def one(weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
            return self.one.act(ops, weights, view, memory)

        def grouped(field: Array) -> Array:
            split = field.reshape(*field.shape[:-1], self.members, group)
            return ops.xp.moveaxis(split, -2, 0)

        views = PlayerView(*(grouped(field) for field in view))
        held = mapped(lambda leaf: leaf.reshape(self.members, group, *leaf.shape[1:]), memory)
        actions, held = ops.each(one, weights, views, held)
        joined = mapped(lambda leaf: leaf.reshape(columns, *leaf.shape[2:]), held)
        return ops.xp.moveaxis(actions, 0, 1).reshape(-1, columns), joined


@dataclass(frozen=True)
class PoolPlayer:
    """Policies of one spec as one opponent: each plays an equal share of the columns, in order.

    Their weights are stacked, so that twenty snapshots are one forward of one compiled program.
    """

    policies: tuple[Policy, ...]
    sampled: bool = False

    def __post_init__(self) -> None:
        if not self.policies or any(one.spec != self.policies[0].spec for one in self.policies):
            raise ValueError("expected at least one policy, all of one spec")

    @property
    def members(self) -> int:
        """How many policies there are."""
        return len(self.policies)

    @cached_property
    def weights(self) -> Tree:
        """Those of the members, [members, ...] each."""
        return stacked([PolicyPlayer(one).weights for one in self.policies])

    @property
    def program_key(self) -> _PoolProgram:
        """One for all pools of this spec and size."""
        return _PoolProgram(_PolicyProgram(self.policies[0].spec, self.sampled), self.members)

    def memory(self, ops: Ops, matches: int) -> Tree:
        return self.program_key.memory(ops, matches)

    def act(self, ops: Ops, weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
        return self.program_key.act(ops, weights, view, memory)


@dataclass(frozen=True)
class BotPlayer:
    """A scripted bot."""

    bot: Bot

    @property
    def weights(self) -> Tree:
        return ()

    @property
    def program_key(self) -> BotPlayer:
        return self

    def memory(self, ops: Ops, matches: int) -> Tree:
        return ()

    def act(self, ops: Ops, weights: Tree, view: PlayerView, memory: Tree) -> tuple[Array, Tree]:
        return self.bot.act(ops, view.obs, view.key(ops), view.frame), memory
