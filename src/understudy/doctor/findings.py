"""A finding: what a check found wrong, with its evidence and the next step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

Weight: TypeAlias = Literal["problem", "warning", "note"]
"""`problem`: the run does not do what it is for; `warning`: it may stop doing so; `note`: worth
knowing."""
Certainty: TypeAlias = Literal["certain", "likely", "possible"]

WEIGHTS: tuple[Weight, ...] = ("problem", "warning", "note")
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
    """The page of the docs and the section, from `section`."""


def section(check: str) -> str:
    """Where docs/doctor.md explains a check."""
    return f"docs/doctor.md#{check}"


def by_weight(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first; among equals the surest."""
    return sorted(
        findings,
        key=lambda one: (WEIGHTS.index(one.weight), _CERTAINTIES.index(one.certainty)),
    )


def counted(findings: Sequence[Finding]) -> str:
    """`1 problem, 2 warnings`; empty where there is no finding."""
    counts = {weight: sum(one.weight == weight for one in findings) for weight in WEIGHTS}
    return ", ".join(
        f"{count} {weight}{'' if count == 1 else 's'}" for weight, count in counts.items() if count
    )


def worst(findings: Sequence[Finding]) -> str:
    """The worst finding and how many others there are, without a full stop; empty where nothing but
    notes was found."""
    ordered = [one for one in by_weight(findings) if one.weight != "note"]
    if not ordered:
        return ""
    first, others = ordered[0], ordered[1:]
    more = f" (and {counted(others)})" if others else ""
    return f"{first.weight}, {first.certainty}: {first.title.removesuffix('.')}{more}"
