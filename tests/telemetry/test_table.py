from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core import files
from understudy.telemetry.table import Table

COLUMNS = ("steps", "name", "value")


def written(path: Path, *rows: tuple[int, str, float]) -> Table:
    table = Table(path, COLUMNS)
    table.begin(0)
    for row in rows:
        table.add(dict(zip(COLUMNS, row, strict=True)))
    table.flush()
    return table


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_table_has_its_header_before_its_first_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    written(path)
    assert path.read_bytes() == b"steps,name,value\n"


def test_rows_wait_in_memory_until_they_are_flushed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table = written(path)
    table.add({"steps": 1, "name": "a", "value": 0.5})
    assert read(path) == []
    table.flush()
    assert path.read_bytes() == b"steps,name,value\n1,a,0.5\n"


def test_cells_that_are_no_numbers_are_empty(tmp_path: Path) -> None:
    table = written(tmp_path / "t.csv", (1, "a", float("nan")), (2, "b", float("inf")))
    table.add({"steps": 3, "value": None})
    table.flush()
    assert [row["value"] for row in read(tmp_path / "t.csv")] == ["", "", ""]


def test_who_goes_on_drops_rows_that_were_not_committed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    written(path, (10, "a", 1.0), (20, "b", 2.0), (30, "c", 3.0))
    table = Table(path, COLUMNS)
    table.begin(20)
    assert [row["steps"] for row in table.rows()] == ["10", "20"]
    table.add({"steps": 30, "name": "again", "value": 4.0})
    table.flush()
    assert [row["name"] for row in read(path)] == ["a", "b", "again"]


@settings(max_examples=60)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 10**12),
            st.text(max_size=12),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        max_size=8,
    ),
    cut=st.integers(0, 400),
    at_steps=st.integers(0, 10**12),
)
def test_whatever_byte_a_crash_cuts_at_whole_rows_survive(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, str, float]],
    cut: int,
    at_steps: int,
) -> None:
    path = tmp_path_factory.mktemp("cut") / "t.csv"
    written(path, *rows)
    whole = read(path)
    assert len(whole) == len(rows)
    data = path.read_bytes()
    kept = data[: min(len(COLUMNS[0]) + len("name,value\n") + 1 + cut, len(data))]
    path.write_bytes(kept)
    table = Table(path, COLUMNS)
    table.begin(at_steps)
    survived = kept.count(b"\n") - 1
    expected = [row for row in whole[:survived] if int(row["steps"]) <= at_steps]
    assert read(path) == expected == list(table.rows())


def test_a_column_that_comes_later_widens_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table = written(path, (1, "a", 1.0))
    table.add({"steps": 2, "name": "b", "value": 2.0, "term_win": 0.25})
    table.flush()
    assert read(path) == [
        {"steps": "1", "name": "a", "value": "1", "term_win": ""},
        {"steps": "2", "name": "b", "value": "2", "term_win": "0.25"},
    ]
    again = Table(path, COLUMNS)
    again.begin(2)
    again.add({"steps": 3, "name": "c", "value": 3.0, "term_win": 0.5})
    again.flush()
    assert read(path)[-1]["term_win"] == "0.5"


def test_the_line_before_the_header_stays_that_of_the_first_session(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for start in ("#first", "#second"):
        table = Table(path, COLUMNS, preamble=start)
        table.begin(5)
        table.add({"steps": 5, "name": start, "value": 0.0})
        table.flush()
    assert path.read_text(encoding="utf-8").splitlines() == [
        "#first",
        "steps,name,value",
        "5,#first,0",
        "5,#second,0",
    ]


def test_a_file_that_is_no_table_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\x00" * 100 + b"\n")
    written(path, (1, "a", 1.0))
    assert len(read(path)) == 1
    assert (tmp_path / "t.csv.damaged").read_bytes() == b"\x00" * 100 + b"\n"


class FullDisk(files.Disk):
    full = True

    def append(self, path: Path, data: bytes) -> None:
        if self.full:
            super().append(path, data[: len(data) // 2])
            raise OSError(28, "No space left on device", str(path))
        super().append(path, data)


class Locked(FullDisk):
    """Another program holds the file, as a spreadsheet does on Windows."""

    def append(self, path: Path, data: bytes) -> None:
        if self.full:
            raise PermissionError(13, "Permission denied", str(path))
        super().append(path, data)

    def rename(self, source: Path, target: Path) -> None:
        if self.full:
            raise PermissionError(13, "Permission denied", str(target))
        super().rename(source, target)


@pytest.mark.parametrize("disk", [FullDisk(), Locked()], ids=["full", "locked"])
def test_rows_that_could_not_be_written_come_with_the_next_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], disk: FullDisk
) -> None:
    """Each of them once, and not a byte beside them, wherever the write was cut off."""
    path = tmp_path / "t.csv"
    table = written(path, (1, "a", 1.0))
    with files.using(disk):
        for steps in (2, 3, 4):
            table.add({"steps": steps, "name": "later", "value": 0.125})
            table.flush()
        disk.full = False
        table.add({"steps": 5, "name": "b", "value": 0.5})
        table.flush()
    assert capsys.readouterr().err.count("cannot write") == 1
    later = b"".join(b"%d,later,0.125\n" % steps for steps in (2, 3, 4))
    assert path.read_bytes() == b"steps,name,value\n1,a,1\n" + later + b"5,b,0.5\n"


@pytest.mark.parametrize("disk", [FullDisk(), Locked()], ids=["full", "locked"])
def test_a_column_can_come_while_nothing_can_be_written(tmp_path: Path, disk: FullDisk) -> None:
    path = tmp_path / "t.csv"
    table = written(path, (1, "a", 1.0))
    with files.using(disk):
        table.add({"steps": 2, "name": "b", "value": 2.0})
        table.flush()
        table.add({"steps": 3, "name": "c", "value": 3.0, "term_win": 0.25})
        table.flush()
        disk.full = False
        table.flush()
    assert [tuple(row.values()) for row in read(path)] == [
        ("1", "a", "1", ""),
        ("2", "b", "2", ""),
        ("3", "c", "3", "0.25"),
    ]


def test_a_held_file_with_fewer_columns_is_widened_once_it_can_be(tmp_path: Path) -> None:
    path, disk = tmp_path / "t.csv", Locked()
    path.write_bytes(b"steps,name\n1,a\n")
    table = Table(path, COLUMNS)
    with files.using(disk):
        table.begin(1)
        table.add({"steps": 2, "name": "b", "value": 2.0})
        table.flush()
        disk.full = False
        table.flush()
    assert path.read_bytes() == b"steps,name,value\n1,a,\n2,b,2\n"


def test_only_so_many_rows_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.telemetry.table._MOST", 3)
    table, disk = written(tmp_path / "t.csv"), Locked()
    with files.using(disk):
        for steps in range(1, 9):
            table.add({"steps": steps})
            table.flush()
        disk.full = False
        table.flush()
    assert [row["steps"] for row in table.rows()] == ["1", "6", "7", "8"]
