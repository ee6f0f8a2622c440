"""Bots on a promotion log: a disk that refuses, and run folders from before there was a log."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from bot.minds import journal, mind, publish
from walk.power import UnsyncedDisk

from promotion.runs import assigned, counted, folded, resolved
from understudy import Understudy
from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder
from understudy.telemetry.events import Problem


class LogRefused(UnsyncedDisk):
    """Everything can be written but the promotion log."""

    def write(self, path: Path, data: bytes) -> None:
        if path.parent.name == "promotion":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        super().write(path, data)


def play(one: Understudy, outcome: str = "victory") -> None:
    with one.match(opponent="Terran") as match:
        assert match.decide([1.0, 2.0], fallback="left") in ("left", "right", "wait")
        match.finish(outcome)


def problems(root: Path) -> list[str]:
    return [event.message for event in journal(root) if isinstance(event, Problem)]


def folder_of(root: Path) -> RunFolder:
    return RunFolder.load(root, SystemClock())


def test_a_log_that_cannot_be_written_stops_no_game_and_is_said_once(tmp_path: Path) -> None:
    with mind(tmp_path, mode="auto") as one:
        play(one)
        with files.using(LogRefused()):
            for _ in range(3):
                play(one)
        play(one)
    assert len(assigned(folder_of(tmp_path))) == 2
    assert counted(folded(folder_of(tmp_path))) == 2
    said = [message for message in problems(tmp_path) if "promotion" in message]
    assert len(said) == 1 and "No space left" in said[0] and "rules play" in said[0]


def test_a_result_that_waits_is_written_at_the_end(tmp_path: Path) -> None:
    with mind(tmp_path, mode="auto") as one, one.match() as match:
        match.decide([1.0, 2.0], fallback="left")
        with files.using(LogRefused()):
            match.finish("victory")
            assert resolved(folder_of(tmp_path)) == []
    assert [(done.result, done.ending) for done in resolved(folder_of(tmp_path))] == [
        (1.0, "finished")
    ]


def test_a_match_that_is_left_open_holds_up_no_bot_that_opens_the_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mind(tmp_path, mode="auto") as one:
        left, late = one.match(), one.match()
        for match in (left, late):
            match.decide([1.0, 2.0], fallback="left")
    late.finish("victory")
    with mind(tmp_path, mode="auto") as again:
        play(again)
    endings = [(done.result, done.ending) for done in resolved(folder_of(tmp_path))]
    assert endings == [(1.0, "finished"), (0.0, "vanished"), (1.0, "finished")]
    assert counted(folded(folder_of(tmp_path))) == 3
    left.finish("victory")  # kept for the learner, and noted, not counted
    assert folded(folder_of(tmp_path)).records[0].total == 2.0
    assert "closed with 2 open matches" in capsys.readouterr().err


@pytest.mark.parametrize("mode", ["shadow", "auto", "learn", "play"])
def test_a_run_folder_without_a_log_opens_in_every_mode(tmp_path: Path, mode: str) -> None:
    with mind(tmp_path, mode="learn") as one:
        publish(one.folder, 1)
        play(one)
    assert not (tmp_path / "promotion").exists()
    with mind(tmp_path, mode=mode) as one:
        play(one)
    folder = folder_of(tmp_path)
    assert folder.by_evidence == (mode in ("shadow", "auto"))
    champion = folder.pointers.read("champion")
    assert champion is not None and champion.version == (0 if folder.by_evidence else 1)
    assert problems(tmp_path) == []


@pytest.mark.parametrize("mode", ["shadow", "auto"])
def test_a_log_that_cannot_be_begun_stops_no_game(tmp_path: Path, mode: str) -> None:
    with files.using(LogRefused()), mind(tmp_path, mode=mode) as one:
        play(one)
    assert len([message for message in problems(tmp_path) if "promotion" in message]) == 1
    with mind(tmp_path, mode=mode) as one:
        play(one)
    assert len(assigned(folder_of(tmp_path))) == (mode == "auto")
