"""The promotion log: every record once and in order, whoever compacts, stalls or is cut off."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from walk.power import FallibleDisk, Tree, UnsyncedDisk, build, quick_folder

from understudy.core import files
from understudy.core.errors import FileFormatError
from understudy.core.seals import seal
from understudy.gates.promotion.records import Ordered
from understudy.promotion import log as logs
from understudy.promotion.log import PromotionLog

SMALL = 4


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "BLOCK", SMALL)


def said(text: object) -> Ordered:
    return Ordered(order="pause", words=str(text))


def words(log: PromotionLog) -> list[str]:
    """What this log has not read yet."""
    return [record.words for _, record in log.new() if isinstance(record, Ordered)]


def all_words(folder: Path, problem: Callable[[str], None] = pytest.fail) -> list[str]:
    return words(PromotionLog(folder, problem=problem))


def write(folder: Path, count: int, first: int = 1) -> list[str]:
    """Append records whose words are their numbers; returns those words."""
    log = PromotionLog(folder)
    log.new()
    for number in range(first, first + count):
        assert log.create(said(number)) == number
    return [str(number) for number in range(first, first + count)]


def compact(folder: Path) -> int:
    log = PromotionLog(folder)
    log.new()
    return log.compact()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def stray(folder: Path, number: int) -> None:
    """A record under a number that was used and freed."""
    path = folder / f"{number:08d}.json"
    path.write_bytes(seal(b'{"record":"Ordered","order":"pause","words":"stray"}'))


class Interrupted(UnsyncedDisk):
    """Calls a function after each effect on names."""

    def __init__(self, between: Callable[[], object]) -> None:
        self._between = between

    def claim(self, source: Path, target: Path) -> None:
        super().claim(source, target)
        self._between()

    def remove(self, path: Path) -> None:
        super().remove(path)
        self._between()


# --- order ---------------------------------------------------------------------------------------


def test_of_two_writers_one_reads_on_first(tmp_path: Path) -> None:
    one, other = PromotionLog(tmp_path), PromotionLog(tmp_path)
    assert one.create(said("a")) == 1
    with pytest.raises(FileExistsError):
        other.create(said("b"))
    assert words(other) == ["a"]
    assert other.create(said("b")) == 2
    assert words(one) == ["b"]
    assert all_words(tmp_path) == ["a", "b"]


def test_a_log_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert PromotionLog(tmp_path / "promotion").new() == []
    assert PromotionLog(tmp_path / "promotion").compact() == 0
    assert not (tmp_path / "promotion").exists()


def test_a_record_of_an_unknown_kind_is_an_error_after_the_records_before_it(
    tmp_path: Path,
) -> None:
    write(tmp_path, 2)
    (tmp_path / "00000003.json").write_bytes(seal(b'{"record":"Foretold"}'))
    log = PromotionLog(tmp_path)
    assert words(log) == ["1", "2"]
    with pytest.raises(FileFormatError, match=r"00000003.json: record 3: .*update"):
        log.new()


def test_a_long_log_is_read_a_block_at_a_time(tmp_path: Path) -> None:
    write(tmp_path, 14)
    compact(tmp_path)
    blocks = PromotionLog(tmp_path).new_blocks()
    assert [[number for number, _ in block] for block in blocks] == [
        [1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14],
    ]  # fmt: skip


# --- blocks --------------------------------------------------------------------------------------


def test_old_records_are_put_into_blocks_with_their_bytes_as_they_were(tmp_path: Path) -> None:
    written = write(tmp_path, 15)
    old = [(tmp_path / f"{number:08d}.json").read_bytes() for number in range(1, 9)]
    assert compact(tmp_path) == 2
    assert names(tmp_path) == [
        "00000001-00000004.jsonl",
        "00000005-00000008.jsonl",
        *(f"{number:08d}.json" for number in range(9, 16)),
    ]
    blocks = sorted(tmp_path.glob("*.jsonl"))
    assert b"".join(path.read_bytes() for path in blocks) == b"".join(one + b"\n" for one in old)
    assert all_words(tmp_path) == written
    assert compact(tmp_path) == 0
    written += write(tmp_path, 9, first=16)
    assert all_words(tmp_path) == written


def test_a_process_looks_after_each_block_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that cannot be made, since a record is damaged, is not read again and again."""
    write(tmp_path, 12)
    (tmp_path / "00000002.json").write_bytes(b"damaged")
    log = PromotionLog(tmp_path, problem=lambda words: None)
    log.new()
    assert log.compact() == 1
    tried: list[int] = []
    make = log._make_block

    def noted(first: int) -> bool:
        tried.append(first)
        return make(first)

    monkeypatch.setattr(log, "_make_block", noted)
    for number in range(13, 17):
        log.create(said(number))
    assert log.compact() == 1
    assert tried == [9]


