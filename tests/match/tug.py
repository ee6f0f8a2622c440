"""A toy of two players, small enough to check a duel by hand: whoever pulls the rope to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from understudy.core import chance
from understudy.core.ops import Array, Ops
from understudy.core.spaces import Discrete

_DRAWS = np.arange(2, dtype=np.uint32)
_END = np.float32(3)


class Rope(NamedTuple):
    frame: Array
    key: Array
    place: Array
    """[B]: above 0 it is on the first player's side."""


class Tug:
    """Three ways to pull; strong ones slip by chance. After the end it goes on, meaninglessly."""

    name = "tug"
    version = 1
    players = 2
    features = ("place", "time")
    actions = Discrete(("rest", "pull", "heave"))
    max_frames = 150

    def start(self, ops: Ops, seeds: Array) -> Any:
        key = chance.fold(ops.xp.asarray(seeds, ops.xp.uint32), 5)
        place = chance.uniform(ops, key, _DRAWS)[0] * np.float32(4) - np.float32(2)
        return Rope(ops.xp.zeros(seeds.shape, ops.xp.int32), key, place)

    def step(self, ops: Ops, state: Any, actions: Array) -> Any:
        xp = ops.xp
        key = chance.fold(state.key, state.frame.astype(xp.uint32))
        slipped = chance.uniform(ops, key, _DRAWS) < np.float32(0.4)
        force = actions[:, 0].astype(xp.float32)
        force = xp.where(slipped & (actions[:, 0] == 2), np.float32(-1), force)
        place = state.place + (force[0] - force[1]) * np.float32(0.5)
        return Rope(state.frame + np.int32(1), state.key, place)

    def observe(self, ops: Ops, state: Any) -> Array:
        time = state.frame.astype(ops.xp.float32) / np.float32(150)
        own = state.place / _END
        return ops.xp.stack([ops.xp.stack([own, time]), ops.xp.stack([-own, time])])

    def legal(self, ops: Ops, state: Any) -> Array:
        tired = state.frame % np.int32(5) == np.int32(4)
        yes = tired | True
        one = ops.xp.stack([yes, yes, ~tired])
        return ops.xp.stack([one, one])

    def reward(self, ops: Ops, before: Any, after: Any) -> Array:
        gained = after.place - before.place
        return ops.xp.stack([gained, -gained])

    def over(self, ops: Ops, state: Any) -> Array:
        return (abs(state.place) >= _END) | (state.frame >= self.max_frames)

    def score(self, ops: Ops, state: Any) -> Array:
        pulled = (abs(state.place) >= _END) * ops.xp.sign(state.place)
        return ops.xp.stack([pulled, -pulled]).astype(ops.xp.float32)

    def tags(self, state: Any, index: int) -> Mapping[str, str]:
        return {}


@dataclass(frozen=True)
class Steady:
    """Always the same."""

    action: int

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        return ops.xp.full((1, *obs.shape[1:]), self.action, ops.xp.int32)


@dataclass(frozen=True)
class Moody:
    """Any of the first two."""

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        key = chance.fold(seeds, ops.xp.asarray(frame).astype(ops.xp.uint32))
        return (chance.uniform(ops, key, _DRAWS)[:1] * np.float32(2)).astype(ops.xp.int32)
