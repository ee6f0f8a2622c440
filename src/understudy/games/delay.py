"""Any game with fair reaction times: what a side sees is a fixed number of frames old.

The rules are untouched; what was seen lately travels in the state as one more field, so play and
training, NumPy and JAX, one match and thousands are delayed alike. What is legal is not delayed.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from understudy.core.errors import ConfigError
from understudy.core.ops import Array, Ops
from understudy.core.spaces import ActionSpace
from understudy.games.base import Game, State, opponent_features

PAST = "past"


@functools.cache
def _with_past(inner: Any) -> Any:
    """The named tuple of a state with one field more: `past`, [frames, players, features, B]."""
    name = f"Delayed{inner.__name__}"
    bases = (namedtuple(name, (*inner._fields, PAST)),)
    return type(name, bases, {"inner": inner, "__slots__": ()})


def undelayed(state: State) -> State:
    """The state of the game itself; a state that is not delayed is returned as it is."""
    return state.inner(*state[:-1]) if hasattr(state, PAST) else state


@dataclass(frozen=True)
class Delayed:
    """A game seen `frames` frames late; until then, its first observation is seen."""

    game: Game
    frames: int

    def __post_init__(self) -> None:
        if self.frames < 1:
            raise ConfigError(f"delay: expected 1 frame or more, got {self.frames}")

    @property
    def name(self) -> str:
        return self.game.name

    @property
    def version(self) -> int:
        return self.game.version

    @property
    def players(self) -> int:
        return self.game.players

    @property
    def features(self) -> tuple[str, ...]:
        return self.game.features

    @property
    def opponent_features(self) -> int:
        return opponent_features(self.game)

    @property
    def actions(self) -> ActionSpace:
        return self.game.actions

    @property
    def max_frames(self) -> int:
        return self.game.max_frames

    def start(self, ops: Ops, seeds: Array) -> State:
        """New matches from seeds uint32 [B]."""
        inner = self.game.start(ops, seeds)
        seen = self.game.observe(ops, inner)
        past = ops.xp.stack([seen] * self.frames)
        kind: Any = type(inner)
        return _with_past(kind)(*inner, past)

    def step(self, ops: Ops, state: State, actions: Array) -> State:
        """One frame further; what is seen now will be shown `frames` frames from now."""
        inner = undelayed(state)
        seen = self.game.observe(ops, inner)
        past = ops.xp.concatenate([state.past[1:], seen[None]])
        after = self.game.step(ops, inner, actions)
        return type(state)(*after, past)

    def observe(self, ops: Ops, state: State) -> Array:
        """What each side saw `frames` frames ago, float32 [players, features, B]."""
        return state.past[0]

    def legal(self, ops: Ops, state: State) -> Array:
        """What each side may do now."""
        return self.game.legal(ops, undelayed(state))

    def reward(self, ops: Ops, before: State, after: State) -> Array:
        """What the last frame was worth to each side."""
        return self.game.reward(ops, undelayed(before), undelayed(after))

    def over(self, ops: Ops, state: State) -> Array:
        """Which matches have ended."""
        return self.game.over(ops, undelayed(state))

    def score(self, ops: Ops, state: State) -> Array:
        """+1 win, 0 draw or unfinished, -1 loss."""
        return self.game.score(ops, undelayed(state))

    def tags(self, state: State, index: int) -> Mapping[str, str]:
        return self.game.tags(undelayed(state), index)
