"""The contract of a game (`Game`) and of a scripted player (`Bot`).

A game is a set of rules as pure array functions over `ops`: the same code plays one live match
under NumPy and thousands of matches compiled by JAX.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from understudy.core.ops import Array, Ops
from understudy.core.spaces import ActionSpace

State = Any


class Game(Protocol):
    """The rules of one game with its options chosen (difficulty, for example).

    All functions are pure and take B matches at once. The batch is always the *last* axis: the
    numbers of one field lie next to each other in memory, which is what makes NumPy fast. A state
    is a named tuple of arrays [..., B] of float32, int32, uint32 or bool. No function writes into
    an array that it was given.

        game = catalog.make("swarm", difficulty="hard")
        state = game.start(NUMPY, seeds)                     # seeds: uint32 [B], one match each
        while not game.over(NUMPY, state).all():
            obs = game.observe(NUMPY, state)                 # float32 [players, features, B]
            legal = game.legal(NUMPY, state)                 # bool [players, options, B]
            after = game.step(NUMPY, state, actions)         # actions: int32 [players, parts, B]
            rewards = game.reward(NUMPY, state, after)       # float32 [players, B]
            state = after
        score = game.score(NUMPY, state)                     # float32 [players, B]: +1, 0 or -1

    A game promises, and `understudy.testing.check_game` checks:

    - The same seed and actions give the same match, bit for bit, under one engine, whatever else
      is in the batch.
    - Random numbers come from `core.chance` and the seed, never from a generator.
    - A match ends after at most `max_frames` steps.
    - Stepping a match that is over is allowed; callers ignore the result.
    - Observations are finite, and every part of the action has a legal option.

    The functions raise nothing on account of values: illegal actions are the caller's error. A
    change of the rules raises `version`. `games.frame.play_frame` plays a frame of a game.

    A game may have more members. `opponent_features`, an int, is how many features, the last ones,
    describe the opponent (`opponent_features(game)`). `draw(state, index)` returns a `Drawing` of
    one match for `understudy watch` (`games.shapes`); beside it, `tell(before, after, index)`
    returns what happened in a frame, as sentences, `frames_per_s` is the pace in which matches are
    shown and `seconds_per_frame` the time of the game that a frame takes.
    """

    @property
    def name(self) -> str:
        """The name in the catalog, in run folders and on screens: one word."""

    @property
    def version(self) -> int:
        """The version of the rules: raised by every change that changes a match."""

    @property
    def players(self) -> int:
        """The number of sides that choose an action each frame."""

    @property
    def features(self) -> tuple[str, ...]:
        """The name of each number that a side observes."""

    @property
    def actions(self) -> ActionSpace:
        """The action space of a side: its parts, and the options of each."""

    @property
    def max_frames(self) -> int:
        """The largest number of steps in a match."""

    def start(self, ops: Ops, seeds: Array) -> State:
        """The first states of B new matches.

        Args:
            ops: The engine, `NUMPY` or `learner.maths.jax_ops.JAX`.
            seeds: uint32 [B].
        """

    def step(self, ops: Ops, state: State, actions: Array) -> State:
        """The states one frame later.

        Args:
            ops: The engine.
            state: Of B matches.
            actions: int32 [players, parts, B]: the option that each side chose in each part.
        """

    def observe(self, ops: Ops, state: State) -> Array:
        """What each side sees, float32 [players, features, B]."""

    def legal(self, ops: Ops, state: State) -> Array:
        """What each side may do, bool [players, options, B]: the parts' options one after another,
        at least one of each part."""

    def reward(self, ops: Ops, before: State, after: State) -> Array:
        """What the frame between two states was worth to each side, float32 [players, B], with the
        result in the last frame of a match."""

    def over(self, ops: Ops, state: State) -> Array:
        """Which matches have ended, bool [B]."""

    def score(self, ops: Ops, state: State) -> Array:
        """+1 win, 0 draw or unfinished, -1 loss, float32 [players, B]."""

    def tags(self, state: State, index: int) -> Mapping[str, str]:
        """What an episode is labelled with (opponent, race, difficulty): match `index` of B."""


def opponent_features(game: Game) -> int:
    """How many features, the last ones of an observation, describe the opponent: what a network
    that recognises opponents looks at. All of them where the game does not say."""
    return int(getattr(game, "opponent_features", len(game.features)))


class Bot(Protocol):
    """A scripted player over `ops`: a baseline, an opponent, or a fallback."""

    def act(self, ops: Ops, obs: Array, seeds: Array, frame: Array) -> Array:
        """Legal actions, int32 [parts, B], from obs float32 [features, B].

        Noise comes from seeds uint32 [B] and frame int32 [B] alone. Every side has seeds of its
        own (`core.chance.side_key`), or two copies of a bot would move as one.
        """
