"""A finding: what a check found wrong, with its evidence and the next step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

Weight: TypeAlias = Literal["problem", "warning", "note"]
"""`problem`: the run does not do what it is for; `warning`: it may stop to; `note`: worth
knowing."""
Certainty: TypeAlias = Literal["certain", "likely", "possible"]

_WEIGHTS: tuple[Weight, ...] = ("problem", "warning", "note")
_CERTAINTIES: tuple[Certainty, ...] = ("certain", "likely", "possible")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong."""

    check: str
    """The name of the check, as in docs/doctor.md: `not-learning`."""
    weight: Weight
    certainty: Certainty
    title: str
    """One sentence: what is wrong."""
    evidence: tuple[str, ...]
    """The numbers that it was concluded from, one sentence each."""
    next_step: str
    """What to do, with the command or the setting."""
    link: str
    """The page of the docs, and the section: `docs/troubleshooting.md#...`."""


def by_weight(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first; among equals the surest."""
    return sorted(
        findings,
        key=lambda one: (_WEIGHTS.index(one.weight), _CERTAINTIES.index(one.certainty)),
    )
