"""What opponents are called in settings, results and tables: bots by name, snapshots `step-N`."""

from __future__ import annotations

import re

SELF = "self"
"""All snapshots of the policy that is trained, together."""
GAME = "game"
"""The opponent in a game of one player, whose enemy is part of the rules."""
_SNAPSHOT = re.compile(r"step-(0|[1-9]\d*)")


def name_of(steps: int) -> str:
    """The name of a snapshot that was taken after so many steps."""
    return f"step-{steps}"


def steps_of(name: str) -> int | None:
    """The other way round; None for what is not the name of a snapshot."""
    match = _SNAPSHOT.fullmatch(name)
    return int(match[1]) if match else None


def kind_of(name: str, snapshots: str = SELF) -> str:
    """The name itself, and one for all snapshots: there can be hundreds of those."""
    return name if steps_of(name) is None else snapshots
