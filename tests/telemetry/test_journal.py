"""Writing never raises, reading takes what is new."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from understudy.core import files
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry, Journal, Reader
from understudy.telemetry.report_parts import behaviour_kl

from .entries import FixedClock, batch, continuous


def problem(message: str) -> ev.Problem:
    return ev.Problem(where="bot", message=message)


def full(*args: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_said_once_and_never_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = Journal(tmp_path, "bot", FixedClock())
    monkeypatch.setattr(files, "append", full)
    journal.write(problem("a"))
    journal.write(problem("b"))
    assert capsys.readouterr().err.count("No space left") == 1
    monkeypatch.setattr(sys.stderr, "write", full)
    Journal(tmp_path, "other", FixedClock()).write(problem("c"))


def test_who_follows_hears_of_it_whether_or_not_it_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[Entry] = []
    journal = Journal(tmp_path, "bot", FixedClock(), also=full)
    journal.follow(heard.append)
    journal.write(problem("a"))
    monkeypatch.setattr(files, "append", full)
    journal.write(problem("b"))
    assert [entry.e for entry in heard] == [problem("a"), problem("b")]
    assert capsys.readouterr().err.count("No space left") == 1


def test_any_text_can_be_told(tmp_path: Path) -> None:
    """A file name that is not UTF-8 comes with lone surrogates in it."""
    journal = Journal(tmp_path, "bot", FixedClock())
    journal.write(problem('\udc80 and "\ud800" é'))
    journal.write(problem("next"))
    told = [entry.e for entry in Reader(tmp_path).new()]
    assert told == [problem('\\udc80 and "\\ud800" é'), problem("next")]


def test_a_reader_opens_only_what_has_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (Journal(tmp_path, by, FixedClock()) for by in ("one", "other"))
    one.write(problem("a"))
    other.write(problem("b"))
    reader = Reader(tmp_path)
    assert len(reader.new()) == 2
    opened: list[str] = []
    really = Path.open

    def noted(self: Path, *args: Any, **kwargs: Any) -> Any:
        opened.append(self.name.partition("-")[0])
        return really(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", noted)
    assert reader.new() == [] and opened == []
    other.write(problem("c"))
    assert [entry.e for entry in reader.new()] == [problem("c")]
    assert opened == ["other"]


def test_what_could_not_be_read_is_read_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many open files, for a moment: the journal that was read already must not be lost."""
    for name in ("a", "b"):
        Journal(tmp_path, name, FixedClock()).write(problem(name))
    reader, opened = Reader(tmp_path), Path.open
    last = max(tmp_path.glob("*.jsonl"))

    def scarce(path: Path, *args: Any) -> Any:
        if path == last:
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(path, *args)

    monkeypatch.setattr(Path, "open", scarce)
    with pytest.raises(OSError, match="Too many"):
        reader.new()
    monkeypatch.setattr(Path, "open", opened)
    assert [entry.e for entry in reader.new()] == [problem("a"), problem("b")]


@pytest.mark.parametrize("told", [batch(), continuous()], ids=["matches", "items"])
def test_batches_of_older_journals_are_still_read(
    tmp_path: Path, told: ev.BatchTrained | ev.ContinuousTrained
) -> None:
    """They say `first_ratio`, which is not read any more, and not what took its place."""
    Journal(tmp_path, "learner", FixedClock()).write(told)
    (path,) = tmp_path.glob("*.jsonl")
    entry = json.loads(path.read_text(encoding="utf-8"))
    del entry["e"]["behaviour_kl"], entry["e"]["behaviour_kl_max"]
    entry["e"]["first_ratio"] = 1.0
    path.write_text(json.dumps(entry) + "\n", encoding="utf-8")
    (read,) = (one.e for one in Reader(tmp_path).new())
    assert read == replace(told, behaviour_kl=None, behaviour_kl_max=None)
    assert isinstance(read, ev.BatchTrained | ev.ContinuousTrained) and not behaviour_kl(read)


def test_journals_are_read_in_the_order_of_time_in_small_pieces(tmp_path: Path) -> None:
    clock = FixedClock(1_000.0)
    journals = [Journal(tmp_path, by, clock) for by in ("bot", "learner", "play")]
    for place in range(90):
        clock.now = 1_000.0 + place // 2  # two entries have the same time
        journals[place * 7 % 3].write(problem(f"{place:03d}" + "x" * (place % 5) * 40))
    told = list(Reader(tmp_path, chunk=64).stream())
    assert len(told) == 90
    lines = [line for one in sorted(tmp_path.iterdir()) for line in one.read_bytes().splitlines()]
    expected = [msgspec.json.decode(line, type=Entry) for line in lines]
    assert told == sorted(expected, key=lambda entry: entry.t)


def test_a_clock_that_was_set_back_keeps_the_order_of_a_journal(tmp_path: Path) -> None:
    for by, times in (("bot", (10.0, 5.0, 12.0)), ("learner", (7.0, 11.0))):
        clock = FixedClock(1.0)
        journal = Journal(tmp_path, by, clock)
        for clock.now in times:
            journal.write(problem(by))
    for chunk in (64, 2**18):
        told = [entry.t for entry in Reader(tmp_path, chunk=chunk).stream()]
        assert told == [7.0, 10.0, 5.0, 11.0, 12.0]


def test_what_was_taken_in_batches_is_not_read_again(tmp_path: Path) -> None:
    for by in ("one", "other"):
        journal = Journal(tmp_path, by, FixedClock())
        for place in range(4):
            journal.write(problem(f"{by} {place}"))
    reader, taken = Reader(tmp_path, chunk=200), list[Entry]()
    for count in (1, 2, 4, 9):
        batches = list(reader.batches(most=count))
        assert all(batches) and sum(map(len, batches)) <= count
        taken += [entry for batch in batches for entry in batch]
    assert taken == Reader(tmp_path).new() and len(taken) == 8
    again = Reader(tmp_path, reader.offsets)
    assert again.new() == []


def test_a_line_that_a_crash_cut_off_is_passed_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "bot", FixedClock())
    journal.write(problem("a"))
    (path,) = tmp_path.glob("*.jsonl")
    with path.open("ab") as file:
        file.write(b'{"t": 3, "by')
    reader = Reader(tmp_path)
    assert len(reader.new()) == 1
    journal.write(problem("lost with it"))
    journal.write(problem("b"))
    assert [entry.e for entry in reader.new()] == [problem("b")]
    shares: list[float] = []
    assert len(list(Reader(tmp_path).stream(progress=shares.append))) == 2
    assert shares[-1] == 1.0


def test_a_folder_without_journals_has_no_entries(tmp_path: Path) -> None:
    assert Reader(tmp_path / "none").new() == []
