"""What a game is: rules as pure array functions over `ops`, many matches side by side.

    game = catalog.make("swarm", difficulty="hard")
    state = game.start(NUMPY, seeds)                     # seeds: uint32 [B], one match each
    while not game.over(NUMPY, state).all():
        obs = game.observe(NUMPY, state)                 # float32 [players, features, B]
        legal = game.legal(NUMPY, state)                 # bool [players, options, B]
        after = game.step(NUMPY, state, actions)         # actions: int32 [players, parts, B]
        rewards = game.reward(NUMPY, state, after)       # float32 [players, B]
        state = after
    score = game.score(NUMPY, state)                     # float32 [players, B]: +1, 0 or -1

The batch is always the *last* axis: arrays of one field lie contiguous, which is what makes NumPy
as fast as it can be. A state is a named tuple of arrays, all float32, int32, uint32 or bool; no
function writes into it. The same seed gives the same match, bit for bit, under one engine. Stepping
a match that is over is allowed and means nothing: callers ignore what it gives.
A change of rules raises `version`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from understudy.core.ops import Array, Ops
from understudy.core.spaces import ActionSpace

State = Any


class Game(Protocol):
    """The rules of one game with its options chosen (difficulty, for one)."""

    @property
    def name(self) -> str:
        """The name in the catalog."""

    @property
    def version(self) -> int:
        """Raised by every change of the rules."""

    @property
    def players(self) -> int:
        """How many sides choose an action each frame."""

    @property
    def features(self) -> tuple[str, ...]:
        """The name of each number that a side observes."""

    @property
    def actions(self) -> ActionSpace:
        """What a side chooses from."""

    @property
    def max_frames(self) -> int:
        """No match is longer than this."""

    def start(self, ops: Ops, seeds: Array) -> State:
        """New matches from seeds uint32 [B]."""

    def step(self, ops: Ops, state: State, actions: Array) -> State:
        """One frame further; actions int32 [players, parts, B]."""

    def observe(self, ops: Ops, state: State) -> Array:
        """What each side sees, float32 [players, features, B]."""

    def legal(self, ops: Ops, state: State) -> Array:
        """What each side may do, bool [players, options, B]; at least one option in each part."""

    def reward(self, ops: Ops, before: State, after: State) -> Array:
        """What the last frame was worth to each side, float32 [players, B], the result included."""

    def over(self, ops: Ops, state: State) -> Array:
        """Which matches have ended, bool [B]."""

    def score(self, ops: Ops, state: State) -> Array:
        """+1 win, 0 draw or unfinished, -1 loss, float32 [players, B]."""

    def tags(self, state: State, index: int) -> Mapping[str, str]:
        """What to remember a match by (opponent, race, difficulty); index is into the batch."""


class Bot(Protocol):
    """A scripted player over `ops`: the zero line of a game, and a fallback to learn beside."""

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        """Actions int32 [parts, B] from obs float32 [features, B]; noise from (seeds, frame)."""