def test_readers_in_the_middle_of_compacting_see_every_record_once(tmp_path: Path) -> None:
    written = write(tmp_path, 15)
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        for read in range(len(written) + 1):
            reader = PromotionLog(tmp_path)
            reader._next = read + 1
            assert words(reader) == written[read:]

    with files.using(Interrupted(look)):
        assert compact(tmp_path) == 2
    assert looks == 2 * (2 + SMALL), "a block and its temporary name, then its records"


def test_several_processes_compact_at_once(tmp_path: Path) -> None:
    written = write(tmp_path, 20)
    others: list[int] = []

    def another() -> None:
        with files.using(UnsyncedDisk()):
            others.append(compact(tmp_path))
        assert all_words(tmp_path) == written

    with files.using(Interrupted(another)):
        made = compact(tmp_path)
    assert made + sum(others) == 4, "each block is made once"
    assert all_words(tmp_path) == written
    assert len(names(tmp_path)) == 4 + 4


def test_a_writer_that_stalls_never_uses_a_number_again(tmp_path: Path) -> None:
    write(tmp_path, 2)
    stalled = PromotionLog(tmp_path)
    stalled.new()
    write(tmp_path, 13, first=3)

    class Late(UnsyncedDisk):
        """All others go on just before the record gets its name."""

        def claim(self, source: Path, target: Path) -> None:
            with files.using(UnsyncedDisk()):
                compact(tmp_path)
            super().claim(source, target)

    with files.using(Late()), pytest.raises(FileExistsError):
        stalled.create(said("late"))
    assert "00000003.json" not in names(tmp_path)
    assert words(stalled) == [str(number) for number in range(3, 16)]
    assert stalled.create(said("late")) == 16
    assert all_words(tmp_path) == [*(str(number) for number in range(1, 16)), "late"]


def test_a_writer_that_stalls_after_its_record_got_its_name_finds_it_in_the_block(
    tmp_path: Path,
) -> None:
    write(tmp_path, 2)
    stalled = PromotionLog(tmp_path)
    stalled.new()

    class Suspended(UnsyncedDisk):
        """All others go on just after the record got its name."""

        def claim(self, source: Path, target: Path) -> None:
            super().claim(source, target)
            with files.using(UnsyncedDisk()):
                write(tmp_path, 12, first=4)
                compact(tmp_path)

    with files.using(Suspended()):
        assert stalled.create(said("mine")) == 3
    expected = ["1", "2", "mine", *(str(number) for number in range(4, 16))]
    assert all_words(tmp_path) == expected
    assert words(stalled) == expected[3:]


def test_a_record_under_a_freed_number_is_never_read_and_goes_in_the_end(tmp_path: Path) -> None:
    """Its writer was killed before it looked for the block."""
    written = write(tmp_path, 15)
    compact(tmp_path)
    stray(tmp_path, 3)
    assert all_words(tmp_path) == written
    reader = PromotionLog(tmp_path)
    reader._next = 3
    assert words(reader) == written[2:]
    compact(tmp_path)
    assert "00000003.json" not in names(tmp_path)
    assert all_words(tmp_path) == written


def test_not_even_by_a_reader_that_began_before_the_block_was_made(tmp_path: Path) -> None:
    written = write(tmp_path, 15)

    class Slow(PromotionLog):
        def _read(self, number: int) -> object:  # type: ignore[override]
            if number == 3 and not list(tmp_path.glob("*.jsonl")):
                compact(tmp_path)
                stray(tmp_path, 3)
            return super()._read(number)

    assert words(Slow(tmp_path)) == written


