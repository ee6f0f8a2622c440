"""Gymnasium's spaces as ours: what is observed becomes named numbers, actions become parts.

Whatever does not fit is a `ConfigError` that says which space it was and what would fit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, TypeVar

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.dependencies import needs
from understudy.core.errors import ConfigError, InputError
from understudy.core.ops import NUMPY
from understudy.core.spaces import ActionSpace, Continuous, Discrete, MultiBinary, MultiDiscrete
from understudy.policy import distributions

with needs("{} is not installed", extra="envs"):
    from gymnasium import spaces

SpaceT = TypeVar("SpaceT", bound="spaces.Space[Any]")
MASK = "action_mask"
"""The key of a mask, in an observation (PettingZoo's convention) or in an info (Gymnasium's)."""
_IMAGE_AXES = 3
_NAMES = "understudy_names"
"""The attribute of a space that has names for its numbers (`named`)."""


class SpaceTranslator:
    """Translates between one environment's spaces and ours."""

    def __init__(
        self, observation_space: Any, action_space: Any, *, features: Sequence[str] = ()
    ) -> None:
        """A mask in a `Dict` observation is no feature, unless it is one of `features`: those of an
        earlier run, whose network was made when it was."""
        self._actions = self.space = action_space
        self.actions: ActionSpace = _action_space(action_space)
        self._masks = (
            isinstance(observation_space, spaces.Dict)
            and MASK in observation_space.spaces
            and not isinstance(self.actions, Continuous)
        )
        if self._masks and not any(_of_the_mask(name) for name in features):
            rest = {key: one for key, one in observation_space.items() if key != MASK}
            observation_space = spaces.Dict(rest)
        self._observations = observation_space
        self.features: tuple[str, ...] = tuple(_features(observation_space, "", "observation"))
        inner = (
            list(observation_space.items()) if isinstance(observation_space, spaces.Dict) else []
        )
        boxed = len(inner) == 1 and isinstance(inner[0][1], spaces.Box)
        self._only_key = inner[0][0] if boxed else None
        """Of a Dict that is one Box, as board games have it: flattening costs twenty times less."""
        self._starts = np.cumsum((0, *self.actions.parts[:-1]))
        """Where each part begins among the options."""

    def features_of(self, obs: Any) -> NDArray:
        """One observation as float32 [F]."""
        if isinstance(self._observations, spaces.Box):
            return np.asarray(obs, np.float32).reshape(-1)
        if self._only_key is not None:
            return np.asarray(obs[self._only_key], np.float32).reshape(-1)
        return np.asarray(spaces.flatten(self._observations, obs), np.float32)

    def action_of(self, action: NDArray) -> Any:
        """What a policy drew, [parts], as the environment takes it."""
        space = self._actions
        if isinstance(space, spaces.Discrete):
            return int(action[0]) + int(space.start)
        if isinstance(space, spaces.Box):
            action = distributions.executed(NUMPY, self.actions, action)
        moved = action.reshape(space.shape)
        if isinstance(space, spaces.MultiDiscrete):
            moved = moved + space.start
        return moved.astype(space.dtype)

    def parts_of(self, action: Any) -> NDArray | None:
        """An action of the environment as int32 [parts]; None where actions are real numbers."""
        space = self._actions
        if isinstance(space, spaces.Box):
            return None
        parts = np.ravel(np.asarray(action))
        start = np.ravel(getattr(space, "start", 0))
        return np.asarray(parts - start, np.int32)

    def allows(self, legal: NDArray, action: Any) -> bool:
        """Whether an action of the environment is in its space, and legal, bool [options]."""
        if not self._actions.contains(action):
            return False
        parts = self.parts_of(action)
        return parts is None or bool(legal[self._starts + parts].all())

    def legal_of(self, info: Any, obs: Any = None) -> NDArray | None:
        """`action_mask` of an info, else of an observation, as bool [options]; None where
        everything is legal.

        It is taken as `action_space.sample(mask=...)` takes it: flags, a tuple of flags a part, or,
        of switches, 0 only off, 1 only on, 2 either.
        """
        mask = info.get(MASK) if isinstance(info, dict) else None
        if mask is None and self._masks and obs is not None:
            mask = obs[MASK]
        if mask is None or isinstance(self.actions, Continuous):
            return None
        flat = (
            np.concatenate([np.ravel(part) for part in mask])
            if isinstance(mask, tuple)
            else (np.ravel(mask))
        )
        if isinstance(self.actions, MultiBinary) and flat.size == len(self.actions.names):
            flat = np.stack([flat != 1, flat != 0], 1).reshape(-1)
        if flat.size != self.actions.options:
            raise InputError(
                f"action_mask: expected {self.actions.options} flags, got {flat.size} of the "
                "environment"
            )
        legal = flat.astype(np.bool_)
        possible = np.logical_or.reduceat(legal, self._starts)
        if not possible.all():
            raise InputError(
                f"action_mask: part {int(np.argmin(possible))} of {len(possible)} has no legal "
                "option in the environment; expected at least one in each"
            )
        return legal


