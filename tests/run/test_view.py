"""One view of a run, read again and again, which costs next to nothing while nothing happens."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from bot.minds import mind

from understudy import Understudy
from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder
from understudy.run.view import ViewReader, read_view, runs_in, summarise
from understudy.screens.monitor.plain import ChangeLines
from understudy.screens.monitor.run_table import last_heard
from understudy.telemetry import events as ev
from understudy.telemetry import journal as journals
from understudy.telemetry import status_reader
from understudy.telemetry import summary as summaries


def play(bot: Understudy, outcome: str, matches: int = 1) -> None:
    for _ in range(matches):
        with bot.match() as match:
            match.decide([1.0, 2.0], fallback="left")
            match.finish(outcome)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folders of a run have not changed for a while."""
    now = time.time_ns()
    for module in (journals, status_reader):
        monkeypatch.setattr(module.time, "time_ns", lambda: now + 10_000_000_000)


@pytest.mark.usefixtures("later")
def test_a_second_reading_lists_and_opens_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mind(tmp_path) as bot:
        play(bot, "victory", 3)
    reader = ViewReader(RunFolder.load(tmp_path, SystemClock()))
    first = reader.read()
    assert first.status.matches == 3 and first.trends["win_rate"].means() == [1.0] * 3
    touched: list[str] = []
    scandir = os.scandir

    def listed(path: Any) -> Any:
        touched.append(Path(path).name)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", listed)
    opened = Path.open

    def unlike_episodes(path: Path, *args: Any, **kwargs: Any) -> Any:
        assert path.suffix not in (".jsonl", ".npz"), path
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", unlike_episodes)
    second = reader.read()
    assert second.status.matches == 3 and second.trends == first.trends
    assert not {"archive", "buffer", "journal", "quarantine"} & set(touched)


def test_what_happens_between_two_readings_is_in_the_second_alone(tmp_path: Path) -> None:
    with mind(tmp_path) as bot:
        play(bot, "victory")
        reader = ViewReader(RunFolder.load(tmp_path, SystemClock()))
        first = reader.read()
        play(bot, "defeat", 2)
        second = reader.read()
    assert (first.status.matches, second.status.matches) == (1, 3)
    assert first.trends["win_rate"].means() == [1.0], "a view does not change any more"
    assert second.trends["win_rate"].means() == [1.0, 0.0, 0.0]
    assert second.status.buffer_file_count == 3
    assert isinstance(second.recent[-1].e, ev.MatchFinished)


def test_a_view_by_a_summary_is_that_of_the_journal(tmp_path: Path) -> None:
    with mind(tmp_path) as bot:
        play(bot, "victory", 4)
        play(bot, "tie", 2)
    folder = RunFolder.load(tmp_path, Later())
    before = read_view(folder)
    summarise(folder)
    assert summaries.summary_numbers(folder.journal) == [1]
    for path in folder.journal.glob("*.jsonl"):
        path.write_bytes(b" " * path.stat().st_size)  # nobody reads them any more
    assert read_view(folder) == before


class Later(SystemClock):
    """Entries of now are old enough for a summary."""

    def time(self) -> float:
        return 4e9


def full(*args: object, **kwargs: object) -> Any:
    raise OSError(28, "No space left on device")


def test_lost_matches_are_looked_for_since_the_oldest_known_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "MOST_MATCHES", 2)
    with mind(tmp_path) as bot:
        with monkeypatch.context() as patch:
            patch.setattr(files, "append", full)
            play(bot, "victory")  # too long ago, once five others are known
        play(bot, "defeat", 4)
        folder = RunFolder.load(tmp_path, SystemClock())
        assert read_view(folder).status.matches == 5
        play(bot, "defeat")
        assert read_view(folder).status.matches == 5
        with monkeypatch.context() as patch:
            patch.setattr(files, "append", full)
            play(bot, "victory")
    now = read_view(folder).status
    assert (now.matches, now.wins) == (6, 1)


def test_a_lost_match_is_at_its_time_among_the_recent_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mind(tmp_path) as bot:
        with monkeypatch.context() as patch:
            patch.setattr(files, "append", full)
            play(bot, "victory")
        play(bot, "defeat")
        reader = ViewReader(RunFolder.load(tmp_path, SystemClock()))
        first = reader.read()
        changes = ChangeLines(first)
        play(bot, "tie")
        second = reader.read()
    for view in (first, second):
        times = [one.t for one in view.recent]
        assert times == sorted(times) and last_heard(view) == times[-1]
    won = [isinstance(one.e, ev.MatchFinished) and one.e.outcome for one in second.recent]
    assert won[-3:] == ["victory", "defeat", "tie"]
    assert len(changes.of(second)) == 1, "the match that was played since"


def test_progress_of_the_first_reading_goes_from_nothing_to_all(tmp_path: Path) -> None:
    with mind(tmp_path) as bot:
        play(bot, "victory", 3)
    shares: list[float] = []
    ViewReader(RunFolder.load(tmp_path, SystemClock()), shares.append).read()
    assert shares == sorted(shares) and shares[-1] == 1.0


def test_runs_lie_side_by_side(tmp_path: Path) -> None:
    for name, matches in (("a", 1), ("b", 2)):
        with mind(tmp_path / name) as bot:
            play(bot, "victory", matches)
    (tmp_path / "notes").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_bytes(b"{")
    found = runs_in(tmp_path)
    seen = {one.folder.name: one for one in found}
    assert list(seen) == ["b", "a", "broken"], "the one that was written to last first"
    assert [one.read().status.matches for one in found if not one.problem] == [2, 1]
    assert "run.json" in seen["broken"].problem
