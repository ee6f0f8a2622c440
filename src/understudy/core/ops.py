"""The one seam between engines: networks and games are written once over `Ops`.

The bot passes `NUMPY`; the learner and the arena pass their JAX twin (`learner.maths.jax_ops.JAX`).
Code over `ops` uses `ops.xp` as it would use `numpy`, and never writes into an array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""A NumPy or a JAX array: shapes are in the docstrings."""

Tree: TypeAlias = Any
"""Arrays nested in dicts, tuples and named tuples."""


class Recur(Protocol):
    """`h_t, c_t = cell(inputs_t + h_(t-1) @ weight, c_(t-1))`, both emptied where `first`."""

    def __call__(
        self,
        cell: Callable[[Array, Array], tuple[Array, Array]],
        weight: Array,
        inputs: Array,
        first: Array,
        hidden: Array,
        state: Array,
    ) -> tuple[Array, Array, Array]:
        """weight [H, G], inputs [T, B, G], first [T, B], hidden and state [B, H] to all hidden
        [T, B, H], and the last hidden and state. `cell` maps gates [B, G] and state to both."""


@dataclass(frozen=True)
class Ops:
    """An array namespace, and the four things that arrays alone cannot say."""

    name: str
    xp: Any
    scan: Callable[[Callable[[Tree, Tree], tuple[Tree, Tree]], Tree, Tree], tuple[Tree, Tree]]
    """`scan(f, carry, xs) -> (carry, ys)` over the leading axis of every array in `xs`."""
    barrier: Callable[[Tree], Tree]
    """The same tree; under XLA a wall between phases that fusion does not cross."""
    recur: Recur
    """A recurrence whose gradient is worth writing by hand; see `Recur`."""
    each: Callable[..., Tree]
    """`each(f, *trees) -> f(*trees)` for every index of the leading axis, answers stacked."""


def mapped(f: Callable[[Array], Array], tree: Tree) -> Tree:
    """The same tree with `f` of every array in it."""
    if isinstance(tree, dict):
        return {key: mapped(f, value) for key, value in tree.items()}
    if isinstance(tree, tuple):
        parts = [mapped(f, value) for value in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return f(tree)


def stacked(trees: list[Tree]) -> Tree:
    """Equal trees of NumPy arrays as one, with a leading axis more."""
    head = trees[0]
    if isinstance(head, dict):
        return {key: stacked([tree[key] for tree in trees]) for key in head}
    if isinstance(head, tuple):
        parts = [stacked(list(column)) for column in zip(*trees, strict=True)]
        return type(head)(*parts) if hasattr(head, "_fields") else tuple(parts)
    return np.stack(trees)


def _leaves_at(tree: Tree, index: int) -> Tree:
    return mapped(lambda leaf: leaf[index], tree)


def _length(tree: Tree) -> int:
    while isinstance(tree, dict | tuple):
        tree = next(iter(tree.values())) if isinstance(tree, dict) else tree[0]
    return len(tree)


def numpy_scan(
    f: Callable[[Tree, Tree], tuple[Tree, Tree]], carry: Tree, xs: Tree
) -> tuple[Tree, Tree]:
    """`lax.scan` as a Python loop. `xs` must hold at least one step."""
    ys = []
    for index in range(_length(xs)):
        carry, y = f(carry, _leaves_at(xs, index))
        ys.append(y)
    return carry, stacked(ys)


def numpy_recur(
    cell: Callable[[Array, Array], tuple[Array, Array]],
    weight: Array,
    inputs: Array,
    first: Array,
    hidden: Array,
    state: Array,
) -> tuple[Array, Array, Array]:
    every = []
    for inputs_t, first_t in zip(inputs, first, strict=True):
        kept = ~first_t[:, None]
        hidden, state = cell(inputs_t + np.dot(hidden * kept, weight), state * kept)
        every.append(hidden)
    return np.stack(every), hidden, state


def numpy_each(f: Callable[..., Tree], *trees: Tree) -> Tree:
    """`jax.vmap` as a Python loop. The leading axis must hold at least one index."""
    return stacked([f(*_leaves_at(trees, index)) for index in range(_length(trees))])


NUMPY = Ops(
    name="numpy",
    xp=np,
    scan=numpy_scan,
    barrier=lambda tree: tree,
    recur=numpy_recur,
    each=numpy_each,
)
