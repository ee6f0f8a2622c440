"""The mix of opponents: who is met how often, by weight, counted in matches started."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.core.arrays import NDArray
from understudy.core.errors import ConfigError, nearest

SELF = "self"
"""An earlier version of the policy that is trained."""


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
        """Whether earlier versions are among the opponents."""
        return SELF in self.names

    def bounds(self, *, with_self: bool) -> NDArray:
        """float32 [N]: opponent i is met where a draw from [0, 1) lies below bound i, and not below
        the one before. Without `self` its share goes to the others."""
        kept = [
            weight if with_self or name != SELF else 0.0
            for name, weight in zip(self.names, self.weights, strict=True)
        ]
        return (np.cumsum(kept) / sum(kept)).astype(np.float32)


def parse(text: str, bots: Sequence[str], *, flag: str = "train.opponents") -> Mix:
    """`based=1.5,random=1,self=2`; a name alone weighs 1; `all` is every bot alike."""
    weights: dict[str, float] = {}
    for item in text.split(","):
        name, _, number = (part.strip() for part in item.partition("="))
        weight = _weight(number, name, flag) if number else 1.0
        for each in bots if name == "all" else (name,):
            if each != SELF and each not in bots:
                known = (*bots, SELF, "all")
                raise ConfigError(
                    f"{flag}: expected some of {', '.join(known)}; got {each!r}."
                    f"{nearest(each, known)}"
                )
            weights[each] = weight
    own = weights.pop(SELF, 0.0)
    met = {name: weight for name, weight in weights.items() if weight > 0}
    if not met:
        raise ConfigError(
            f"{flag}: expected at least one scripted bot with a weight above 0 (before there is an "
            f"earlier version to meet, everyone meets those); got {text!r}"
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
