"""Summaries: a journal that is opened by one tells what the whole journal tells."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core import files
from understudy.core.config import RetentionConfig
from understudy.core.seals import seal
from understudy.telemetry import events as ev
from understudy.telemetry import summary as summaries
from understudy.telemetry.journal import Entry, Journal, Reader
from understudy.telemetry.report import describe
from understudy.telemetry.status import Folders, Status
from understudy.telemetry.summary import (
    FoldedJournal,
    JournalFolds,
    JournalSummary,
    SummaryWriter,
    newest_summary,
    old_journals,
    summary_numbers,
)

from .entries import FixedClock, batch, continuous, match

LIMITS = RetentionConfig()
DAY_S = 86_400.0

EVENTS = st.sampled_from(
    [
        match("victory", id="a", fallback=3, agreed=2, tags={"race": "Zerg"}),
        match("defeat", id="b", role="rules", decision_us=(20.0, 90.0)),
        match("tie", id="c", saved=False, not_finite={"hp": 2}),
        match("aborted", id="d", fault="slow", assigned=2),
        batch(),
        batch(loss=3.5),
        continuous(),
        ev.VersionPublished(version=2, parent=1, matches=3, promoted=True, total_matches=9),
        ev.LearnerStarted(pid=7, version=1, pending=0, total_matches=4),
        ev.LearnerStopped(reason="done", pending=0, cpu_s=1.0, wall_s=2.0),
        ev.BotStarted(pid=1, mode="auto", learner="process", version=1),
        ev.MatchesTrained(steps=5, results={"self": (9, 3, 1, 2)}, returns={"self": 0.5}),
        ev.MatchesTrained(
            steps=9, results={}, matches=60, returns={"environment": 1.5}, sides={"a": 1.0}
        ),
        ev.RoleChanged(version=3, kind="refused", words="too slow: 80 ms"),
        ev.Problem(where="bot", message="odd"),
        ev.EpisodeQuarantined(name="x", reason="cut off"),
        ev.JournalsDeleted(files=2, bytes=9, until=1.0),
    ]
)


def write(folder: Path, by: str, told: list[tuple[float, ev.Event]]) -> None:
    clock = FixedClock(told[0][0] if told else 0.0)
    journal = Journal(folder, by, clock)
    for at, event in told:
        clock.now = at
        journal.write(event)


def whole(folder: Path) -> JournalSummary:
    """What all entries add up to, without any summary."""
    folds = JournalFolds()
    for entry in Reader(folder).stream():
        folds.add(entry)
    return folds.state()


def opened(folder: Path) -> JournalSummary:
    folded = FoldedJournal(folder)
    folded.follow()
    return folded.folds.state()


def status(state: JournalSummary) -> Status:
    return JournalFolds(summary=state).status.status(Folders(), 0.0)


@given(
    told=st.lists(st.tuples(st.sampled_from(["bot", "learner"]), EVENTS), max_size=40),
    cuts=st.lists(st.integers(0, 45), max_size=3),
)
def test_a_summary_and_the_entries_behind_it_are_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    told: list[tuple[str, ev.Event]],
    cuts: list[int],
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    clock = FixedClock(1_000.0)
    journals = {by: Journal(folder, by, clock) for by in ("bot", "learner")}
    for place, (by, event) in enumerate(told):
        clock.now = 1_000.0 + place
        journals[by].write(event)
        for _ in range(cuts.count(place)):
            folded = FoldedJournal(folder)
            folded.follow_old(clock)
            assert folded.folds.entries == max(place - 4, 0), "the last five are too young"
            assert folded.write()
    expected = whole(folder)
    assert opened(folder) == expected
    assert status(opened(folder)) == status(expected)


def test_a_writer_makes_a_summary_of_enough_entries_and_keeps_the_last_three(
    tmp_path: Path,
) -> None:
    clock = FixedClock(1_000.0)
    journal = Journal(tmp_path, "bot", clock)
    writer = SummaryWriter(tmp_path, clock, limits=LIMITS, every=3, most=2)
    for place in range(20):
        clock.now += 10.0
        journal.write(match(id=str(place)))
        writer.work()
    assert summary_numbers(tmp_path) == [4, 5, 6]
    found = newest_summary(tmp_path)
    assert found is not None and found.entries == 18  # the 19th and 20th: too young, or too few
    assert opened(tmp_path) == whole(tmp_path)


def test_entries_of_the_last_seconds_wait_so_that_late_ones_come_in_order(tmp_path: Path) -> None:
    clock = FixedClock(1_000.0)
    bot, learner = (Journal(tmp_path, by, clock) for by in ("bot", "learner"))
    bot.write(match(id="old"))
    clock.now = 1_008.0
    bot.write(ev.Problem(where="bot", message="later"))
    folded = FoldedJournal(tmp_path)
    clock.now = 1_010.0
    assert folded.follow_old(clock) == 1
    learner.clock = FixedClock(1_007.0)
    learner.write(ev.Problem(where="learner", message="late, and earlier"))
    clock.now = 1_030.0
    assert folded.follow_old(clock) == 2
    messages = [one.e.message for one in folded.folds.recent if isinstance(one.e, ev.Problem)]
    assert messages == ["late, and earlier", "later"]


def test_an_entry_of_the_future_holds_nothing_up(tmp_path: Path) -> None:
    clock = FixedClock(9e9)
    journal = Journal(tmp_path, "bot", clock)
    journal.write(match(id="wrong clock"))
    clock.now = 1_000.0
    journal.write(match(id="right clock"))
    assert FoldedJournal(tmp_path).follow_old(FixedClock(2_000.0)) == 2


def test_a_writer_that_folds_a_little_at_a_time_keeps_the_order_of_old_journals(
    tmp_path: Path,
) -> None:
    now = time.time()
    for days in (30, 20, 10, 0):
        begin = now - days * DAY_S - 100.0
        write(tmp_path, f"bot{days}", [(begin + n, match(id=f"{days}-{n}")) for n in range(5)])
        (path,) = tmp_path.glob(f"bot{days}-*")
        os.utime(path, (begin, begin))
    os.utime(tmp_path, (now - 100.0,) * 2)  # nothing was made lately: the folder is listed once
    folded = FoldedJournal(tmp_path)
    while folded.follow_old(FixedClock(now), most=2):
        pass
    assert folded.folds.entries == 20
    assert folded.folds.state() == whole(tmp_path)


def test_of_two_writers_one_makes_a_number_and_the_other_goes_on_from_there(
    tmp_path: Path,
) -> None:
    write(tmp_path, "bot", [(1_000.0 + place, match(id=str(place))) for place in range(6)])
    slow, fast = FoldedJournal(tmp_path), FoldedJournal(tmp_path)
    slow.follow_old(FixedClock(1_008.5))
    fast.follow_old(FixedClock(2_000.0))
    assert (slow.folds.entries, fast.folds.entries) == (4, 6)
    assert fast.write()
    assert not slow.write(), "its number is taken"
    assert slow.folds.entries == 6 and slow.follow_old(FixedClock(2_000.0)) == 0
    write(tmp_path, "learner", [(1_100.0, batch())])
    assert slow.follow_old(FixedClock(2_000.0)) == 1 and slow.write()
    assert summary_numbers(tmp_path) == [1, 2]
    assert opened(tmp_path) == whole(tmp_path)


_KILLED = """
    import os, signal, sys
    from pathlib import Path
    from understudy.core import files
    from understudy.core.clock import SystemClock
    from understudy.core.config import RetentionConfig
    from understudy.telemetry.summary import SummaryWriter

    class Killed(files.Disk):
        def claim(self, source, target):
            if sys.argv[2] == "after":
                super().claim(source, target)
            os.kill(os.getpid(), signal.SIGKILL)

    with files.using(Killed()):
        SummaryWriter(Path(sys.argv[1]), SystemClock(), limits=RetentionConfig(), every=1).work()
