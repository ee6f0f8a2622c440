"""Action spaces as plain data: every space is one or more *parts*, each a choice among n options.

`Discrete` is one part, `MultiDiscrete` several, `MultiBinary` several of two options each. An
action is int32 [..., parts]; a mask of what is legal is bool [..., options], parts side by side.
"""

from __future__ import annotations

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


ActionSpace: TypeAlias = Discrete | MultiDiscrete | MultiBinary


def _check_names(names: tuple[str, ...], what: str, *, least: int) -> None:
    if len(names) < least:
        raise InputError(f"{what}: expected at least {least} names, got {len(names)}")
    if len(set(names)) != len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{what}: the name {double!r} appears twice")
    if any(not name for name in names):
        raise InputError(f"{what}: a name is empty")