def named(space: SpaceT, names: Sequence[str]) -> SpaceT:
    """Give names to the numbers of a `Box`, or to the switches of a `MultiBinary`: features and
    actions have them here. Returns the space."""
    if len(names) != math.prod(space.shape or ()):
        raise ConfigError(f"names: expected one for each number of {space}, got {len(names)}")
    setattr(space, _NAMES, tuple(names))
    return space


def _of_the_mask(feature: str) -> bool:
    return re.match(rf"{MASK}($|[.=])", feature) is not None


def _features(space: Any, name: str, default: str) -> Iterator[str]:
    """Names in the order of `gymnasium.spaces.flatten`; `name` is how the space is reached."""
    at = name or default
    if isinstance(space, spaces.Dict):
        for key, inner in space.spaces.items():
            yield from _features(inner, f"{name}.{key}" if name else str(key), default)
    elif isinstance(space, spaces.Tuple):
        for index, inner in enumerate(space.spaces):
            yield from _features(inner, f"{name}.{index}" if name else str(index), default)
    elif isinstance(space, spaces.Discrete):
        yield from (f"{at}={int(space.start) + option}" for option in range(int(space.n)))
    elif isinstance(space, spaces.MultiDiscrete):
        for index, size in enumerate(np.ravel(space.nvec)):
            yield from (f"{at}.{index}={option}" for option in range(int(size)))
    elif isinstance(space, spaces.Box | spaces.MultiBinary):
        shape = space.shape
        if _is_image(space):
            raise ConfigError(
                f"{at}: {space} looks like an image, and networks here read named numbers; "
                "wrap the environment so that it gives features"
            )
        if hasattr(space, _NAMES):
            yield from (f"{name}.{one}" if name else one for one in getattr(space, _NAMES))
        elif not shape or math.prod(shape) == 1:
            yield at
        else:
            cells = product(*(range(size) for size in shape))
            yield from (f"{at}.{'.'.join(map(str, cell))}" for cell in cells)
    else:
        raise ConfigError(
            f"{at}: {space} does not become numbers; expected Box, Discrete, MultiDiscrete, "
            "MultiBinary, or Dict and Tuple of these"
        )


def _is_image(space: Any) -> bool:
    """Three axes or more of anything but the zeros and ones of a board; or a table of bytes."""
    axes = len(space.shape)
    if isinstance(space, spaces.MultiBinary):
        return False
    board = np.issubdtype(space.dtype, np.integer) or space.dtype == np.bool_
    board = board and bool((space.low >= 0).all() and (space.high <= 1).all())
    return not board and (axes >= _IMAGE_AXES or (axes > 1 and space.dtype == np.uint8))


def _action_space(space: Any) -> ActionSpace:
    try:
        if isinstance(space, spaces.Discrete):
            first = int(space.start)
            return Discrete(tuple(str(first + option) for option in range(int(space.n))))
        if isinstance(space, spaces.MultiDiscrete):
            return MultiDiscrete(tuple(int(size) for size in np.ravel(space.nvec)))
        if isinstance(space, spaces.MultiBinary):
            keys = tuple(str(index) for index in range(math.prod(space.shape)))
            return MultiBinary(getattr(space, _NAMES, keys))
        if isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating):
            low, high = np.ravel(space.low), np.ravel(space.high)
            return Continuous(
                tuple(str(index) for index in range(low.size)), _bounds(low), _bounds(high)
            )
    except InputError as error:
        raise ConfigError(f"actions: {space} does not fit: {error}") from error
    raise ConfigError(
        f"actions: {space} does not fit; expected Discrete, MultiDiscrete, MultiBinary or a Box of "
        "real numbers (gymnasium.wrappers can flatten others)"
    )


def _bounds(ends: NDArray) -> tuple[float | None, ...]:
    return tuple(float(end) if math.isfinite(end) else None for end in ends)
