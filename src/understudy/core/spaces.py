"""Action spaces as plain data: every space is one or more *parts*.

`Discrete` is one choice among n options, `MultiDiscrete` several, `MultiBinary` several of two
options each: an action is int32 [..., parts], and a mask of what is legal is bool [..., options],
parts side by side. `Continuous` is several real numbers: an action is float32 [..., parts], and
everything is legal. `options` is always the width of what a network puts out.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec

from understudy.core.errors import InputError


class Discrete(msgspec.Struct, frozen=True, tag="discrete", forbid_unknown_fields=True):
    """One choice among named options."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_names(self.names, "actions", least=2)

    @property
    def parts(self) -> tuple[int, ...]:
        """How many options each part has."""
        return (len(self.names),)

    @property
    def options(self) -> int:
        """All options of all parts: the width of logits and of a legal mask."""
        return len(self.names)


class MultiDiscrete(msgspec.Struct, frozen=True, tag="multi_discrete", forbid_unknown_fields=True):
    """Several choices at once, each among its own number of options."""

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.sizes, list | tuple):
            raise InputError(
                "MultiDiscrete: expected the number of options of each part, such as "
                f"MultiDiscrete((3, 4)), got {self.sizes!r}"
            )
        if not self.sizes or any(size < 2 for size in self.sizes):
            raise InputError(
                f"MultiDiscrete sizes must be two or more options a part, got {self.sizes}"
            )

    @property
    def parts(self) -> tuple[int, ...]:
        """How many options each part has."""
        return self.sizes

    @property
    def options(self) -> int:
        """All options of all parts: the width of logits and of a legal mask."""
        return sum(self.sizes)


class MultiBinary(msgspec.Struct, frozen=True, tag="multi_binary", forbid_unknown_fields=True):
    """Named switches (keys of a pad, say) that can be on together."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_names(self.names, "switches", least=1)

    @property
    def parts(self) -> tuple[int, ...]:
        """Each switch is a choice between off and on."""
        return (2,) * len(self.names)

    @property
    def options(self) -> int:
        """All options of all parts: the width of logits and of a legal mask."""
        return 2 * len(self.names)


class Continuous(msgspec.Struct, frozen=True, tag="continuous", forbid_unknown_fields=True):
    """Named real numbers, each within bounds; `None` is no bound.

    A policy draws from all real numbers, and that draw is what is recorded and trained on. Where
    both bounds are finite, -1 and 1 stand for them; the draw is scaled and clipped only when it is
    handed to the environment (`policy.distributions.executed`).
    """

    names: tuple[str, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]

    def __post_init__(self) -> None:
        _check_names(self.names, "numbers", least=1)
        for field, bounds in (("low", self.low), ("high", self.high)):
            if len(bounds) != len(self.names):
                raise InputError(
                    f"Continuous {field}: expected {len(self.names)} bounds, got {len(bounds)}"
                )
            if not all(bound is None or math.isfinite(bound) for bound in bounds):
                raise InputError(
                    f"Continuous {field}: expected finite bounds, or None for none, got {bounds}"
                )
        for name, low, high in zip(self.names, self.low, self.high, strict=True):
            if low is not None and high is not None and not low < high:
                raise InputError(f"Continuous: {name!r} has low {low} that is not below {high}")

    @property
    def parts(self) -> tuple[int, ...]:
        """Each number takes two outputs of a network: its mean and the log of its spread."""
        return (2,) * len(self.names)

    @property
    def options(self) -> int:
        """The width of what a network puts out: all means, then all log-spreads."""
        return 2 * len(self.names)


ActionSpace: TypeAlias = Discrete | MultiDiscrete | MultiBinary | Continuous


def _check_names(names: tuple[str, ...], what: str, *, least: int) -> None:
    # Other libraries count what is named here: Discrete(10) is Gymnasium's.
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{what}: expected their names, such as ('left', 'right'), got {names!r}; to have them "
            "numbered only: tuple(map(str, range(10)))"
        )
    if len(names) < least:
        raise InputError(f"{what}: expected at least {least} names, got {len(names)}")
    if len(set(names)) != len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{what}: the name {double!r} appears twice")
    if any(not name for name in names):
        raise InputError(f"{what}: a name is empty")
