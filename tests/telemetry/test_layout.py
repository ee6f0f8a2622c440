"""Lines for a console of a known width: nothing is wider, and the least important goes first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.telemetry.layout import (
    Column,
    Part,
    cells,
    fitted,
    hint,
    kept_columns,
    labelled,
    padded,
    shortened,
    table_lines,
    wrapped,
)

COLUMNS = (
    Column("opponent", text=True),
    Column("wins", drop=3),
    Column("draws", drop=3),
    Column("win rate"),
    Column("95% interval", drop=1),
    Column("frames", drop=4),
    Column("note", text=True, drop=2),
)
ROWS = [
    ["based", "1,234", "5", "61.2%", "58.0 to 64.1%", "900", ""],
    ["runs/한국어@step-1000000", "7", "12", "9.0%", "0.1 to 20.0%", "88", ""],
]
WIDTHS = (60, 80, 120, 160)


def test_a_pipe_gets_every_column_and_every_letter() -> None:
    head, *rows = table_lines(COLUMNS, ROWS, width=None)
    assert head.split("  ")[0] == "opponent" and head.endswith("note")
    assert all(cell in row for cell, row in zip(ROWS[1], [rows[1]] * 7, strict=True))
    assert kept_columns(COLUMNS, ROWS, None) == [one.heading for one in COLUMNS]


@pytest.mark.parametrize("width", [20, 30, 40, 50, *WIDTHS])
def test_no_row_is_wider_and_the_win_rate_is_there(width: int) -> None:
    lines = table_lines(COLUMNS, ROWS, width=width)
    assert all(cells(line) <= width for line in lines)
    assert "win rate" in lines[0] and "61.2%" in lines[1] and "9.0%" in lines[2]


def test_columns_go_in_the_order_of_their_numbers() -> None:
    gone: list[str] = []
    for width in range(120, 15, -1):
        kept = kept_columns(COLUMNS, ROWS, width)
        gone += [one.heading for one in COLUMNS if one.heading not in {*kept, *gone}]
    assert gone == ["note", "frames", "wins", "draws", "95% interval"], "an empty one first"
    together = [{"wins", "draws"} <= set(kept_columns(COLUMNS, ROWS, w)) for w in range(20, 120)]
    either = [bool({"wins", "draws"} & set(kept_columns(COLUMNS, ROWS, w))) for w in range(20, 120)]
    assert together == either, "columns with one number go together"


def test_numbers_are_aligned_to_the_right_and_text_to_the_left() -> None:
    head, first, second = table_lines(COLUMNS[:2], [row[:2] for row in ROWS], width=None)
    assert head.index("wins") + len("wins") == len(head) == len(first)
    assert first.startswith("based ") and second.endswith("      7")
    assert cells(second) == len(first), "wide letters take two columns"


def test_a_long_name_keeps_its_end() -> None:
    name = "runs/a/very/long/path/to/a/run@step-1000"
    (_, row) = table_lines((Column("player", text=True), Column("rate")), [[name, "5%"]], width=30)
    assert row.startswith("...") and row.endswith("step-1000    5%") and len(row) == 30


def test_a_cell_that_wraps_goes_on_under_itself() -> None:
    columns = (Column("name", text=True), Column("why", text=True, wraps=True))
    lines = table_lines(columns, [["one", "because of this and of that and more"]], width=30)
    assert lines == [
        "name  why",
        "one   because of this and of",
        "      that and more",
    ]


@given(st.lists(st.text(alphabet="ab 한\u0301", max_size=12), min_size=1), st.integers(1, 60))
def test_parts_never_make_a_line_too_wide(texts: list[str], width: int) -> None:
    line = fitted([Part(text, drop) for drop, text in enumerate(texts)], width)
    assert cells(line) <= width


def test_the_least_important_part_goes_first() -> None:
    parts = [Part("bar", 3), Part("50%"), Part("match 7", 2), Part("wins 62%"), Part("v3", 1)]
    assert fitted(parts, None) == "bar  50%  match 7  wins 62%  v3"
    assert fitted(parts, 27) == "50%  match 7  wins 62%  v3"
    assert fitted(parts, 20) == "50%  wins 62%  v3"
    assert fitted(parts, 14) == "50%  wins 62%"


@given(st.text(alphabet="abc   한", max_size=80), st.integers(4, 40))
def test_words_are_wrapped_and_none_is_lost(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert " ".join(lines).split() == text.split()
    assert all(cells(line) <= width or " " not in line.strip() for line in lines)


def test_a_label_and_its_text() -> None:
    lines = labelled("Learner", "training, process 14032, 3%", label_width=12, width=30)
    assert lines == ["Learner     training, process", "            14032, 3%"]
    assert labelled("Run", "a b", label_width=12, width=None) == ["Run         a b"]
    long = labelled("Recheck 1234567", "a b c", label_width=12, width=18)
    assert long == ["Recheck 1234567 a", "            b c"]


def test_a_command_is_never_broken() -> None:
    text = "To learn on: understudy learner resume runs/a/long/path"
    assert hint(text, width=None) == hint(text, width=80) == [text]
    assert hint(text, width=40) == ["To learn on:", "  understudy learner resume runs/a/long/path"]


def test_cells_of_letters() -> None:
    assert [cells(one) for one in ("abc", "한국", "e\u0301", "")] == [3, 4, 1, 0]
    assert padded("한", 4) + "|" == "한  |" and padded("한", 4, right=True) == "  한"
    assert [shortened("abcdef", width) for width in (6, 5, 3, 0, None)] == [
        "abcdef", "ab...", "...", "", "abcdef",
    ]  # fmt: skip