# --- damage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [b"", b"abc", b"0" * 64 + b"\n{}"])
def test_a_damaged_record_is_void_and_named(tmp_path: Path, damage: bytes) -> None:
    write(tmp_path, 13)
    (tmp_path / "00000003.json").write_bytes(damage)
    problems: list[str] = []
    rest = [str(number) for number in range(1, 14) if number != 3]
    assert all_words(tmp_path, problems.append) == rest
    assert [problem.split(":")[0] for problem in problems] == [str(tmp_path / "00000003.json")]
    assert "record 3" in problems[0]
    compact(tmp_path)
    assert "00000003.json" in names(tmp_path), "it stays where a person finds it"
    assert "00000005-00000008.jsonl" in names(tmp_path)
    assert all_words(tmp_path, problems.append) == rest


def test_a_record_that_a_crash_cut_short_at_the_end_is_void(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_PATIENCE_S", 0.0)
    write(tmp_path, 2)
    (tmp_path / "00000003.json").write_bytes(b"")
    problems: list[str] = []
    log = PromotionLog(tmp_path, problem=problems.append)
    assert words(log) == ["1", "2"]
    assert log.create(said(4)) == 4, "its number is not used again"
    assert all_words(tmp_path, problems.append) == ["1", "2", "4"]


def test_damage_in_a_block_costs_one_record(tmp_path: Path) -> None:
    write(tmp_path, 15)
    compact(tmp_path)
    block = tmp_path / "00000001-00000004.jsonl"
    block.write_bytes(block.read_bytes().replace(b'"words":"2"', b'"words":"7"'))
    problems: list[str] = []
    rest = [str(number) for number in range(1, 16) if number != 2]
    assert all_words(tmp_path, problems.append) == rest
    assert len(problems) == 1 and "00000001-00000004.jsonl: record 2" in problems[0]


def test_half_a_block_hides_no_record(tmp_path: Path) -> None:
    """Where there are no hard links a block has its name before its content."""
    written = write(tmp_path, 15)
    (tmp_path / "00000001-00000004.jsonl").write_bytes(
        (tmp_path / "00000001.json").read_bytes() + b"\n"
    )
    assert all_words(tmp_path) == written
    compact(tmp_path)
    assert all_words(tmp_path) == written


def test_the_number_of_a_record_that_is_gone_is_not_used_again(tmp_path: Path) -> None:
    write(tmp_path, 5)
    (tmp_path / "00000003.json").unlink()
    problems: list[str] = []
    log = PromotionLog(tmp_path, problem=problems.append)
    assert words(log) == ["1", "2"]
    with pytest.raises(FileExistsError):
        log.create(said(6))
    assert words(log) == ["4", "5"]
    assert log.create(said(6)) == 6
    assert len(problems) == 1 and "record 3" in problems[0]


# --- power cuts ----------------------------------------------------------------------------------


def test_after_any_power_cut_the_log_has_what_was_acknowledged(tmp_path: Path) -> None:
    root, chance = tmp_path / "promotion", random.Random(3)
    acknowledged: list[str] = []
    states: dict[object, tuple[Tree, int]] = {}

    def after() -> None:
        for tree in disk.crashes(chance, mixes=2):
            told = len(acknowledged)
            states[frozenset(tree.items()), told] = tree, told

    disk = FallibleDisk(root, after)
    with files.using(disk):
        writers = PromotionLog(root), PromotionLog(root)
        for number in range(1, 19):
            log = writers[number % 2]
            log.new()
            log.create(said(number))
            acknowledged.append(str(number))
            log.compact()
    assert len(list(root.glob("*.jsonl"))) == 3
    assert len(states) > 100
    with quick_folder() as quick, files.using(UnsyncedDisk()):
        for tree, told in states.values():
            left = quick / "left"
            build(tree, left)
            found = all_words(left)
            assert found in (acknowledged[:told], acknowledged[: told + 1])
            more = PromotionLog(left)
            more.new()
            assert more.create(said("more")) == len(found) + 1
            more.compact()
            assert all_words(left) == [*found, "more"]
            shutil.rmtree(left)
