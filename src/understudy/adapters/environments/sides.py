"""Players on the sides of environments: policies, scripted bots, and one that draws at random.

A row is one side of one environment: `number * agents + side`, where `number` counts all
environments of a run, wherever they are played. Whatever a player draws follows from the seed, the
row and how often it has acted there; a network computes rows in blocks of a fixed size, each row in
its own place. So a side plays the same, bit for bit, beside whichever other environments it is
played (a product of matrices may round differently when it has another number of rows).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from understudy.adapters.gymnasium.spaces import SpaceTranslator
from understudy.core.arrays import NDArray
from understudy.core.chance import fold, uniform
from understudy.core.errors import InputError
from understudy.core.ops import NUMPY, Tree, mapped
from understudy.core.user_code import USER_ERRORS
from understudy.policy import distributions
from understudy.policy.network import emptied
from understudy.policy.policy import Choice, Policy

RANDOM = "random"
BLOCK = 32
"""Rows that a network computes at once."""
_DRAWS = 0x51DE


class SideView(NamedTuple):
    """What a side must act on."""

    row: int
    match: int
    """The number of the match in its environment."""
    first: bool
    """Whether this is the first decision of the side in its match."""
    obs: NDArray
    """float32 [F]"""
    legal: NDArray
    """bool [options]"""
    seen: Any
    """The observation as the environment gave it."""


class SidePlayer(Protocol):
    """Plays sides; memory of matches, where it has any, is its own affair."""

    def act(self, views: Sequence[SideView]) -> list[Any]:
        """An action for each view, as the environment takes it."""


ScriptedBot = Callable[[Any, NDArray, np.random.Generator], Any]
"""`bot(observation, legal, rng) -> action`: the observation as the environment gave it, which
options are legal (bool [options]), a generator to draw from; the action as the environment takes
it."""


class RowChance:
    """Uniform numbers by row: a function of the seed, the row and how often the row drew."""

    def __init__(self, rows: int, seed: int, *, purpose: int) -> None:
        key = fold(np.full(1, _DRAWS, np.uint32), purpose)
        key = fold(fold(key, seed & 0xFFFFFFFF), (seed >> 32) & 0xFFFFFFFF)
        self._keys = np.asarray(fold(key, np.arange(rows, dtype=np.uint32)))
        self._drawn = np.zeros(rows, np.uint32)

    def draw(self, rows: NDArray, count: int) -> NDArray:
        """float32 [N, count] in [0, 1), the next ones of these rows, int [N]."""
        keys = fold(self._keys[rows], self._drawn[rows])
        self._drawn[rows] += np.uint32(1)
        return np.ascontiguousarray(uniform(NUMPY, keys, np.arange(count, dtype=np.uint32)).T)


class PolicyRows:
    """A policy in up to `rows` rows, with a memory for each."""

    def __init__(self, policy: Policy, rows: int) -> None:
        self.policy = policy
        self._size = min(rows, BLOCK)
        self._memory: dict[int, Tree] = {}
        """By block, [size, ...] each."""

    def act(
        self,
        rows: NDArray,
        obs: NDArray,
        first: NDArray,
        *,
        legal: NDArray | None = None,
        uniforms: NDArray | None = None,
        keep: bool = True,
    ) -> Choice:
        """Decide for obs [N, F] in these rows, int [N], each of them once; memory is emptied where
        `first` [N], and kept as it was unless `keep`. The choice has no memory."""
        found: list[tuple[NDArray, Choice]] = []
        for block in np.unique(rows // self._size).tolist():
            at = np.flatnonzero(rows // self._size == block)
            found.append(
                (at, self._in_block(block, rows, at, obs, first, legal, uniforms, keep=keep))
            )
        if len(found) == 1:
            return found[0][1]
        actions = np.empty((len(rows), *found[0][1].actions.shape[1:]), found[0][1].actions.dtype)
        log_probs, values = (np.empty(len(rows), np.float32) for _ in range(2))
        for at, choice in found:
            actions[at], log_probs[at], values[at] = choice[:3]
        return Choice(actions, log_probs, values, None)

    def memory(self, rows: NDArray) -> Tree:
        """[N, ...] of these rows, int [N]; empty where they have not acted yet."""
        blocks, places = np.divmod(rows, self._size)
        return joined(
            [
                _row_of(self._of(block), place)
                for block, place in zip(blocks.tolist(), places.tolist(), strict=True)
            ]
        )

    def _of(self, block: int) -> Tree:
        if block not in self._memory:
            self._memory[block] = self.policy.begin(self._size)
        return self._memory[block]

    def _in_block(
        self,
        block: int,
        rows: NDArray,
        at: NDArray,
        obs: NDArray,
        first: NDArray,
        legal: NDArray | None,
        uniforms: NDArray | None,
        *,
        keep: bool,
    ) -> Choice:
        places = rows[at] - block * self._size
        memory = self._of(block)
        whole = len(at) == self._size and bool((np.diff(places) == 1).all())
        if whole:
            seen, began, allowed, drawn = obs[at], first[at], legal, uniforms
            allowed = None if legal is None else legal[at]
            drawn = None if uniforms is None else uniforms[at]
        else:
            seen = _placed(obs[at], places, self._size)
            began = _placed(first[at], places, self._size)
            allowed = None if legal is None else _placed(legal[at], places, self._size, fill=True)
            drawn = None if uniforms is None else _placed(uniforms[at], places, self._size)
        choice = self.policy.act(seen, emptied(NUMPY, memory, began), legal=allowed, uniforms=drawn)
        if keep:
            acted = np.zeros(self._size, np.bool_)
            acted[places] = True
            self._memory[block] = choice.memory if whole else _chosen(acted, choice.memory, memory)
        if whole:
            return choice._replace(memory=None)
        return Choice(choice.actions[places], choice.log_probs[places], choice.values[places], None)


class PolicySide:
    """A policy as a player: draws its actions, or takes the likeliest."""

    def __init__(
        self,
        policy: Policy,
        spaces: SpaceTranslator,
        *,
        rows: int,
        seed: int,
        sampled: bool = True,
    ) -> None:
        self._rows = PolicyRows(policy, rows)
        self._spaces = spaces
        self._parts = len(policy.spec.actions.parts)
        self._chance = RowChance(rows, seed, purpose=1) if sampled else None

    def replace(self, policy: Policy) -> None:
        """Go on with other weights, and with the memory as it is."""
        self._rows.policy = policy

    def act(self, views: Sequence[SideView]) -> list[Any]:
        rows = np.array([view.row for view in views])
        choice = self._rows.act(
            rows,
            np.stack([view.obs for view in views]),
            np.array([view.first for view in views]),
            legal=np.stack([view.legal for view in views]),
            uniforms=self._chance.draw(rows, self._parts) if self._chance else None,
        )
        return [self._spaces.action_of(action) for action in choice.actions]


class RandomSide:
    """Uniform over the legal options; real numbers are normal around the middle of their range."""

    def __init__(self, spaces: SpaceTranslator, *, rows: int, seed: int) -> None:
        self._spaces = spaces
        self._chance = RowChance(rows, seed, purpose=2)

    def act(self, views: Sequence[SideView]) -> list[Any]:
        space = self._spaces.actions
        legal = np.stack([view.legal for view in views])
        uniforms = self._chance.draw(np.array([view.row for view in views]), len(space.parts))
        outputs = np.zeros((len(views), space.options), np.float32)
        actions, _ = distributions.choose(NUMPY, space, outputs, legal, uniforms)
        return [self._spaces.action_of(action) for action in actions]


class ScriptedSide:
    """A Python callable as a player."""

    def __init__(self, name: str, bot: ScriptedBot, spaces: SpaceTranslator, *, seed: int) -> None:
        self.name = name
        self._bot = bot
        self._spaces = spaces
        self._seed = seed
        self._rngs: dict[int, tuple[int, np.random.Generator]] = {}
        """By row: the number of its match, and what is drawn from there."""

    def act(self, views: Sequence[SideView]) -> list[Any]:
        return [self._chosen(view) for view in views]

    def _chosen(self, view: SideView) -> Any:
        match, rng = self._rngs.get(view.row, (-1, None))
        if rng is None or match != view.match:
            rng = np.random.default_rng([self._seed, view.row, view.match])
            self._rngs[view.row] = view.match, rng
        try:
            action = self._bot(view.seen, view.legal.copy(), rng)
        except USER_ERRORS as error:
            raise InputError(
                f"--bots: {self.name} failed with {type(error).__name__}: {error}"
            ) from error
        if isinstance(action, np.integer):
            action = int(action)
        if not self._spaces.allows(view.legal, action):
            legal = np.flatnonzero(view.legal).tolist()
            raise InputError(
                f"--bots: {self.name} chose {action!r}, which is not legal here; expected an "
                f"action of {self._spaces.space} among the legal options {legal}"
            )
        return action


def _row_of(tree: Tree, place: int) -> Tree:
    """One row, [1, ...] each, of a tree of arrays [size, ...]."""
    return mapped(lambda leaf: leaf[place : place + 1], tree)


def joined(trees: Sequence[Tree]) -> Tree:
    """Equal trees of arrays [N, ...] as one, along the first axis."""
    head = trees[0]
    if isinstance(head, dict):
        return {key: joined([tree[key] for tree in trees]) for key in head}
    if isinstance(head, tuple):
        parts = [joined(list(column)) for column in zip(*trees, strict=True)]
        return type(head)(*parts) if hasattr(head, "_fields") else tuple(parts)
    return np.concatenate(trees)


def _placed(values: NDArray, places: NDArray, size: int, *, fill: bool = False) -> NDArray:
    """[size, ...] with these values at these places, and nothing (or `fill`) elsewhere."""
    out: NDArray = np.full((size, *values.shape[1:]), fill, values.dtype)
    out[places] = values
    return out


def _chosen(acted: NDArray, new: Tree, old: Tree) -> Tree:
    """`new` where `acted` [size], else `old`; trees of arrays [size, ...]."""
    if isinstance(new, dict):
        return {key: _chosen(acted, new[key], old[key]) for key in new}
    if isinstance(new, tuple):
        parts = [_chosen(acted, one, two) for one, two in zip(new, old, strict=True)]
        return type(new)(*parts) if hasattr(new, "_fields") else tuple(parts)
    return np.where(acted.reshape(-1, *(1,) * (new.ndim - 1)), new, old)
