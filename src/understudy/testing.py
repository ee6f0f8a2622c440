"""Conformance tests that people run on their own games: `check_game(my_game)`.

Every failure is an `AssertionError` that names the game, the function and what is wrong with it.
What is allowed and often a mistake is said on stderr.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from understudy.core.dependencies import not_installed
from understudy.core.ops import NUMPY, Array
from understudy.games.base import Game, State
from understudy.games.conformance import (
    check_alone,
    check_declaration,
    check_seeds,
    check_state,
    check_views,
    play,
    require,
)
from understudy.telemetry.text import complain

_STRAY = 0.02
"""Matches that may differ between engines in one step: a threshold can fall on the last digit."""


def check_game(game: Game, *, matches: int = 48, seed: int = 0, engines: bool = True) -> None:
    """Play matches of chance and check everything that the contract in `games.base` promises.

    `engines` also compares NumPy with JAX from equal states, where JAX is installed.
    """
    check_declaration(game)
    seeds = np.arange(matches, dtype=np.uint32) + np.uint32(seed * 100_003)
    check_seeds(game, seeds, note=complain)
    compiled = _jax_functions(game) if engines else None
    ended = np.zeros(matches, np.bool_)
    for frame, state, actions, after in play(game, seeds):
        check_state(game, after, matches)
        check_views(game, state, after, matches)
        if frame % 7 == 0:
            check_alone(game, state, actions, after, which=frame % matches)
            if compiled is not None:
                _check_engines(game, compiled, state, actions, after)
        ended |= game.over(NUMPY, after)
        if ended.all():
            break
    require(
        game,
        bool(ended.all()),
        f"over: {int((~ended).sum())} of {matches} matches still run after max_frames "
        f"({game.max_frames})",
    )


def _jax_functions(game: Game) -> Any:
    """The game's functions compiled by JAX, or None where it is not installed."""
    if not_installed("jax"):
        return None
    jax = importlib.import_module("jax")
    from understudy.learner.maths.jax_ops import JAX

    def everything(state: State, actions: Array) -> Any:
        after = game.step(JAX, state, actions)
        reward = game.reward(JAX, state, after)
        seen = (game.observe(JAX, after), game.legal(JAX, after), game.over(JAX, after))
        return tuple(after), (*seen, game.score(JAX, after), reward)

    return jax.jit(everything)


def _check_engines(game: Game, compiled: Any, state: State, actions: Array, after: State) -> None:
    """One step under JAX from the same state gives the same, up to the last digits."""
    views = ("observe", "legal", "over", "score", "reward")
    theirs_after, theirs_seen = compiled(state, actions)
    ours_seen = [getattr(game, view)(NUMPY, after) for view in views[:4]]
    ours_seen.append(game.reward(NUMPY, state, after))
    names = [f"state.{field}" for field in after._fields] + list(views)
    ours, theirs = [*after, *ours_seen], [*theirs_after, *theirs_seen]
    for name, mine, other in zip(names, ours, map(np.asarray, theirs), strict=True):
        here, there = f"{mine.dtype} {mine.shape}", f"{other.dtype} {other.shape}"
        require(game, here == there, f"{name}: {here} under NumPy, {there} under JAX")
        close = np.isclose(mine, other, rtol=2e-4, atol=2e-4).reshape(-1, mine.shape[-1])
        stray = float((~close.all(axis=0)).mean())
        require(game, stray <= _STRAY, f"{name}: NumPy and JAX differ in {stray:.0%} of matches")
