"""Lineage: who descends from whom in a population, round by round, and with which settings.

Pure. `encode` and `decode` are the file `lineage.json`, from which the table and the picture are
made again at any time.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from understudy.core.errors import FileFormatError
from understudy.telemetry.table import csv_bytes

SCHEMA = 1
FILE, TABLE, PICTURE = "lineage.json", "lineage.csv", "lineage.png"


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a population searches over."""

    learning_rate: float
    entropy_weight: float
    shaping: float = 1.0
    """What every reward but that for the result is multiplied by."""

    def as_dict(self) -> dict[str, float]:
        """By name."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class LineageRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a round did with one agent; agents count from 1. One that stays is its own parent."""

    round: int
    steps: int
    """Of each agent."""
    agent: int
    parent: int
    fitness: float | None
    """Mean score over the scripted opponents since the last round; None: too few matches."""
    parent_fitness: float | None
    before: Settings
    after: Settings
    why: str

    @property
    def replaced(self) -> bool:
        """Whether the agent is a copy of another one from here on."""
        return self.agent != self.parent


class Lineage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A population so far; rows by round, and in a round by agent, one for each."""

    schema: int = SCHEMA
    first: tuple[Settings, ...]
    """What each agent began with."""
    rows: tuple[LineageRow, ...] = ()

    @property
    def agents(self) -> int:
        """How many there are."""
        return len(self.first)

    @property
    def rounds(self) -> int:
        """How many were held."""
        return self.rows[-1].round if self.rows else 0

    @property
    def steps(self) -> int:
        """Of each agent when the last round was held."""
        return self.rows[-1].steps if self.rows else 0

    @property
    def settings(self) -> tuple[Settings, ...]:
        """What each agent has since the last round."""
        last = self.rows[-self.agents :]
        return tuple(row.after for row in last) if last else self.first

    def after(self, rows: list[LineageRow]) -> Lineage:
        """With one round more."""
        return msgspec.structs.replace(self, rows=(*self.rows, *rows))

    def until(self, steps: int) -> Lineage:
        """Without the rounds after so many steps."""
        return msgspec.structs.replace(
            self, rows=tuple(row for row in self.rows if row.steps <= steps)
        )

    def of_round(self, number: int) -> tuple[LineageRow, ...]:
        """Its rows, by agent."""
        return self.rows[(number - 1) * self.agents : number * self.agents]


class Replacement(msgspec.Struct, frozen=True, kw_only=True):
    """Where the weights or the settings of a line changed hands."""

    steps: int
    agent: int
    parent: int
    before: Settings
    """The parent's."""
    after: Settings
    why: str

    def __str__(self) -> str:
        told = ", ".join(
            f"{name.replace('_', ' ')} {old:.3g} -> {new:.3g}"
            for name, old, new in _changes(self.before, self.after)
        )
        whence = f" <- agent {self.parent}" if self.parent != self.agent else f" ({self.why})"
        return f"agent {self.agent}{whence} at {_short(self.steps)}: {told or 'same settings'}"


def ancestry(lineage: Lineage, agent: int) -> list[Replacement]:
    """How an agent came to be, newest first: whose copy it is, whose copy that was, and so on."""
    found = []
    for number in range(lineage.rounds, 0, -1):
        rows = lineage.of_round(number)
        row = rows[agent - 1]
        before = rows[row.parent - 1].before
        if row.replaced or before != row.after:
            found.append(
                Replacement(
                    steps=row.steps,
                    agent=agent,
                    parent=row.parent,
                    before=before,
                    after=row.after,
                    why=row.why,
                )
            )
        agent = row.parent
    return found


def founder(lineage: Lineage, agent: int) -> int:
    """The agent of the very beginning that an agent of today descends from."""
    changes = ancestry(lineage, agent)
    return changes[-1].parent if changes else agent


def encode(lineage: Lineage) -> bytes:
    """`lineage.json`."""
    return msgspec.json.format(msgspec.json.encode(lineage), indent=1) + b"\n"


def decode(data: bytes, *, what: str) -> Lineage:
    """The other way round; `FileFormatError` for what is damaged."""
    try:
        lineage = msgspec.json.decode(data, type=Lineage)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{what}: {error}") from error
    agents = range(1, lineage.agents + 1)
    whole = [(row.round, row.agent) for row in lineage.rows] == [
        (number, agent) for number in range(1, lineage.rounds + 1) for agent in agents
    ]
    if lineage.schema != SCHEMA or not whole or any(r.parent not in agents for r in lineage.rows):
        raise FileFormatError(f"{what}: expected every agent once in every round, schema {SCHEMA}")
    return lineage


def table(lineage: Lineage) -> bytes:
    """`lineage.csv`: one row for each agent and round."""
    names = Settings.__struct_fields__
    columns = [f"{name}_{when}" for name in names for when in ("before", "after")]
    known = ("round", "steps", "agent", "parent", "fitness", "parent_fitness", "why")
    lines: list[list[object]] = [[*known, *columns]]
    for row in lineage.rows:
        values = [getattr(part, name) for name in names for part in (row.before, row.after)]
        lines.append(
            ["" if value is None else value for value in (getattr(row, name) for name in known)]
            + [f"{value:.6g}" for value in values]
        )
    return csv_bytes(lines)


def _changes(before: Settings, after: Settings) -> Iterator[tuple[str, float, float]]:
    for name, old in before.as_dict().items():
        new = getattr(after, name)
        if new != old:
            yield name, old, new


def _short(steps: int) -> str:
    if steps >= 1_000_000:
        return f"{steps / 1e6:.3g}M"
    return f"{steps / 1e3:.3g}k" if steps >= 1000 else str(steps)
