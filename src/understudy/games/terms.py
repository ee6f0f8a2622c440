"""Every reward term of a game by name: its own, its potentials as shaping, and those users add.

A name means one term. Terms are code: they come from the package or from a module that a person
names, never from a config or a run folder.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from understudy.core.errors import ConfigError
from understudy.core.ops import NUMPY, Array
from understudy.games import catalog
from understudy.games.base import Game, State
from understudy.games.moments import Moment, Shaped, Term

SHAPED = "shaped_"
"""Each potential of a game is a term of this name before its own."""
_ADDED: dict[str, dict[str, Term]] = {}
"""What users added, by game."""
_LOADED: dict[str, tuple[str, ...]] = {}
"""The names that each module of users' terms added."""
_MATCHES = 3
_WRONG = (AttributeError, ImportError, LookupError, NameError, SyntaxError, TypeError, ValueError)
"""What a mistake in a user's module looks like from here."""


def terms_of(game: str, *, gamma: float) -> dict[str, Term]:
    """Every term of a game by name.

    Shaping keeps the best play what it is only under the discount that is trained with: `gamma`.
    """
    potentials = catalog.potentials(game).items()
    return {
        **catalog.terms(game),
        **{SHAPED + name: Shaped(potential, gamma) for name, potential in potentials},
        **_ADDED.get(game, {}),
    }


def term(game: str, *, name: str | None = None) -> Callable[[Term], Term]:
    """Add a function to the terms of a game, under its own name or another."""

    def add(function: Term) -> Term:
        called = name or str(getattr(function, "__name__", ""))
        if not called.isidentifier():
            raise ConfigError(
                f"@term({game!r}): expected a name of letters, digits and _, got {called!r}; "
                f"give one: @term({game!r}, name=...)"
            )
        if called in terms_of(game, gamma=1.0):
            raise ConfigError(f"@term({game!r}): {game} has a term {called!r} already")
        _ADDED.setdefault(game, {})[called] = function
        return function

    return add


def load_terms(source: str | Path, *, flag: str = "terms") -> tuple[str, ...]:
    """Import a user's module, `my_terms.py` or `package.my_terms`, and name the terms it added.

    Each is tried on two frames of a real match under NumPy. What is wrong is a `ConfigError`
    that begins with `flag`, and then none of them is kept. Loading the same module again changes
    nothing.
    """
    path = Path(source)
    is_file = path.suffix == ".py" or path.is_file()
    key = str(path.resolve()) if is_file else str(source)
    if key in _LOADED:
        return _LOADED[key]
    if is_file and not path.is_file():
        raise ConfigError(f"{flag}: there is no file {source}")
    known = {game: dict(terms) for game, terms in _ADDED.items()}
    try:
        _import(path if is_file else str(source), where=f"{flag} {source}")
        _LOADED[key] = _checked_since(known, f"{flag} {source}")
    finally:
        if key not in _LOADED:
            _ADDED.clear()
            _ADDED.update(known)
    return _LOADED[key]


def _import(source: Path | str, *, where: str) -> None:
    """Run a user's module."""
    try:
        if isinstance(source, str):
            importlib.import_module(source)
            return
        spec = importlib.util.spec_from_file_location(source.stem, source)
        if spec is None or spec.loader is None:
            raise ConfigError("not a Python file: its name does not end in .py")
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    except _WRONG as error:
        raise ConfigError(
            f"{where}: cannot be imported ({type(error).__name__}: {error})"
        ) from error


def _checked_since(known: dict[str, dict[str, Term]], where: str) -> tuple[str, ...]:
    """The names of the terms that were added since, each of them tried."""
    added = [
        (game, name)
        for game, terms in _ADDED.items()
        for name in terms
        if name not in known.get(game, {})
    ]
    if not added:
        raise ConfigError(f'{where}: adds no term; write @term("brawl") above a function')
    for game, name in added:
        _try(catalog.make(game), _ADDED[game][name], f"{where}: {name}")
    return tuple(name for _, name in added)


def _try(game: Game, function: Term, where: str) -> None:
    """Two frames of a few matches: what a term gives must be finite float32 [players, B]."""
    state = game.start(NUMPY, np.arange(_MATCHES, dtype=np.uint32))
    for _ in range(2):
        actions = _first_legal(game, state)
        after = game.step(NUMPY, state, actions)
        try:
            got: Any = function(NUMPY, Moment(game, state, after, actions))
        except _WRONG as error:
            raise ConfigError(f"{where}: failed with {type(error).__name__}: {error}") from error
        wanted = (game.players, _MATCHES)
        if getattr(got, "shape", None) != wanted:
            shape = getattr(got, "shape", type(got).__name__)
            raise ConfigError(
                f"{where}: expected [players, matches] = {wanted} for {_MATCHES} matches, "
                f"got {shape}"
            )
        if got.dtype != np.float32:
            raise ConfigError(
                f"{where}: expected float32, got {got.dtype}; end with .astype(ops.xp.float32)"
            )
        if not np.isfinite(got).all():
            raise ConfigError(f"{where}: expected finite numbers, got {got.tolist()}")
        state = after


def _first_legal(game: Game, state: State) -> Array:
    """int32 [players, parts, B]"""
    legal = game.legal(NUMPY, state)
    bounds = np.cumsum(game.actions.parts)[:-1]
    parts = [np.argmax(part, axis=1) for part in np.split(legal, bounds, axis=1)]
    return np.stack(parts, axis=1).astype(np.int32)
