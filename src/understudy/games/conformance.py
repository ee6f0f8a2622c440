"""What a game promises, checked under NumPy: see `Game` in `games.base`.

`check_contract` is the quick part, which every command runs on a custom game that it loads;
`understudy.testing.check_game` plays whole matches and compares both engines. Every failure is an
`AssertionError` that names the game, the member and what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from understudy.core import chance
from understudy.core.ops import NUMPY, Array
from understudy.core.spaces import Discrete, MultiBinary, MultiDiscrete
from understudy.games.base import Game, State

_DTYPES = (np.float32, np.int32, np.uint32, np.bool_)
_FIELDS = ("name", "version", "players", "features", "actions", "max_frames")
_FUNCTIONS = ("start", "step", "observe", "legal", "reward", "over", "score", "tags")
_QUICK_MATCHES, _QUICK_FRAMES = 6, 12


def check_contract(game: Game) -> None:
    """Declaration, start and the first frames of a few matches: milliseconds for most games."""
    check_declaration(game)
    seeds = np.arange(_QUICK_MATCHES, dtype=np.uint32)
    check_seeds(game, seeds, note=lambda text: None)
    for _, state, _, after in islice(play(game, seeds), _QUICK_FRAMES):
        check_state(game, after, _QUICK_MATCHES)
        check_views(game, state, after, _QUICK_MATCHES)
        if game.over(NUMPY, after).all():
            break


def require(game: Game, holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(f"{getattr(game, 'name', game)}: {message}")


def check_declaration(game: Game) -> None:
    """Every member is there, and what is declared is of the right kind."""
    missing = [name for name in (*_FIELDS, *_FUNCTIONS) if not hasattr(game, name)]
    require(game, not missing, f"has no {', '.join(missing)}; see understudy.games.base.Game")
    for name in _FUNCTIONS:
        require(game, callable(getattr(game, name)), f"{name}: expected a function")
    require(game, isinstance(game.name, str) and bool(game.name), "name: expected some text")
    for field in ("version", "players", "max_frames"):
        value = getattr(game, field)
        fits = isinstance(value, int) and value >= 1
        require(game, fits, f"{field}: expected an int of 1 or more, got {value!r}")
    names = game.features
    fits = isinstance(names, tuple) and bool(names) and all(isinstance(n, str) for n in names)
    require(game, fits, f"features: expected a tuple of names, got {names!r}")
    require(game, len(set(names)) == len(names), "features: a name appears twice")
    fits = isinstance(game.actions, Discrete | MultiDiscrete | MultiBinary)
    require(game, fits, f"actions: expected a space of core.spaces, got {game.actions!r}")
    try:
        hash(game)
    except TypeError:
        words = "a game must be hashable: make its class a frozen dataclass"
        raise AssertionError(f"{game.name}: {words}") from None


def check_seeds(game: Game, seeds: Array, *, note: Callable[[str], None]) -> None:
    """Starts are right and repeat; `note` is told of what is allowed and often a mistake."""
    one, two = game.start(NUMPY, seeds), game.start(NUMPY, seeds)
    check_state(game, one, len(seeds))
    require(game, _same(one, two), "start: the same seeds gave different states")
    early = game.over(NUMPY, one)
    require(game, not early.any(), "over: a match is over before its first frame")
    columns = np.concatenate([np.asarray(x, np.float64).reshape(-1, len(seeds)) for x in one])
    if (columns == columns[:, :1]).all():  # as in chess; but a forgotten seed looks the same
        note(
            f"{game.name}: start: all seeds gave the same state. That is right for a game with one "
            "fixed start; any other must draw its start from the seeds."
        )
    tags = game.tags(one, 0)
    fits = isinstance(tags, Mapping) and all(
        isinstance(key, str) and isinstance(value, str) for key, value in tags.items()
    )
    require(game, fits, f"tags: expected text for text, got {tags!r}")


def play(game: Game, seeds: Array) -> Iterator[tuple[int, State, Array, State]]:
    """Matches of legal chance: (frame, state, actions, after); checks that step is pure."""
    state = game.start(NUMPY, seeds)
    for frame in range(game.max_frames):
        legal = game.legal(NUMPY, state)
        shape = (game.players, game.actions.options, len(seeds))
        _check_array(game, "legal", legal, dtype=np.bool_, shape=shape)
        actions = _chance_actions(game, legal, seeds, frame)
        kept = [np.copy(leaf) for leaf in state]
        after = game.step(NUMPY, state, actions)
        require(game, _same(kept, state), "step: wrote into the state that it was given")
        again = game.step(NUMPY, state, actions)
        require(game, _same(after, again), "step: the same state and actions gave two results")
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
        require(game, fits, f"legal: no option is legal in the part from option {first}")
        choices.append(part.argmax(axis=1).astype(np.int32))
        first += size
    return np.stack(choices, axis=1)


def _wide(array: Array) -> str:
    """How arrays of 64 bits come about under NumPy, where this is one."""
    if array.dtype.itemsize != 8:
        return ""
    narrow = "float32" if array.dtype.kind == "f" else "int32"
    return f" (bare numbers in xp.where(x, 1, 0) and sums make 64 bits: add .astype(xp.{narrow}))"


def check_state(game: Game, state: State, matches: int) -> None:
    fits = isinstance(state, tuple) and hasattr(state, "_fields")
    require(game, fits, f"state: expected a named tuple, got {type(state).__name__}")
    for field, leaf in zip(state._fields, state, strict=True):
        fits = isinstance(leaf, np.ndarray)
        require(game, fits, f"state.{field}: expected an array, got {type(leaf).__name__}")
        allowed = ", ".join(np.dtype(kind).name for kind in _DTYPES)
        fits = leaf.dtype in _DTYPES
        require(game, fits, f"state.{field}: expected {allowed}, got {leaf.dtype}{_wide(leaf)}")
        fits = leaf.ndim >= 1 and leaf.shape[-1] == matches
        require(game, fits, f"state.{field}: the last axis must be the batch, got {leaf.shape}")
        fits = leaf.dtype != np.float32 or bool(np.isfinite(leaf).all())
        require(game, fits, f"state.{field}: holds a number that is not finite")


def _check_array(
    game: Game, what: str, array: Array, *, dtype: type, shape: tuple[int, ...]
) -> None:
    fits = isinstance(array, np.ndarray) and array.shape == shape
    require(game, fits, f"{what}: expected shape {shape}, got {getattr(array, 'shape', array)}")
    name = np.dtype(dtype).name
    require(game, array.dtype == dtype, f"{what}: expected {name}, got {array.dtype}")
    fits = dtype != np.float32 or bool(np.isfinite(array).all())
    require(game, fits, f"{what}: holds a number that is not finite")


def check_views(game: Game, state: State, after: State, matches: int) -> None:
    sides = (game.players, matches)
    shape = (game.players, len(game.features), matches)
    _check_array(game, "observe", game.observe(NUMPY, after), dtype=np.float32, shape=shape)
    reward = game.reward(NUMPY, state, after)
    _check_array(game, "reward", reward, dtype=np.float32, shape=sides)
    over, score = game.over(NUMPY, after), game.score(NUMPY, after)
    _check_array(game, "over", over, dtype=np.bool_, shape=(matches,))
    _check_array(game, "score", score, dtype=np.float32, shape=sides)
    fits = bool(np.isin(score, (-1.0, 0.0, 1.0)).all())
    require(game, fits, "score: expected -1, 0 or 1")
    fits = not score[:, ~over].any()
    require(game, fits, "score: a match that is not over has a winner")


def check_alone(game: Game, state: State, actions: Array, after: State, *, which: int) -> None:
    """A match must not feel its neighbours in the batch."""
    cut = slice(which, which + 1)
    alone = game.step(NUMPY, type(state)(*(leaf[..., cut] for leaf in state)), actions[..., cut])
    for field, lone, crowd in zip(after._fields, alone, after, strict=True):
        fits = np.allclose(lone, crowd[..., cut], rtol=1e-5, atol=1e-5)
        require(game, fits, f"step: state.{field} depends on the other matches of the batch")


def _same(one: Any, two: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
