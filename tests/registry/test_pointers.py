from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from walk.toys import SetClock

from understudy.registry.pointers import Pointers


@pytest.fixture
def pointers(tmp_path: Path) -> Pointers:
    return Pointers(tmp_path, SetClock())


def records(pointers: Pointers) -> list[Path]:
    return sorted(pointers.folders[1].glob("*.json"))


def together(*works: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def version(pointers: Pointers) -> int | None:
    record = pointers.read("champion")
    return None if record is None else record.version


def test_a_pointer_says_where_it_was_moved_last(pointers: Pointers) -> None:
    assert version(pointers) is None
    assert pointers.move("champion", 1, by="latest")
    assert pointers.move("champion", 2, by="latest")
    assert version(pointers) == 2
    assert pointers.read("candidate") is None


def test_moving_to_where_it_is_writes_nothing(pointers: Pointers) -> None:
    pointers.move("champion", 1, by="latest")
    assert pointers.move("champion", 1, by="latest")
    assert len(records(pointers)) == 1


@pytest.mark.parametrize("torn", [b"", b"abc", b"0" * 64 + b"\n{}"])
def test_a_torn_record_is_as_if_it_were_not_there(pointers: Pointers, torn: bytes) -> None:
    pointers.move("champion", 1, by="latest")
    pointers.move("champion", 2, by="latest")
    records(pointers)[-1].write_bytes(torn)
    assert version(pointers) == 1
    pointers.move("champion", 3, by="latest")
    assert version(pointers) == 3
    record = pointers.read("champion")
    assert record is not None and record.sequence == 3, "the torn number is not used again"


def test_foreign_files_are_passed_over(pointers: Pointers) -> None:
    for name in ("notes.json", ".tmp-1-2-3", "zzz.json"):
        (pointers.folders[1] / name).write_bytes(b"hello")
    assert version(pointers) is None
    assert pointers.move("champion", 1, by="latest")
    assert version(pointers) == 1


def test_no_rule_moves_a_pinned_pointer_until_it_is_released(pointers: Pointers) -> None:
    pointers.move("champion", 5, by="latest")
    pointers.pin("champion", 3, by="rollback")
    assert not pointers.move("champion", 6, by="latest")
    assert not pointers.move("champion", 3, by="latest"), (
        "not even to where it is: that would unpin"
    )
    record = pointers.read("champion")
    assert record is not None and record.pinned and record.version == 3
    pointers.release("champion")
    assert version(pointers) == 3
    assert pointers.move("champion", 6, by="latest")
    assert version(pointers) == 6


def test_a_person_can_pin_again(pointers: Pointers) -> None:
    pointers.pin("champion", 3, by="rollback")
    pointers.pin("champion", 2, by="rollback")
    assert version(pointers) == 2


def test_releasing_what_is_not_pinned_does_nothing(pointers: Pointers) -> None:
    pointers.release("champion")
    assert records(pointers) == []


def test_old_records_are_removed(pointers: Pointers) -> None:
    for number in range(1, 60):
        pointers.move("champion", number, by="latest")
    assert len(records(pointers)) < 25
    assert version(pointers) == 59


def test_movers_at_the_same_time_take_turns(pointers: Pointers) -> None:
    def mover(first: int) -> Callable[[], None]:
        def work() -> None:
            for number in range(first, first + 30):
                assert pointers.move("champion", number, by="latest")

        return work

    failures: list[object] = []
    before, threading.excepthook = threading.excepthook, failures.append
    try:
        together(*(mover(100 * n) for n in range(1, 4)))
    finally:
        threading.excepthook = before
    assert failures == []
    record = pointers.read("champion")
    assert record is not None and record.sequence == 90
    assert record.version in (129, 229, 329)
    assert not any(path.name.startswith(".tmp") for path in pointers.folders[1].iterdir())


def test_a_pin_in_the_middle_of_it_all_stays(tmp_path: Path) -> None:
    for attempt in range(10):
        pointers = Pointers(tmp_path / str(attempt), SetClock())
        start = threading.Barrier(3)

        def move(
            first: int, pointers: Pointers = pointers, start: threading.Barrier = start
        ) -> None:
            start.wait()
            for number in range(first, first + 20):
                pointers.move("champion", number, by="latest")

        def pin(pointers: Pointers = pointers, start: threading.Barrier = start) -> None:
            start.wait()
            pointers.pin("champion", 7, by="rollback")

        together(lambda move=move: move(100), lambda move=move: move(200), pin)  # type: ignore[misc]
        record = pointers.read("champion")
        said = {path.name: path.read_bytes() for path in pointers.folders[1].iterdir()}
        assert record is not None and record.pinned and record.version == 7, said


def test_a_pin_that_is_being_written_is_not_overridden(
    pointers: Pointers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule looks, a person pins, the rule writes: it must not win by a moment."""
    from understudy.core import files

    pointers.move("champion", 1, by="latest")
    create = files.create_exclusive

    def late(path: Path, data: bytes) -> None:
        monkeypatch.setattr(files, "create_exclusive", create)
        pointers.pin("champion", 7, by="rollback")
        create(path, data)

    monkeypatch.setattr(files, "create_exclusive", late)
    assert not pointers.move("champion", 2, by="latest")
    assert version(pointers) == 7


def test_a_pin_that_is_written_slowly_is_not_lost_among_old_records(
    pointers: Pointers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person looks, many versions are published, and what they pin would be an old number."""
    from understudy.core import files

    pointers.move("champion", 1, by="latest")
    create = files.create_exclusive

    def late(path: Path, data: bytes) -> None:
        monkeypatch.setattr(files, "create_exclusive", create)
        for number in range(2, 50):
            pointers.move("champion", number, by="latest")
        assert not path.exists()  # cleared away long ago
        create(path, data)

    monkeypatch.setattr(files, "create_exclusive", late)
    pointers.pin("champion", 7, by="rollback")
    assert version(pointers) == 7
    assert not pointers.move("champion", 60, by="latest")


def test_a_pin_whose_content_is_still_to_come_is_waited_for(
    pointers: Pointers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a shared folder without hard links a record has its name before its content."""
    pointers.move("champion", 1, by="latest")
    pointers.pin("champion", 7, by="rollback")
    newest = max(pointers.folders[1].glob("*.json"))
    content = newest.read_bytes()
    newest.write_bytes(b"")
    looked: list[float] = []

    def come(seconds: float) -> None:
        looked.append(seconds)
        if len(looked) == 3:
            newest.write_bytes(content)

    monkeypatch.setattr(time, "sleep", come)
    assert not pointers.move("champion", 2, by="latest")
    assert version(pointers) == 7 and len(looked) == 3


def test_a_record_that_stays_damaged_is_passed_over(
    pointers: Pointers, monkeypatch: pytest.MonkeyPatch
) -> None:
    from understudy.registry import pointers as module

    monkeypatch.setattr(module, "_PATIENCE_S", 0.02)
    pointers.move("champion", 1, by="latest")
    pointers.move("champion", 2, by="latest")
    max(pointers.folders[1].glob("*.json")).write_bytes(b"half")
    assert version(pointers) == 1
    assert pointers.move("champion", 3, by="latest")
    assert version(pointers) == 3


def test_what_a_person_pinned_is_known_for_ever(pointers: Pointers) -> None:
    pointers.pin("champion", 7, by="rollback")
    pointers.release("champion")
    for number in range(8, 108):
        pointers.move("champion", number, by="latest")
    assert pointers.pinned("champion") == {7} and pointers.pinned("candidate") == set()
    assert len(records(pointers)) <= 23
    assert version(pointers) == 107
