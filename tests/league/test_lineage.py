"""Lineages: who descends from whom can be read back, from the file and by people."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.errors import FileFormatError
from understudy.league.lineage import (
    Lineage,
    LineageRow,
    Settings,
    ancestry,
    decode,
    encode,
    founder,
    table,
)

A, B, C = Settings(1e-3, 0.01), Settings(2e-3, 0.02), Settings(3e-3, 0.03)
A2 = Settings(1.1e-3, 0.01, 1.2)
B2 = Settings(1e-3, 0.02)


def row(number: int, agent: int, parent: int, before: Settings, after: Settings) -> LineageRow:
    return LineageRow(
        round=number,
        steps=number * 1_050_000,
        agent=agent,
        parent=parent,
        fitness=0.5,
        parent_fitness=0.75,
        before=before,
        after=after,
        why="copy" if agent != parent else "half the learning rate" if before != after else "stays",
    )


LINEAGE = Lineage(
    first=(A, B, C),
    rows=(
        row(1, 1, 1, A, A), row(1, 2, 2, B, B), row(1, 3, 1, C, A2),
        row(2, 1, 1, A, A), row(2, 2, 2, B, B2), row(2, 3, 3, A2, A2),
        row(3, 1, 3, A, A2), row(3, 2, 2, B2, B2), row(3, 3, 3, A2, A2),
    ),
)  # fmt: skip


def test_an_agent_knows_its_line_back_to_the_start() -> None:
    assert [(one.agent, one.parent, one.steps) for one in ancestry(LINEAGE, 1)] == [
        (1, 3, 3_150_000),
        (3, 1, 1_050_000),
    ]
    assert [(one.agent, one.parent) for one in ancestry(LINEAGE, 3)] == [(3, 1)]
    assert [founder(LINEAGE, agent) for agent in (1, 2, 3)] == [1, 2, 1]
    assert [str(one) for one in ancestry(LINEAGE, 3)] == [
        "agent 3 <- agent 1 at 1.05M: learning rate 0.001 -> 0.0011, shaping 1 -> 1.2"
    ]
    assert [str(one) for one in ancestry(LINEAGE, 2)] == [
        "agent 2 (half the learning rate) at 2.1M: learning rate 0.002 -> 0.001"
    ]
    assert str(ancestry(LINEAGE, 1)[0]) == "agent 1 <- agent 3 at 3.15M: same settings"
    assert ancestry(Lineage(first=(A, B)), 2) == []


def test_the_settings_of_now_and_of_then() -> None:
    assert LINEAGE.settings == (A2, B2, A2)
    earlier = LINEAGE.until(2_999_999)
    assert (earlier.rounds, earlier.steps, earlier.settings) == (2, 2_100_000, (A, B2, A2))
    assert LINEAGE.until(0).settings == (A, B, C) and LINEAGE.until(0).rounds == 0
    assert earlier.after(list(LINEAGE.of_round(3))) == LINEAGE


def test_the_table_has_a_row_for_every_agent_and_round() -> None:
    rows = list(csv.DictReader(io.StringIO(table(LINEAGE).decode())))
    assert len(rows) == 9
    assert rows[2] | {"why": ""} == {
        "round": "1", "steps": "1050000", "agent": "3", "parent": "1", "fitness": "0.5",
        "parent_fitness": "0.75", "why": "", "learning_rate_before": "0.003",
        "learning_rate_after": "0.0011", "entropy_weight_before": "0.03",
        "entropy_weight_after": "0.01", "shaping_before": "1", "shaping_after": "1.2",
    }  # fmt: skip


@given(
    st.integers(1, 4),
    st.lists(st.floats(0, 10, allow_nan=False), min_size=3, max_size=3),
    st.integers(0, 3),
)
def test_what_is_written_can_be_read(agents: int, values: list[float], rounds: int) -> None:
    settings = Settings(*values)
    rows = [
        row(number, agent, 1, settings, settings)
        for number in range(1, rounds + 1)
        for agent in range(1, agents + 1)
    ]
    lineage = Lineage(first=(settings,) * agents, rows=tuple(rows))
    assert decode(encode(lineage), what="lineage.json") == lineage


def test_a_damaged_file_says_which(tmp_path: Path) -> None:
    whole = encode(LINEAGE)
    missing = encode(Lineage(first=LINEAGE.first, rows=LINEAGE.rows[1:]))
    twice = encode(Lineage(first=LINEAGE.first, rows=(*LINEAGE.rows, *LINEAGE.rows[-3:])))
    stranger = encode(Lineage(first=(A,), rows=(row(1, 1, 2, A, A),)))
    for data in (whole[:-20], b"\xff", b"[]", missing, twice, stranger):
        with pytest.raises(FileFormatError, match=r"runs/x/lineage\.json: "):
            decode(data, what="runs/x/lineage.json")
