"""A population: agents that play and learn side by side, all of them in one compiled program.

Every member has a trainer, rivals and orders of its own; the program alone is shared. What a member
learns is what it would have learned in an arena of its own, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from understudy.arena import slots as slotting
from understudy.arena.arena import Arena
from understudy.arena.compiling import options
from understudy.arena.iteration import IterationInputs, IterationOutputs, for_slots, iterate
from understudy.arena.results import Iteration
from understudy.arena.slots import Plan, Slots
from understudy.core.arrays import NDArray
from understudy.core.errors import NotFinite
from understudy.core.ops import Array, Tree
from understudy.learner.maths.descent import FixedInputs, LearnerState
from understudy.policy.layers import Params

Program: TypeAlias = Callable[
    [
        tuple[LearnerState, ...],
        tuple[FixedInputs, ...],
        tuple[Params, ...],
        tuple[IterationInputs, ...],
        Slots,
    ],
    tuple[tuple[LearnerState, ...], Slots, IterationOutputs],
]


class Member(Arena):
    """The arena of one agent, whose iterations a `Population` plays."""

    fresh = True
    """Whether its matches begin anew with the next iteration."""

    def iterate(self) -> Iteration:
        """Never alone."""
        raise ValueError("a member of a population plays with the others: Population.iterate")

    def restart(self, seed: int) -> None:
        """Begin new matches: those in flight are remembered by weights that are gone."""
        self._seed, self.fresh = np.uint32(seed & 0xFFFFFFFF), True

    @property
    def seed(self) -> np.uint32:
        """Of its matches."""
        return self._seed

    def accept(self, state: LearnerState, outputs: IterationOutputs) -> Iteration:
        """As an arena does, of an iteration that the population played."""
        self.fresh = False
        return super().accept(state, outputs)


class Population:
    """Plays all members at once; K agents times `train.games` matches are side by side."""

    def __init__(self, members: Sequence[Member]) -> None:
        if any(member.plan != members[0].plan for member in members):
            raise ValueError("members of a population have one plan: network, game and settings")
        self.members = tuple(members)
        self._plan = members[0].plan
        self._slots: Slots | None = None

    def iterate(self) -> list[Iteration | NotFinite]:
        """One iteration of every member; the error for one whose learning broke, which is then as
        it was before."""
        inputs = tuple(member.inputs() for member in self.members)
        states, self._slots, outputs = _program(self._plan)(
            tuple(member.trainer.state for member in self.members),
            tuple(member.trainer.fixed_inputs for member in self.members),
            tuple(member.rivals.params for member in self.members),
            inputs,
            self._begun(inputs),
        )
        fetched = jax.device_get(outputs)
        return [
            _accepted(member, state, _row(fetched, index))
            for index, (member, state) in enumerate(zip(self.members, states, strict=True))
        ]

    def _begun(self, inputs: Sequence[IterationInputs]) -> Slots:
        """The slots [K, ...], with new matches where a member wants them."""
        fresh = np.array([member.fresh for member in self.members])
        if self._slots is not None and not fresh.any():
            return self._slots
        seeds = np.array([member.seed for member in self.members], np.uint32)
        begun: Slots = _begin(self._plan)(seeds, np.stack([one.bounds for one in inputs]))
        return begun if self._slots is None else _renewed(self._slots, begun, fresh)


def _accepted(
    member: Member, state: LearnerState, outputs: IterationOutputs
) -> Iteration | NotFinite:
    try:
        return member.accept(state, outputs)
    except NotFinite as error:
        return error


@cache
def _program(plan: Plan) -> Program:
    """The slots given are used up. Stacking and taking apart is part of the program: by itself it
    would be hundreds of small calls an iteration."""

    def run(
        states: tuple[LearnerState, ...],
        frozen: tuple[FixedInputs, ...],
        rivals: tuple[Params, ...],
        orders: tuple[IterationInputs, ...],
        slots: Slots,
    ) -> tuple[tuple[LearnerState, ...], Slots, IterationOutputs]:
        after, slots, played = jax.vmap(partial(iterate, plan))(
            _stacked(states), _stacked(frozen), _stacked(rivals), _stacked(orders), slots
        )
        return tuple(_row(after, index) for index in range(len(states))), slots, played

    return jax.jit(run, donate_argnums=4, compiler_options=options())


@cache
def _begin(plan: Plan) -> jax.stages.Wrapped:
    def one(seed: Array, bounds: Array) -> Slots:
        return slotting.begin(plan, seed, for_slots(plan, bounds))

    return jax.jit(jax.vmap(one))


@partial(jax.jit, donate_argnums=0)
def _renewed(slots: Slots, begun: Slots, fresh: NDArray) -> Slots:
    """Those of `begun` where `fresh` [K], else the slots, which are used up."""

    def one(old: Array, new: Array) -> Array:
        return jnp.where(fresh.reshape(-1, *[1] * (old.ndim - 1)), new, old)

    renewed: Slots = jax.tree.map(one, slots, begun)
    return renewed


def _stacked(trees: Sequence[Tree]) -> Tree:
    return jax.tree.map(lambda *arrays: jnp.stack(arrays), *trees)


def _row(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda array: array[index], tree)
