"""What all sections of settings share: frozen, no unknown keys, and checks that name the key."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, get_args

import msgspec

from understudy.core.errors import ConfigError

FLOAT32 = "a finite number of 32 bits (at most 3.4e38)"


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of settings."""


def inner(kind: Any) -> type[Section] | None:
    """The section that a setting of this type is made of, if any: itself, or its entries."""
    for one in (kind, *get_args(kind)):
        if isinstance(one, type) and issubclass(one, Section):
            return one
    return None


def positive(section: Section, where: str, *names: str) -> None:
    """Those settings are above 0."""
    check(section, where, names, "a number above 0", lambda value: value > 0)


def at_least_zero(section: Section, where: str, *names: str) -> None:
    """Those settings are 0 or more."""
    check(section, where, names, "0 or more", lambda value: value >= 0)


def share(section: Section, where: str, *names: str) -> None:
    """Those settings are shares, 0 to 1."""
    check(section, where, names, "0 to 1", lambda value: 0.0 <= value <= 1.0)


def finite(section: Section, where: str, *names: str) -> None:
    """Those settings are numbers that one can count with."""
    check(section, where, names, "a finite number", math.isfinite)


def float32(section: Section, where: str, *names: str) -> None:
    """Those settings are finite as 32-bit floats, which is what rewards are computed in."""
    check(section, where, names, FLOAT32, is_float32)


def is_float32(value: float) -> bool:
    """Whether a number stays finite when it is rounded to a 32-bit float."""
    return abs(value) < 2.0**128 - 2.0**103


def check(
    section: Section, where: str, names: Iterable[str], what: str, holds: Callable[[Any], bool]
) -> None:
    """Each of those settings holds, or an error that says `where.name: expected what`."""
    for name in names:
        value = getattr(section, name)
        if not holds(value):
            raise ConfigError(f"{where}.{name}: expected {what}, got {value}")
