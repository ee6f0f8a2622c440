"""A digest shows what the whole history shows, in whatever pieces the log is read."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from understudy.core import files
from understudy.core.seals import seal
from understudy.gates.promotion.records import Record
from understudy.promotion import digest as digests
from understudy.promotion.digest import DigestFold, DigestReader, DigestWriter, decoded_fold
from understudy.promotion.history import history
from understudy.promotion.log import BLOCK, PromotionLog
from understudy.promotion.report import promotion_status

from .scripted import ScriptedLog
from .test_report import SCRIPTS, promoted, simulated


def practised(log: ScriptedLog) -> None:
    log.practice = 3
    log.play(60, {0: 0.5, 3: 0.6})
    log.practice = 0
    log.assign()  # its result never comes
    promoted(log)


@pytest.mark.parametrize("script", [*SCRIPTS, practised])
@pytest.mark.parametrize("pieces", [1, 7, 1000])
def test_a_digest_shows_what_the_history_shows(
    script: Callable[[ScriptedLog], None], pieces: int
) -> None:
    log = ScriptedLog(seed=2)
    script(log)
    fold = DigestFold()
    for begin in range(0, len(log.records), pieces):
        fold.add(log.records[begin : begin + pieces])
        if begin % 3 == 0:
            again = decoded_fold(fold.encoded())
            assert again is not None
            fold = again
    expected = promotion_status(history(log.records), pinned=None)
    assert promotion_status(fold.digest(), pinned=None) == expected


def write_log(folder: Path, log: ScriptedLog, *, blocks: int) -> None:
    """As bots do, with that many blocks at the beginning."""
    files.make_folders(folder)
    for number, record in log.records:
        data = seal(msgspec.json.encode(record))
        path = folder / f"{number:08d}.json"
        if number > blocks * BLOCK:
            path.write_bytes(data)
            continue
        first = number - (number - 1) % BLOCK
        with (folder / f"{first:08d}-{first + BLOCK - 1:08d}.jsonl").open("ab") as file:
            file.write(data + b"\n")


def long_log(records: int) -> ScriptedLog:
    """A log of so many records, made of equal matches of a short script."""
    log = ScriptedLog(seed=2)
    simulated(log)
    log.play(5, {0: 0.5, 7: 0.5})
    pattern: list[Record] = [record for _, record in log.records[-2:]]
    while len(log.records) < records:
        number = len(log.records) + 1
        assigned, resolved = pattern
        log.records.append((number, assigned))
        log.records.append((number + 1, msgspec.structs.replace(resolved, order=number)))
    return log


def test_a_log_opens_by_its_summary_and_reads_only_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "_BLOCKS", 2)
    log = long_log(3 * BLOCK + 20)
    write_log(tmp_path, log, blocks=3)
    expected = promotion_status(history(log.records), pinned=None)
    reader = DigestReader(tmp_path)
    assert not reader.summarise(most_blocks=1), "too few blocks are in no summary"
    assert reader.summarise(most_blocks=2)
    assert [path.stem for path in (tmp_path / digests.SUMMARIES).iterdir()] == ["00003000"]
    assert not reader.summarise()
    for begin in (1, 1001):  # no reader needs what a summary has
        (tmp_path / f"{begin:08d}-{begin + BLOCK - 1:08d}.jsonl").unlink()
    fresh = DigestReader(tmp_path)
    assert promotion_status(fresh.read(), pinned=None) == expected
    PromotionLog(tmp_path, after=len(log.records)).create(log.records[-2][1])
    assert fresh.read().matches == expected.matches + 1


@pytest.mark.parametrize("damaged", [False, True])
def test_another_process_reads_a_long_log_to_the_same_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    log = long_log(2 * BLOCK + 20)
    write_log(tmp_path, log, blocks=2)
    if damaged:
        path = tmp_path / "00000001-00001000.jsonl"
        path.write_bytes(path.read_bytes().replace(b"0", b"1", 1))
    problems: list[str] = []
    alone = DigestReader(tmp_path, problem=problems.append).read()
    monkeypatch.setattr(digests, "_MANY", BLOCK)
    reader = DigestReader(tmp_path, problem=problems.append)
    reader.begin()
    if not damaged:  # nothing is left of the blocks for this process to read
        reader._beside.wait()  # type: ignore[union-attr]
        for path in tmp_path.glob("*.jsonl"):
            path.unlink()
    assert promotion_status(reader.read(), pinned=None) == promotion_status(alone, pinned=None)
    assert len(problems) == 2 * damaged, "a person is told by each reading"


def test_a_damaged_summary_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_BLOCKS", 1)
    log = long_log(BLOCK + 20)
    write_log(tmp_path, log, blocks=1)
    assert DigestReader(tmp_path).summarise()
    (path,) = (tmp_path / digests.SUMMARIES).iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    expected = promotion_status(history(log.records), pinned=None)
    assert promotion_status(DigestReader(tmp_path).read(), pinned=None) == expected


class FullDisk(files.Disk):
    def write(self, path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_said_once_and_the_summary_comes_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from telemetry.entries import FixedClock

    monkeypatch.setattr(digests, "_BLOCKS", 1)
    write_log(tmp_path, long_log(BLOCK + 20), blocks=1)
    clock = FixedClock()
    writer = DigestWriter(tmp_path, clock)
    with files.using(FullDisk()):
        for _ in range(2):
            writer.work()
            clock.now += 60.0
    assert capsys.readouterr().err.count("No space left") == 1
    writer.work()
    assert [path.stem for path in (tmp_path / digests.SUMMARIES).iterdir()] == ["00001000"]


def test_a_record_of_a_newer_program_ends_summaries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from telemetry.entries import FixedClock

    monkeypatch.setattr(digests, "_BLOCKS", 1)
    write_log(tmp_path, long_log(BLOCK), blocks=1)
    (block,) = tmp_path.glob("*.jsonl")
    known = block.read_bytes()
    lines = known.split(b"\n")
    lines[:2] = seal(b'{"type": "OfAnotherYear"}').split(b"\n")
    block.write_bytes(b"\n".join(lines))
    clock = FixedClock()
    writer = DigestWriter(tmp_path, clock)
    writer.work()
    assert "update this one" in capsys.readouterr().err
    block.write_bytes(known)
    clock.now += 60.0
    writer.work()
    assert not (tmp_path / digests.SUMMARIES).exists()


def test_a_writer_removes_unfinished_summaries_of_ended_processes(tmp_path: Path) -> None:
    from telemetry.entries import FixedClock

    left = tmp_path / digests.SUMMARIES / f"{files.TEMPORARY}1-0-0"
    files.make_folders(left.parent)
    left.write_bytes(b"half")
    os.utime(left, (0.0, 0.0))
    DigestWriter(tmp_path, FixedClock()).work()
    assert not left.exists()


def test_a_run_without_promotion_has_nothing_to_summarise(tmp_path: Path) -> None:
    from telemetry.entries import FixedClock

    DigestWriter(tmp_path / "promotion", FixedClock()).work()
    assert list(tmp_path.iterdir()) == []
