"""Tag: a toy game of two sides for tests of what is built around games.

One runs, one chases, on a line of cells; whoever is caught has lost, and whoever gets away for
twelve frames has won. The first part moves (left, stay, right), the second is a sprint, which is
legal on even frames only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from understudy.core import chance
from understudy.core.ops import Array, Ops
from understudy.core.spaces import MultiDiscrete

_DRAWS = np.arange(2, dtype=np.uint32)
_CELLS = np.float32(9)


class State(NamedTuple):
    frame: Array
    """int32 [B]"""
    at: Array
    """int32 [2, B]: the chaser's cell, the runner's cell."""


class Tag:
    """A `Game`."""

    name = "tag"
    version = 1
    players = 2
    features = ("own_cell", "other_cell", "chasing", "time")
    actions = MultiDiscrete((3, 2))
    max_frames = 12

    def start(self, ops: Ops, seeds: Array) -> State:
        xp = ops.xp
        draw = chance.uniform(ops, chance.fold(xp.asarray(seeds, xp.uint32), 1), _DRAWS)
        near = (draw[0] * np.float32(3)).astype(xp.int32)
        far = (draw[1] * np.float32(3)).astype(xp.int32) + xp.int32(5)
        return State(xp.zeros_like(near), xp.stack([near, far]))

    def step(self, ops: Ops, state: State, actions: Array) -> State:
        xp = ops.xp
        even = (state.frame % 2 == 0).astype(xp.int32)
        pace = xp.int32(1) + actions[:, 1] * even
        at = xp.clip(state.at + (actions[:, 0] - 1) * pace, 0, 8).astype(xp.int32)
        return State(state.frame + xp.int32(1), at)

    def observe(self, ops: Ops, state: State) -> Array:
        xp = ops.xp
        at = state.at.astype(xp.float32) / _CELLS
        time = state.frame.astype(xp.float32) / np.float32(self.max_frames)
        one, none = xp.ones_like(time), xp.zeros_like(time)
        return xp.stack([xp.stack([at[0], at[1], one, time]), xp.stack([at[1], at[0], none, time])])

    def legal(self, ops: Ops, state: State) -> Array:
        always = state.frame >= 0
        row = ops.xp.stack([always, always, always, always, state.frame % 2 == 0])
        return ops.xp.stack([row, row])

    def reward(self, ops: Ops, before: State, after: State) -> Array:
        return self.score(ops, after)

    def over(self, ops: Ops, state: State) -> Array:
        return self._caught(state) | (state.frame >= self.max_frames)

    def score(self, ops: Ops, state: State) -> Array:
        xp = ops.xp
        caught = self._caught(state)
        away = ~caught & (state.frame >= self.max_frames)
        chaser = caught.astype(xp.float32) - away.astype(xp.float32)
        return xp.stack([chaser, -chaser])

    def tags(self, state: State, index: int) -> Mapping[str, str]:
        return {"distance": str(int(state.at[1, index] - state.at[0, index]))}

    def _caught(self, state: State) -> Array:
        return state.at[0] >= state.at[1]


class Chaser:
    """A `Bot`: always to the right, sprinting when it may."""

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        xp = ops.xp
        right = xp.full(obs.shape[1:], 2, xp.int32)
        return xp.stack([right, (xp.asarray(frame) % 2 == 0).astype(xp.int32)])
