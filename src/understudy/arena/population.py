"""A population: agents that play and learn side by side, all of them in one compiled program.

Every member has its own trainer, snapshots and inputs; only the program is shared. A member learns
what it would have learned in an arena of its own, up to rounding. Several devices have as many
members each and exchange nothing while they play and learn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from understudy.arena.arena import Arena
from understudy.arena.columns import Columns, Plan, begin
from understudy.arena.compiling import options
from understudy.arena.devices import everywhere, placed
from understudy.arena.iteration import IterationInputs, IterationOutputs, iterate
from understudy.arena.results import Iteration
from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError, NotFinite
from understudy.core.ops import Array, Tree
from understudy.learner.hardware import partition, per_device
from understudy.learner.maths.descent import FixedInputs, LearnerState
from understudy.policy.layers import Params

_AGENTS = "agents"

Program: TypeAlias = Callable[
    [
        tuple[LearnerState, ...],
        tuple[FixedInputs, ...],
        tuple[Params, ...],
        tuple[IterationInputs, ...],
        Columns,
    ],
    tuple[tuple[LearnerState, ...], Columns, IterationOutputs],
]


class Member(Arena):
    """The arena of one agent, whose iterations a `Population` plays."""

    fresh = True
    """Whether its matches begin anew with the next iteration."""

    def iterate(self) -> Iteration:
        raise ValueError("a member of a population plays with the others: Population.iterate")

    def restart(self, seed: int) -> None:
        """Begin new matches: the memories of those in progress belong to weights that are gone."""
        self._seed, self.fresh = np.uint32(seed & 0xFFFFFFFF), True

    @property
    def seed(self) -> np.uint32:
        return self._seed

    def accept(self, state: LearnerState, outputs: IterationOutputs) -> Iteration:
        """As an arena does, of an iteration that the population played."""
        self.fresh = False
        return super().accept(state, outputs)


class Population:
    """Plays all members at once; K agents times `train.games` matches are side by side."""

    def __init__(self, members: Sequence[Member], *, devices: int = 1) -> None:
        check_agents(len(members), devices=devices)
        if any(member.plan != members[0].plan for member in members):
            raise ValueError("members of a population have one plan: network, game and settings")
        self.members = tuple(members)
        self._plan = members[0].plan
        self._mesh = _mesh(devices)
        self._columns: Columns | None = None

    def iterate(self) -> list[Iteration | NotFinite]:
        """One iteration of every member; the error for one whose learning broke, which is then as
        it was before."""
        inputs = tuple(member.inputs() for member in self.members)
        states, fixed, snapshots, given = everywhere(
            self._mesh,
            (
                tuple(member.trainer.state for member in self.members),
                tuple(member.trainer.fixed_inputs for member in self.members),
                tuple(member.snapshots.params for member in self.members),
                inputs,
            ),
        )
        states, self._columns, outputs = _program(self._plan, self._mesh)(
            states, fixed, snapshots, given, self._begun(inputs)
        )
        fetched = jax.device_get(outputs)
        return [
            _accepted(member, state, _row(fetched, index))
            for index, (member, state) in enumerate(zip(self.members, states, strict=True))
        ]

    def _begun(self, inputs: Sequence[IterationInputs]) -> Columns:
        """The columns [K, ...], with new matches where a member wants them."""
        fresh = np.array([member.fresh for member in self.members])
        if self._columns is not None and not fresh.any():
            return self._columns
        seeds = np.array([member.seed for member in self.members], np.uint32)
        bounds = np.stack([one.bounds for one in inputs])
        begun: Columns = _begin(self._plan, self._mesh)(seeds, bounds)
        return begun if self._columns is None else _renewed(self._columns, begun, fresh)


def _accepted(
    member: Member, state: LearnerState, outputs: IterationOutputs
) -> Iteration | NotFinite:
    try:
        return member.accept(state, outputs)
    except NotFinite as error:
        return error


def check_agents(agents: int, *, devices: int) -> None:
    """Raise a `ConfigError` if the devices cannot have as many agents each."""
    if agents % devices:
        raise ConfigError(
            f"--devices: {devices} devices cannot share {agents} agents evenly: each trains whole "
            f"agents; expected --population to be a multiple of {devices}"
        )


def _mesh(devices: int) -> Mesh | None:
    return None if devices == 1 else Mesh(np.array(jax.local_devices()[:devices]), (_AGENTS,))


@cache
def _program(plan: Plan, mesh: Mesh | None) -> Program:
    """The columns given are used up. Stacking and taking apart is part of the program: by itself it
    would be hundreds of small calls an iteration."""
    agents = partition(_AGENTS)
    together = per_device(jax.vmap(partial(iterate, plan)), mesh, given=agents, made=agents)

    def run(
        states: tuple[LearnerState, ...],
        fixed: tuple[FixedInputs, ...],
        snapshots: tuple[Params, ...],
        inputs: tuple[IterationInputs, ...],
        columns: Columns,
    ) -> tuple[tuple[LearnerState, ...], Columns, IterationOutputs]:
        after, columns, outputs = together(
            _stacked(states), _stacked(fixed), _stacked(snapshots), _stacked(inputs), columns
        )
        return tuple(_row(after, index) for index in range(len(states))), columns, outputs

    made = placed(mesh, (partition(), agents, partition()))
    return jax.jit(run, donate_argnums=4, out_shardings=made, compiler_options=options())


@cache
def _begin(plan: Plan, mesh: Mesh | None) -> jax.stages.Wrapped:
    return jax.jit(jax.vmap(partial(begin, plan)), out_shardings=placed(mesh, partition(_AGENTS)))


@partial(jax.jit, donate_argnums=0)
def _renewed(columns: Columns, begun: Columns, fresh: NDArray) -> Columns:
    """Those of `begun` where `fresh` [K], else the columns, which are used up."""

    def one(old: Array, new: Array) -> Array:
        return jnp.where(fresh.reshape(-1, *[1] * (old.ndim - 1)), new, old)

    renewed: Columns = jax.tree.map(one, columns, begun)
    return renewed


def _stacked(trees: Sequence[Tree]) -> Tree:
    return jax.tree.map(lambda *arrays: jnp.stack(arrays), *trees)


def _row(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda array: array[index], tree)
