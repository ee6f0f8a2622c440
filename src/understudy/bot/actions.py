"""Translation between the actions of a bot and the numbers of a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import InputError, nearest
from understudy.core.spaces import ActionSpace, Continuous, Discrete, MultiBinary, MultiDiscrete

Action: TypeAlias = Any
"""A name (`Discrete`), a tuple of numbers (`MultiDiscrete`) or of booleans (`MultiBinary`)."""


def space_of(actions: ActionSpace | Sequence[str] | Mapping[str, object]) -> ActionSpace:
    """The action space of what a bot declares: names, a mapping of names, or a space."""
    if isinstance(actions, Continuous):
        raise InputError(
            "actions: a bot chooses among options, real numbers (Continuous) are for environments "
            "that are trained in (docs/environments.md)"
        )
    if isinstance(actions, Discrete | MultiDiscrete | MultiBinary):
        return actions
    if isinstance(actions, Mapping):
        unmapped = [name for name, handler in actions.items() if handler is None]
        if unmapped:
            raise InputError(f"actions: {unmapped[0]!r} is mapped to nothing")
    listed = isinstance(actions, Iterable) and not isinstance(actions, str)
    if not listed or not all(isinstance(name, str) for name in actions):
        raise InputError(
            "actions: expected a list of names, a mapping of names, or an action space of "
            f"understudy, such as Discrete(('left', 'right')), got {actions!r}"
        )
    return Discrete(tuple(actions))


class Codec:
    """Translates between a bot's actions and int32 [parts]."""

    def __init__(self, space: ActionSpace) -> None:
        self._space = space
        self._parts = np.array(space.parts)
        self._names = space.names if isinstance(space, Discrete) else ()
        self._index = {name: index for index, name in enumerate(self._names)}

    def label(self, action: NDArray) -> Action:
        """int32 [parts] as the bot knows it."""
        if self._names:
            return self._names[action[0]]
        if isinstance(self._space, MultiBinary):
            return tuple(bool(on) for on in action)
        return tuple(int(option) for option in action)

    def number(self, action: Action, *, what: str) -> NDArray | int:
        """What the bot named, as int32 [parts] (or a plain number where there is one part)."""
        if self._names:
            index = self._index.get(action) if isinstance(action, str) else action
            if isinstance(index, int | np.integer) and 0 <= index < len(self._names):
                return int(index)
            raise InputError(
                f"{what}: {action!r} is not one of the actions {list(self._names)}."
                f"{nearest(str(action), self._names)}"
            )
        try:
            numbers = np.asarray(action)
        except ValueError as error:  # lists of different lengths
            raise InputError(f"{what}: expected whole numbers, got {action!r}") from error
        if numbers.shape != self._parts.shape or numbers.dtype.kind not in "biu":
            raise InputError(f"{what}: expected {len(self._parts)} whole numbers, got {action!r}")
        if (numbers < 0).any() or (numbers >= self._parts).any():
            raise InputError(f"{what}: {action!r} is outside the options {self._space.parts}")
        return numbers.astype(np.int32)
