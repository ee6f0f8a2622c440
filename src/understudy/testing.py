"""Conformance tests that people run on their own games: `check_game(my_game)`.

Every failure is an `AssertionError` that names the game, the function and what is wrong with it.
What is allowed and often a mistake is said on stderr.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from understudy.core import chance
from understudy.core.dependencies import not_installed
from understudy.core.ops import NUMPY, Array
from understudy.core.spaces import Discrete, MultiBinary, MultiDiscrete
from understudy.games.base import Game, State
from understudy.telemetry.text import complain

_DTYPES = (np.float32, np.int32, np.uint32, np.bool_)
_STRAY = 0.02
"""Matches that may differ between engines in one step: a threshold can fall on the last digit."""


def check_game(game: Game, *, matches: int = 48, seed: int = 0, engines: bool = True) -> None:
    """Play matches of chance and check everything that the contract in `games.base` promises.

    `engines` also compares NumPy with JAX from equal states, where JAX is installed.
    """
    _check_declaration(game)
    seeds = np.arange(matches, dtype=np.uint32) + np.uint32(seed * 100_003)
    _check_seeds(game, seeds)
    compiled = _jax_functions(game) if engines else None
    ended = np.zeros(matches, np.bool_)
    for frame, state, actions, after in _play(game, seeds):
        _check_state(game, after, matches)
        _check_views(game, state, after, matches)
        if frame % 7 == 0:
            _check_alone(game, state, actions, after, which=frame % matches)
            if compiled is not None:
                _check_engines(game, compiled, state, actions, after)
        ended |= game.over(NUMPY, after)
        if ended.all():
            break
    _require(
        game,
        bool(ended.all()),
        f"over: {int((~ended).sum())} of {matches} matches still run after max_frames "
        f"({game.max_frames})",
    )


def _require(game: Game, holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(f"{getattr(game, 'name', game)}: {message}")


def _check_declaration(game: Game) -> None:
    _require(game, isinstance(game.name, str) and bool(game.name), "name: expected some text")
    for field in ("version", "players", "max_frames"):
        value = getattr(game, field)
        fits = isinstance(value, int) and value >= 1
        _require(game, fits, f"{field}: expected an int of 1 or more, got {value!r}")
    names = game.features
    fits = isinstance(names, tuple) and bool(names) and all(isinstance(n, str) for n in names)
    _require(game, fits, f"features: expected a tuple of names, got {names!r}")
    _require(game, len(set(names)) == len(names), "features: a name appears twice")
    fits = isinstance(game.actions, Discrete | MultiDiscrete | MultiBinary)
    _require(game, fits, f"actions: expected a space of core.spaces, got {game.actions!r}")


def _check_seeds(game: Game, seeds: Array) -> None:
    one, two = game.start(NUMPY, seeds), game.start(NUMPY, seeds)
    _check_state(game, one, len(seeds))
    _require(game, _same(one, two), "start: the same seeds gave different states")
    early = game.over(NUMPY, one)
    _require(game, not early.any(), "over: a match is over before its first frame")
    columns = np.concatenate([np.asarray(x, np.float64).reshape(-1, len(seeds)) for x in one])
    if (columns == columns[:, :1]).all():  # as in chess; but a forgotten seed looks the same
        complain(
            f"{game.name}: start: all seeds gave the same state. That is right for a game with one "
            "fixed start; any other must draw its start from the seeds."
        )
    tags = game.tags(one, 0)
    fits = isinstance(tags, Mapping) and all(
        isinstance(key, str) and isinstance(value, str) for key, value in tags.items()
    )
    _require(game, fits, f"tags: expected text for text, got {tags!r}")


def _play(game: Game, seeds: Array) -> Iterator[tuple[int, State, Array, State]]:
    """Matches of legal chance: (frame, state, actions, after); checks that step is pure."""
    state = game.start(NUMPY, seeds)
    for frame in range(game.max_frames):
        legal = game.legal(NUMPY, state)
        shape = (game.players, game.actions.options, len(seeds))
        _check_array(game, "legal", legal, dtype=np.bool_, shape=shape)
        actions = _chance_actions(game, legal, seeds, frame)
        kept = [np.copy(leaf) for leaf in state]
        after = game.step(NUMPY, state, actions)
        _require(game, _same(kept, state), "step: wrote into the state that it was given")
        again = game.step(NUMPY, state, actions)
        _require(game, _same(after, again), "step: the same state and actions gave two results")
        yield frame, state, actions, after
        state = after


def _chance_actions(game: Game, legal: Array, seeds: Array, frame: int) -> Array:
    """One legal option a part, int32 [players, parts, B]."""
    options = game.actions.options
    indices = np.arange(game.players * options, dtype=np.uint32)
    draw = chance.uniform(NUMPY, chance.fold(seeds, frame + 1), indices)
    taste = np.where(legal, draw.reshape(game.players, options, len(seeds)), np.float32(-1))
    choices, first = [], 0
    for size in game.actions.parts:
        part = taste[:, first : first + size]
        fits = bool((part.max(axis=1) >= 0).all())
        _require(game, fits, f"legal: no option is legal in the part from option {first}")
        choices.append(part.argmax(axis=1).astype(np.int32))
        first += size
    return np.stack(choices, axis=1)


def _check_state(game: Game, state: State, matches: int) -> None:
    fits = isinstance(state, tuple) and hasattr(state, "_fields")
    _require(game, fits, f"state: expected a named tuple, got {type(state).__name__}")
    for field, leaf in zip(state._fields, state, strict=True):
        fits = isinstance(leaf, np.ndarray)
        _require(game, fits, f"state.{field}: expected an array, got {type(leaf).__name__}")
        allowed = ", ".join(np.dtype(kind).name for kind in _DTYPES)
        fits = leaf.dtype in _DTYPES
        _require(game, fits, f"state.{field}: expected {allowed}, got {leaf.dtype}")
        fits = leaf.ndim >= 1 and leaf.shape[-1] == matches
        _require(game, fits, f"state.{field}: the last axis must be the batch, got {leaf.shape}")
        fits = leaf.dtype != np.float32 or bool(np.isfinite(leaf).all())
        _require(game, fits, f"state.{field}: holds a number that is not finite")


def _check_array(
    game: Game, what: str, array: Array, *, dtype: type, shape: tuple[int, ...]
) -> None:
    fits = isinstance(array, np.ndarray) and array.shape == shape
    _require(game, fits, f"{what}: expected shape {shape}, got {getattr(array, 'shape', array)}")
    name = np.dtype(dtype).name
    _require(game, array.dtype == dtype, f"{what}: expected {name}, got {array.dtype}")
    fits = dtype != np.float32 or bool(np.isfinite(array).all())
    _require(game, fits, f"{what}: holds a number that is not finite")


def _check_views(game: Game, state: State, after: State, matches: int) -> None:
    sides = (game.players, matches)
    shape = (game.players, len(game.features), matches)
    _check_array(game, "observe", game.observe(NUMPY, after), dtype=np.float32, shape=shape)
    reward = game.reward(NUMPY, state, after)
    _check_array(game, "reward", reward, dtype=np.float32, shape=sides)
    over, score = game.over(NUMPY, after), game.score(NUMPY, after)
    _check_array(game, "over", over, dtype=np.bool_, shape=(matches,))
    _check_array(game, "score", score, dtype=np.float32, shape=sides)
    fits = bool(np.isin(score, (-1.0, 0.0, 1.0)).all())
    _require(game, fits, "score: expected -1, 0 or 1")
    fits = not score[:, ~over].any()
    _require(game, fits, "score: a match that is not over has a winner")


def _check_alone(game: Game, state: State, actions: Array, after: State, *, which: int) -> None:
    """A match must not feel its neighbours in the batch."""
    cut = slice(which, which + 1)
    alone = game.step(NUMPY, type(state)(*(leaf[..., cut] for leaf in state)), actions[..., cut])
    for field, lone, crowd in zip(after._fields, alone, after, strict=True):
        fits = np.allclose(lone, crowd[..., cut], rtol=1e-5, atol=1e-5)
        _require(game, fits, f"step: state.{field} depends on the other matches of the batch")


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
        _require(game, here == there, f"{name}: {here} under NumPy, {there} under JAX")
        close = np.isclose(mine, other, rtol=2e-4, atol=2e-4).reshape(-1, mine.shape[-1])
        stray = float((~close.all(axis=0)).mean())
        _require(game, stray <= _STRAY, f"{name}: NumPy and JAX differ in {stray:.0%} of matches")


def _same(one: Any, two: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