"""


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
@pytest.mark.parametrize(("when", "left"), [("before", []), ("after", [1])])
def test_a_writer_that_is_killed_at_its_summary_costs_nothing(
    tmp_path: Path, when: str, left: list[int]
) -> None:
    write(tmp_path, "bot", [(1_000.0 + place, match(id=str(place))) for place in range(6)])
    expected = whole(tmp_path)
    command = [sys.executable, "-c", textwrap.dedent(_KILLED), str(tmp_path), when]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert summary_numbers(tmp_path) == left
    assert opened(tmp_path) == expected
    folded = FoldedJournal(tmp_path)
    folded.follow()
    assert folded.write() and opened(tmp_path) == expected


def test_a_damaged_summary_is_passed_over_for_the_one_before(tmp_path: Path) -> None:
    write(tmp_path, "bot", [(1_000.0, match(id="a")), (1_100.0, match(id="b"))])
    for now in (1_102.0, 2_000.0):
        folded = FoldedJournal(tmp_path)
        folded.follow_old(FixedClock(now))
        assert folded.write()
    path = tmp_path / summaries.SUMMARIES / "000002.json"
    path.write_bytes(path.read_bytes()[:-9])
    found = newest_summary(tmp_path)
    assert found is not None and found.entries == 1
    assert opened(tmp_path) == whole(tmp_path)
    folded = FoldedJournal(tmp_path)
    folded.follow()
    assert folded.write() and summary_numbers(tmp_path) == [1, 2, 3]


def test_a_summary_of_other_folds_counts_only_where_journals_are_missing(tmp_path: Path) -> None:
    write(tmp_path, "bot", [(1_000.0, match(id="a"))])
    folded = FoldedJournal(tmp_path)
    folded.follow()
    folded.folds.add(Entry(t=1.0, by="bot", e=match(id="counted otherwise")))
    folded.write()
    path = tmp_path / summaries.SUMMARIES / "000001.json"
    body = path.read_bytes().partition(b"\n")[2]
    for partial, matches in ((False, 1), (True, 2)):
        other = msgspec.json.decode(body) | {"folds": summaries.FOLDS + 1, "partial": partial}
        path.write_bytes(seal(msgspec.json.encode(other)))
        assert status(opened(tmp_path)).matches == matches


def partial_summary(folder: Path, **changes: object) -> Path:
    """One of a newer program, of two matches whose journal was deleted."""
    write(folder, "bot", [(1_000.0, match(id="a")), (1_001.0, match(id="b"))])
    folded = FoldedJournal(folder)
    folded.follow()
    folded.partial = True
    assert folded.write()
    next(folder.glob("*.jsonl")).unlink()
    path = folder / summaries.SUMMARIES / "000001.json"
    content = msgspec.json.decode(path.read_bytes().partition(b"\n")[2]) | changes
    path.write_bytes(seal(msgspec.json.encode(content)))
    return path


def test_entries_of_a_newer_program_cost_no_more_than_themselves(tmp_path: Path) -> None:
    known = Entry(t=1_001.0, by="bot", e=match(id="b"))
    unknown = {"t": 1_000.0, "by": "bot", "e": {"event": "OfAnotherYear", "x": 1}}
    partial_summary(tmp_path, recent=[unknown, msgspec.to_builtins(known)], refused=[unknown])
    found = newest_summary(tmp_path)
    assert found is not None
    assert (found.recent, found.refused) == ([known], [])
    assert found.partial and status(opened(tmp_path)).matches == 2


def test_what_only_a_newer_program_can_read_is_neither_replaced_nor_added_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = partial_summary(tmp_path, status="told otherwise")
    before = path.read_bytes()
    now = time.time()
    clock = FixedClock(now)
    write(tmp_path, "bot", [(now - 500 * DAY_S, match(id="c"))])
    (old,) = tmp_path.glob("bot-*")
    os.utime(old, (now - 500 * DAY_S,) * 2)
    journal = Journal(tmp_path, "learner", clock)
    writer = SummaryWriter(tmp_path, clock, limits=LIMITS, journal=journal, every=1)
    for _ in range(2):
        writer.work()
    assert summary_numbers(tmp_path) == [1] and path.read_bytes() == before
    assert old.exists()
    assert capsys.readouterr().err.count("summary 1 is of a newer Understudy") == 1
    assert status(opened(tmp_path)).matches == 1, "what can be read is shown"


def test_old_journals_go_once_a_summary_has_them(tmp_path: Path) -> None:
    now = time.time()
    clock = FixedClock(now)
    write(tmp_path, "bot", [(now - 500 * DAY_S, match(id="a")), (now - 450 * DAY_S, match(id="b"))])
    (old,) = tmp_path.glob("bot-*")
    write(tmp_path, "bot", [(now - 300 * DAY_S, match(id="c"))])
    (young,) = set(tmp_path.glob("bot-*")) - {old}
    os.utime(old, (now - 450 * DAY_S,) * 2)
    os.utime(young, (now - 300 * DAY_S,) * 2)
    size = old.stat().st_size
    journal = Journal(tmp_path, "learner", clock)
    assert old_journals(tmp_path, {}, limits=LIMITS, now=now) == [], "no summary has them"
    SummaryWriter(tmp_path, clock, limits=LIMITS, journal=journal, every=3).work()
    assert not old.exists() and young.exists()
    seen = status(opened(tmp_path))
    assert (seen.matches, seen.journals_deleted, seen.journal_bytes_deleted) == (3, 1, size)
    assert seen.journals_deleted_until == pytest.approx(now - 450 * DAY_S, abs=1.0)
    assert "1 old journal deleted" in describe(seen)
    found = newest_summary(tmp_path)
    assert found is not None and found.partial


class Locked(files.Disk):
    """Another process has a file open, as on Windows."""

    def __init__(self, name: str) -> None:
        self.name = name

    def remove(self, path: Path) -> None:
        if path.name == self.name:
            raise PermissionError(errno.EACCES, "in use", str(path))
        super().remove(path)


def test_a_journal_that_cannot_be_deleted_keeps_no_other_one_and_is_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = time.time()
    clock = FixedClock(now)
    for by, days in (("a", 500), ("b", 490), ("c", 480)):
        write(tmp_path, by, [(now - days * DAY_S, match(id=by))])
        (path,) = tmp_path.glob(f"{by}-*")
        os.utime(path, (now - days * DAY_S,) * 2)
    (locked,) = tmp_path.glob("b-*")
    journal = Journal(tmp_path, "learner", clock)
    writer = SummaryWriter(tmp_path, clock, limits=LIMITS, journal=journal, every=1)
    with files.using(Locked(locked.name)):
        for message in ("first", "second"):
            writer.work()
            assert [path.name[0] for path in sorted(tmp_path.glob("*.jsonl"))] == ["b", "l"]
            assert status(opened(tmp_path)).journals_deleted == 2
            journal.write(ev.Problem(where="learner", message=message))
            clock.now += 10.0
    assert capsys.readouterr().err.count("cannot delete an old journal") == 1
    writer.work()
    assert not locked.exists() and status(opened(tmp_path)).journals_deleted == 3


def test_the_oldest_journals_go_first_and_none_of_the_last_day(tmp_path: Path) -> None:
    now, folded = time.time(), {}
    for place, days in enumerate((9, 5, 0.5)):
        path = tmp_path / f"bot-{place:013d}-1.jsonl"
        path.write_bytes(b"x" * 99 + b"\n")
        os.utime(path, (now - days * DAY_S,) * 2)
        folded[path.name] = 100
    for limit, gone in ((300, 0), (299, 1), (1, 2)):
        limits = RetentionConfig(journal_bytes=limit)
        doomed = old_journals(tmp_path, folded, limits=limits, now=now)
        assert [path.name[:17] for path, _, _ in doomed] == [
            f"bot-{place:013d}" for place in range(gone)
        ]
    folded["bot-0000000000000-1.jsonl"] = 99
    doomed = old_journals(tmp_path, folded, limits=RetentionConfig(journal_bytes=150), now=now)
    assert [path.name[16] for path, _, _ in doomed] == ["1"], "the first has an entry more"


@pytest.mark.parametrize("rest", [b'{"t": 1', b""])
def test_a_line_that_a_crash_cut_off_keeps_no_old_journal(tmp_path: Path, rest: bytes) -> None:
    now = time.time()
    write(tmp_path, "bot", [(now - 500 * DAY_S, match(id="a"))])
    (path,) = tmp_path.glob("bot-*")
    whole_lines = path.stat().st_size
    with path.open("ab") as file:
        file.write(rest)
    os.utime(path, (now - 500 * DAY_S,) * 2)
    assert old_journals(tmp_path, {}, limits=LIMITS, now=now) == [], "its entry is in no summary"
    journal = Journal(tmp_path, "learner", FixedClock(now))
    SummaryWriter(tmp_path, FixedClock(now), limits=LIMITS, journal=journal, every=1).work()
    assert not path.exists()
    assert status(opened(tmp_path)).journal_bytes_deleted == whole_lines + len(rest)


def test_a_writer_removes_unfinished_summaries_of_ended_processes(tmp_path: Path) -> None:
    left = tmp_path / summaries.SUMMARIES / f"{files.TEMPORARY}1-0-0"
    files.make_folders(left.parent)
    left.write_bytes(b"half")
    os.utime(left, (time.time() - DAY_S,) * 2)
    SummaryWriter(tmp_path, FixedClock(), limits=LIMITS).work()
    assert not left.exists()


def test_a_journal_that_is_written_to_after_its_deletion_is_read_whole(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "bot", FixedClock(1_000.0))
    journal.write(match(id="a"))
    folded = FoldedJournal(tmp_path)
    assert folded.follow() == 1
    (path,) = tmp_path.glob("*.jsonl")
    path.unlink()
    for key in ("b", "c", "d"):  # more than was read of the old one
        journal.write(match(id=key))
    assert [one.name > path.name for one in tmp_path.glob("*.jsonl")] == [True]
    assert folded.follow() == 3
    assert status(folded.folds.state()).matches == 4


def test_a_journal_that_became_shorter_is_read_from_its_beginning(tmp_path: Path) -> None:
    """A process of an older release writes under the same name after the deletion."""
    write(tmp_path, "bot", [(1_000.0, match(id="a")), (1_000.0, match(id="b"))])
    folded = FoldedJournal(tmp_path)
    assert folded.follow() == 2
    (path,) = tmp_path.glob("*.jsonl")
    path.unlink()
    write(tmp_path, "bot", [(1_000.0, match(id="c"))])
    assert path.exists() and folded.follow() == 1


def test_only_the_newest_ids_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "MOST_MATCHES", 3)
    folds = JournalFolds()
    for place in range(7):
        folds.add(Entry(t=float(place), by="bot", e=match(id=str(place))))
        assert len(folds.matches) <= 6
    assert list(folds.matches) == ["4", "5", "6"] and folds.forgotten == 3.0
