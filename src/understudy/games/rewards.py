"""What training rewards: sets of weighted terms, chosen by name and changed by settings.

    from understudy.games.rewards import term

    @term("brawl")
    def airborne(ops, moment):
        return (~moment.after.grounded).astype(ops.xp.float32)

A config then names it: `rewards.weights.airborne = -0.001`. Every wrong name or weight is a
`ConfigError` that names the key; what is left is exact (see `moments`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.core.errors import ConfigError, nearest
from understudy.games import catalog
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
from understudy.games.terms import load_terms, term, terms_of

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
