"""A full disk: the match goes on, the error is shown, nothing older is lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from walk.toys import (
    SPEC,
    SetClock,
    check_ingested_once,
    check_registry,
    episode,
    learner,
    metas,
    open_run,
    settings,
    spool_of,
    work_to_the_end,
)

from understudy import Understudy
from understudy.core import files
from understudy.core.errors import UnderstudyError
from understudy.core.files import Disk


class FullDisk(Disk):
    """Takes so many more writes, and then half of each."""

    def __init__(self, room: int = 0) -> None:
        self.room = room

    def write(self, path: Path, data: bytes) -> None:
        self.room -= 1
        if self.room < 0:
            super().write(path, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        super().write(path, data)

    def append(self, path: Path, data: bytes) -> None:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        super().append(path, data)


def open_bot(root: Path) -> Understudy:
    return Understudy.open(
        root, features=SPEC.features, actions=SPEC.actions, network=SPEC.network, learner="off"
    )


def play(mind: Understudy, name: str) -> bool:
    with mind.match(name=name) as match:
        for _ in range(3):
            assert match.decide((0.0, 1.0), fallback="left") == "left"
            match.reward(1.0)
        return match.finish("victory")


def buffered(root: Path) -> list[str]:
    return [meta.tags["name"] for meta in metas(root / "buffer")]


def test_matches_go_on_and_are_saved_when_there_is_room_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with open_bot(tmp_path) as mind:
        assert play(mind, "before")
        with files.using(FullDisk()):
            assert not play(mind, "first")
            assert not play(mind, "second")
        said = capfd.readouterr().err
        assert "could not be saved and is kept in memory (2 so far)" in said
        assert "No space left" in said
        assert buffered(tmp_path) == ["before"]
        assert play(mind, "after")
    assert buffered(tmp_path) == ["before", "first", "second", "after"]
    assert not list((tmp_path / "buffer").glob(".tmp-*"))


def test_closing_saves_the_rest(tmp_path: Path) -> None:
    with open_bot(tmp_path) as mind, files.using(FullDisk()):
        assert not play(mind, "late")
    assert buffered(tmp_path) == ["late"]


def test_closing_on_a_full_disk_says_what_is_lost(tmp_path: Path) -> None:
    mind = open_bot(tmp_path)
    with files.using(FullDisk()):
        play(mind, "lost")
        with pytest.raises(UnderstudyError, match="1 matches could not be saved"):
            mind.close()


def test_a_full_disk_is_found_out_before_the_first_match(tmp_path: Path) -> None:
    with files.using(FullDisk()), pytest.raises(UnderstudyError, match="No space left"):
        open_bot(tmp_path)


def test_a_learner_that_runs_out_of_room_loses_nothing_wherever_it_happens(tmp_path: Path) -> None:
    room = 0
    while True:
        root = tmp_path / str(room)
        folder = open_run(root, settings(learner__batch_matches=2), SetClock())
        for name in "abc":
            spool_of(folder).put(episode(name))
        enough = False
        with files.using(FullDisk(room)):
            try:
                work_to_the_end(learner(folder))
                enough = True
            except OSError as error:
                assert error.errno == errno.ENOSPC
        work_to_the_end(learner(folder))
        check_registry(folder)
        check_ingested_once(folder, set("abc"))
        assert list(metas(root / "quarantine")) == []
        if enough:
            break
        room += 1
    assert room > 10
