"""What training rewards: sets of weighted terms, chosen by name and changed by settings.

    from understudy.games.rewards import term

    @term("brawl")
    def airborne(ops, moment):
        return (~moment.after.grounded).astype(ops.xp.float32)

A config then names it: `rewards.weights.airborne = -0.001`. Every wrong name or weight is a
`ConfigError` that names the key; sums of the rest are exact (see `moments`).

The terms of a game are its own, its potentials as shaping, and those that users add. A name means
one term. Terms are code: they come from the package or from a module that the user names, never
from a config or a run folder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.core.errors import ConfigError, nearest
from understudy.core.ops import NUMPY, Array
from understudy.core.user_code import USER_ERRORS, load_module
from understudy.games import catalog
from understudy.games.base import Game, State
from understudy.games.moments import (
    LIMIT,
    QUANTUM,
    Moment,
    Potential,
    RewardSet,
    Shaped,
    Term,
    blended,
)

SHAPED = "shaped_"
"""Each potential of a game is a term of this name before its own."""
_ADDED: dict[str, dict[str, Term]] = {}
"""What users added, by game."""
_LOADED: dict[str, tuple[str, ...]] = {}
"""The names that each module of users' terms added."""
_MATCHES = 3


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
    known = {game: dict(terms) for game, terms in _ADDED.items()}
    try:
        load_module(source, flag=flag, fresh=True)
        _LOADED[key] = _checked_since(known, f"{flag} {source}")
    finally:
        if key not in _LOADED:
            _ADDED.clear()
            _ADDED.update(known)
    return _LOADED[key]


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
        except USER_ERRORS as error:
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


__all__ = [
    "LEAST", "LIMIT", "QUANTUM", "Moment", "Potential", "RewardSet", "Rewards", "Shaped", "Term",
    "blended", "load_terms", "rewards_of", "term", "terms_of", "weights_of", "within_limits",
]  # fmt: skip


LEAST = QUANTUM / 2
"""The smallest weight: 1 of anything that weighs less would be rounded to nothing."""


class Rewards(Protocol):
    """Settings: the section `[rewards]`, or what a stage of a curriculum says."""

    @property
    def set(self) -> str:
        """The name of a set."""

    @property
    def weights(self) -> Mapping[str, float]:
        """Weights that replace the set's, or add terms to it; 0 takes a term out."""


def rewards_of(
    game: str, chosen: Rewards | str, *others: Rewards | str, gamma: float
) -> tuple[RewardSet, NDArray[np.float32]]:
    """One set over the terms of all that are named, and the weights of each, float32 [named, K].

    A curriculum goes from one row to another by `blended`. Weights in settings belong to the set
    beside them: a set that is given by its name alone is as it ships.
    """
    rows = [weights_of(game, each) for each in (chosen, *others)]
    terms = terms_of(game, gamma=gamma)
    used = {name: terms[name] for name in terms if any(name in row for row in rows)}
    weights = np.array([[row.get(name, 0.0) for name in used] for row in rows], np.float32)
    return RewardSet.of(used), weights


def weights_of(game: str, chosen: Rewards | str, *, key: str = "rewards") -> dict[str, float]:
    """The weight of every term that counts: those of a set, with whatever the settings change.

    `key` is where the settings stand, for messages.
    """
    name, changes = (chosen, {}) if isinstance(chosen, str) else (chosen.set, chosen.weights)
    sets, terms = catalog.reward_sets(game), terms_of(game, gamma=1.0)
    if name not in sets:
        place = key if isinstance(chosen, str) else f"{key}.set"
        raise ConfigError(
            f"{place}: {game} has no set of rewards {name!r}; it has {', '.join(sets)}."
            + nearest(name, sets)
        )
    for changed, weight in changes.items():
        place = f"{key}.weights.{changed}"
        if changed not in terms:
            raise ConfigError(
                f"{place}: {game} has no reward term {changed!r}; it has {', '.join(terms)}."
                f"{nearest(changed, terms)} A term of your own needs its module in every session, "
                "a resume too: --terms my_terms.py"
            )
        _check(weight, place)
    weights = {name: weight for name, weight in {**sets[name], **changes}.items() if weight}
    if not weights:
        raise ConfigError(f"{key}: every weight is 0, so nothing would be rewarded")
    return weights


def within_limits(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """The nearest weights [K] that settings may say; 0 stays."""
    sizes = np.clip(np.abs(weights), np.float32(LEAST), np.float32(LIMIT))
    return np.asarray(np.sign(weights) * sizes, np.float32)


def _check(weight: float, place: str) -> None:
    if not math.isfinite(weight) or abs(weight) > LIMIT:
        raise ConfigError(f"{place}: expected a weight from {-LIMIT:g} to {LIMIT:g}, got {weight}")
    if 0 < abs(weight) < LEAST:
        raise ConfigError(
            f"{place}: {weight} is too small: what a term adds to a frame is rounded to multiples "
            f"of 2**-16 = {QUANTUM:.2g}, and 1 of it would be nothing"
        )
