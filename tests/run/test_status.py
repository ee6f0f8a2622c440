"""What a full disk cost the journal is counted from what is on disk."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from bot.minds import episodes, journal, mind, publish

from understudy import Understudy
from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.experience.spool import Spool
from understudy.registry.run_folder import RunFolder
from understudy.run.view import ViewReader
from understudy.telemetry import events as ev
from understudy.telemetry.status import Status
from understudy.telemetry.status_reader import StatusReader


def read_status(folder: RunFolder) -> Status:
    return ViewReader(folder).read().status


def full(*args: object, **kwargs: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def play(bot: Understudy, outcome: str, *, decisions: int = 3) -> None:
    with bot.match() as match:
        for step in range(decisions):
            match.decide([step, 1.0], fallback="left")
        match.finish(outcome)


def play_on_a_full_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mind(root, mode="shadow") as bot:
        play(bot, "victory")
        with monkeypatch.context() as patch:  # room for episodes, none for the journal
            patch.setattr(files, "append", full)
            play(bot, "victory", decisions=5)
            play(bot, "tie")
        with monkeypatch.context() as patch:  # the other way round
            patch.setattr(Spool, "put", full)
            play(bot, "defeat")
        play(bot, "aborted")
        with monkeypatch.context() as patch:
            patch.setattr(files, "append", full)
            bot.close()


def test_status_counts_what_the_journal_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_on_a_full_disk(tmp_path, monkeypatch)
    assert len(episodes(tmp_path)) == 5
    assert sum(isinstance(event, ev.MatchFinished) for event in journal(tmp_path)) == 3
    folder = RunFolder.load(tmp_path, SystemClock())
    now = read_status(folder)
    assert (now.matches, now.wins, now.ties, now.defeats, now.aborted) == (5, 2, 1, 1, 1)
    assert (now.decisions, now.fallback, now.unsaved) == (17, 17, 0)
    assert now.episodes.written == 5
    # Learned from and archived, all of it without a word in the journal.
    spool = Spool(tmp_path, folder.spec, folder.clock)
    ingested = {spool.load(name).meta.id: name for name in spool.pending()[:4]}
    publish(folder, 1, ingested=ingested, counters={"ingested": 4})
    for name in ingested.values():
        spool.archive(name)
    later = read_status(folder)
    assert (later.matches, later.wins, later.decisions, later.unsaved) == (5, 2, 17, 0)
    assert (later.versions, later.version, later.files_processed) == (1, 1, 4)
    assert (later.episodes.written, later.episodes.ingested, later.episodes.archived) == (5, 4, 4)
    # The archive forgets; what the journal has is not lost by that.
    for name in ingested.values():
        files.remove(spool.archived / name)
    assert read_status(folder).matches == 3
    assert read_status(folder).episodes.written == 4


class FrozenClock(SystemClock):
    def time(self) -> float:
        return 4e9


def test_where_nothing_was_lost_no_episode_is_opened(tmp_path: Path) -> None:
    with mind(tmp_path) as bot:
        for outcome in ("victory", "defeat", "aborted"):
            play(bot, outcome)
    folder = RunFolder.load(tmp_path, FrozenClock())
    for path in (tmp_path / "buffer").iterdir():
        path.write_bytes(b"")
    assert read_status(folder) == StatusReader(tmp_path, FrozenClock()).read()
