"""The mix of opponents: how often each one is met, by weight, counted in matches started.

A mix is an input of the compiled program, not a part of it: a curriculum changes it while matches
go on, and matches in progress end against the opponent that they began with.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError, nearest
from understudy.core.opponents import SELF


@dataclass(frozen=True)
class Mix:
    """Names with weights; `self`, where it is met at all, is the last."""

    names: tuple[str, ...]
    weights: tuple[float, ...]

    @property
    def scripted(self) -> tuple[str, ...]:
        """The bots among them."""
        return tuple(name for name in self.names if name != SELF)

    @property
    def meets_itself(self) -> bool:
        """Whether snapshots are among the opponents."""
        return SELF in self.names

    @property
    def own_share(self) -> float:
        """The share of matches against snapshots, 0 to 1."""
        return self.weights[-1] / sum(self.weights) if self.meets_itself else 0.0

    def as_dict(self) -> dict[str, float]:
        """Weights by name."""
        return dict(zip(self.names, self.weights, strict=True))

    def among(self, bots: Sequence[str], *, with_self: bool) -> Mix:
        """The same mix over all of these; those that it does not name have weight 0."""
        weights = self.as_dict()
        names = (*bots, SELF) if with_self else tuple(bots)
        return Mix(names, tuple(weights.get(name, 0.0) for name in names))

    def bounds(self, own_share: float) -> NDArray:
        """float32 [N]: opponent i is met where a draw from [0, 1) lies below bound i, and not below
        the one before. `own_share` of the matches are against `self`, the last; the others share
        the rest by weight."""
        weights = np.array(self.weights[: len(self.scripted)])
        others = weights / max(weights.sum(), 1e-9) * (1.0 - own_share)
        shares = [*others, own_share] if self.meets_itself else [*others]
        if not sum(shares) > 0:
            raise ValueError(f"no opponent to meet: {self} with {own_share} of itself")
        bounds: NDArray = (np.cumsum(shares) / sum(shares)).astype(np.float32)
        return bounds


@dataclass(frozen=True)
class Share:
    """How many matches began under a mix, and how many of them against snapshots."""

    started: int = 0
    own: int = 0

    def after(self, started: int, own: int) -> Share:
        """So many more."""
        return Share(self.started + started, self.own + own)

    def owed(self, target: float, *, ahead: int) -> float:
        """The share of snapshots among the next `ahead` matches that brings the share of all up to
        `target`. A snapshot that waits to be replaced is not met; later matches make up for it."""
        missing = target * (self.started + ahead) - self.own
        return min(max(missing / ahead, 0.0), 1.0)


def union(mixes: Sequence[Mix]) -> tuple[tuple[str, ...], bool]:
    """Every bot that one of them meets, in the order of their first naming; and whether any of them
    meets snapshots."""
    names = dict.fromkeys(name for mix in mixes for name in mix.scripted)
    return tuple(names), any(mix.meets_itself for mix in mixes)


def parse(
    text: str,
    bots: Sequence[str],
    *,
    held_out: Collection[str] = (),
    flag: str = "train.opponents",
) -> Mix:
    """`based=1.5,random=1,self=2`; a name alone weighs 1; `all` is every bot alike."""
    weights: dict[str, float] = {}
    for item in text.split(","):
        name, _, number = (part.strip() for part in item.partition("="))
        weight = _weight(number, name, flag) if number else 1.0
        for each in bots if name == "all" else (name,):
            if each in held_out:
                raise ConfigError(
                    f"{flag}: {each} is held out: no agent trains against it, so that "
                    "`eval --opponents heldout` shows what an agent makes of strangers"
                )
            if each != SELF and each not in bots:
                known = (*bots, SELF, "all")
                raise ConfigError(
                    f"{flag}: expected some of {', '.join(known)}; got {each!r}."
                    f"{_not_met_in_training(each) or nearest(each, known)}"
                )
            weights[each] = weight
    own = weights.pop(SELF, 0.0)
    met = {name: weight for name, weight in weights.items() if weight > 0}
    if not met:
        raise ConfigError(
            f"{flag}: expected at least one scripted bot with a weight above 0 (before there is a "
            f"snapshot to meet, everyone meets those); got {text!r}"
        )
    if own > 0:
        met[SELF] = own
    return Mix(tuple(met), tuple(met.values()))


def _weight(text: str, name: str, flag: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight >= 0):
        raise ConfigError(f"{flag}: the weight of {name} must be 0 or more, got {text!r}")
    return weight


def _not_met_in_training(name: str) -> str:
    """For runs and exported files, which other commands take as opponents."""
    if "/" not in name and "@" not in name and not name.endswith(".py"):
        return ""
    return (
        " Training meets scripted bots (--bots FILE adds some) and its own past; runs and exported "
        "files are opponents in eval, tournament and watch"
    )
