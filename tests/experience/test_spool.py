from __future__ import annotations

import io
import os
import pickle
import struct
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from walk.toys import (
    SPEC,
    START,
    SetClock,
    check_ingested_once,
    counts,
    episode,
    head_tally,
    learner,
    open_run,
    problems,
    reasons,
    settings,
    spool_of,
    work_to_the_end,
)

from understudy.core.config import RetentionConfig, SpoolConfig
from understudy.core.errors import FileFormatError
from understudy.experience import episode as episodes
from understudy.experience.spool import Spool

from .test_episode import BAD_FILES

EVIL = (
    "../../etc/passwd",
    "a/b",
    "C:\\x",
    "nul",
    "\x1b[2J\x00\n",
    "ﷺ" * 60,
    ".tmp-1",
    "x.npz",
    "-rf",
)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def spool(tmp_path: Path, clock: SetClock) -> Spool:
    return Spool(tmp_path, SPEC, clock)


def everything(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_what_is_put_can_be_loaded_and_moves_on(spool: Spool) -> None:
    name = spool.put(episode("a"))
    assert spool.pending() == [name]
    assert spool.load(name).meta.id == "a"
    spool.archive(name)
    assert counts(spool.buffer.parent) == (0, 1, 0)
    assert spool.load_archived(name).meta.id == "a"
    spool.archive(name)  # again, as after a crash
    assert counts(spool.buffer.parent) == (0, 1, 0)


def test_what_is_half_written_is_not_pending(spool: Spool) -> None:
    (spool.buffer / ".tmp-1-2-3").write_bytes(b"half")
    (spool.buffer / ".tmp-1-2-3.npz").write_bytes(b"half")
    (spool.buffer / "notes.txt").write_bytes(b"hello")
    (spool.buffer / "folder.npz").mkdir()
    if os.name == "posix":
        (spool.buffer / "loop.npz").symlink_to("loop.npz")
    assert spool.pending() == []
    assert spool.adopt() == {}


@pytest.mark.parametrize("evil", EVIL)
def test_what_an_episode_says_never_becomes_a_name(tmp_path: Path, evil: str) -> None:
    root = tmp_path / "run"
    spool = Spool(root, SPEC, SetClock())
    plain = episode("a")
    meta = msgspec.structs.replace(plain.meta, id=evil, tags={evil: evil}, imported_from=evil)
    name = spool.put(replace(plain, meta=meta))
    assert name.removesuffix(".npz").replace("-", "").isalnum() and name.isascii()
    assert everything(tmp_path) == {f"run/buffer/{name}"}
    assert spool.load(name).meta == meta
    spool.quarantine(name, evil)
    assert everything(tmp_path) == {
        f"run/quarantine/{name}",
        f"run/quarantine/{name}.reason.json",
    }


def test_the_oldest_comes_first(spool: Spool, clock: SetClock) -> None:
    for name in "abc":
        spool.put(episode(name))
        clock.advance(0.001)
    assert [spool.load(name).meta.id for name in spool.pending()] == ["a", "b", "c"]


def test_a_clock_set_back_changes_the_order_and_nothing_else(tmp_path: Path) -> None:
    clock = SetClock()
    folder = open_run(tmp_path, settings(learner__batch_matches=1), clock)
    spool = spool_of(folder)
    spool.put(episode("before", finished_at=clock.time()))
    clock.now -= 86400.0
    spool.put(episode("after", finished_at=clock.time()))
    assert [spool.load(name).meta.id for name in spool.pending()] == ["after", "before"]
    work_to_the_end(learner(folder))
    clock.now = 0.0
    spool.put(episode("at the beginning of time", finished_at=clock.time()))
    work_to_the_end(learner(folder))
    check_ingested_once(folder, {"before", "after", "at the beginning of time"})
    assert spool.prune(SpoolConfig(archive_age_s=1.0), keep=()) == 0


def test_old_files_do_not_starve_new_ones(tmp_path: Path) -> None:
    clock = SetClock()
    folder = open_run(tmp_path, settings(), clock)
    spool = spool_of(folder)
    for number in range(10):
        spool.put(episode(f"old {number}", finished_at=clock.time() - 3601.0))
    clock.advance(1.0)
    spool.put(episode("new", finished_at=clock.time()))
    work_to_the_end(learner(folder))
    assert head_tally(folder).ingested == {"new": 1}
    assert counts(tmp_path) == (0, 11, 0)


def bomb() -> bytes:
    packed = io.BytesIO()
    np.savez_compressed(packed, meta=np.zeros(65 * 2**20, np.uint8))
    return packed.getvalue()


def unreadable() -> dict[str, bytes]:
    """Files that are no episodes at all, by what is wrong with them."""
    whole = episodes.encode(episode("damaged"))
    middle = whole.index(episode("damaged").observations.tobytes()) + 5
    objects = io.BytesIO()
    np.savez(objects, meta=np.array([{"id": "a"}], dtype=object))
    size = struct.pack("<I", zipfile.ZipFile(io.BytesIO(whole)).infolist()[1].file_size)
    return {
        "empty": b"",
        "truncated": whole[:-100],
        "half": whole[:middle],
        "flipped": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        "pickled": pickle.dumps({"states": [1.0]}),
        "objects": objects.getvalue(),
        "bomb": bomb(),
        "lying size": whole.replace(size, struct.pack("<I", 0xFFFFFFF0)),
        "text": b"Traceback (most recent call last):",
    }


def test_bad_files_go_to_quarantine_and_their_neighbours_are_learned_from(tmp_path: Path) -> None:
    folder = open_run(tmp_path, settings(learner__batch_matches=4), SetClock())
    spool = spool_of(folder)
    bad = {**unreadable(), **BAD_FILES}
    for number, data in enumerate(bad.values()):
        spool.put(episode(f"good {number}"))
        (spool.buffer / f"{int(START * 1e9):020d}-{number:04x}.npz").write_bytes(data)
    (spool.buffer / "folder.npz").mkdir()
    work_to_the_end(learner(folder))
    (spool.buffer / "folder.npz").rmdir()
    check_ingested_once(folder, {f"good {number}" for number in range(len(bad))})
    why = reasons(folder)
    for number, what in enumerate(bad):
        assert why.get(f"{int(START * 1e9):020d}-{number:04x}.npz"), what
    assert len(why) == len(bad)


ODD = (b"bad\xff.npz", b"\x1b[2J\n.npz", "größe.npz".encode(), b"n" * 251 + b".npz", b" .npz")


@pytest.mark.skipif(sys.platform != "linux", reason="others refuse such names themselves")
@pytest.mark.parametrize("odd", ODD)
def test_a_file_with_an_odd_name_is_learned_from_or_set_aside_under_a_plain_one(
    tmp_path: Path, odd: bytes
) -> None:
    folder = open_run(tmp_path, settings(), SetClock())
    path = os.fsdecode(bytes(tmp_path / "buffer") + b"/" + odd)
    spool = spool_of(folder)
    spool.put(episode("neighbour"))
    Path(path).write_bytes(episodes.encode(episode("good")))
    work_to_the_end(learner(folder))
    Path(path).write_bytes(b"rotten")
    work_to_the_end(learner(folder))
    check_ingested_once(folder, {"neighbour", "good"})
    ((name, reason),) = reasons(folder).items()
    assert name.isascii() and len(name) == 20 + 1 + 16 + 4
    assert "not a readable .npz file" in reason and ascii(os.fsdecode(odd)) in reason
    assert len(problems(folder)) == 2 and ascii(os.fsdecode(odd)) in problems(folder)[0]
    assert counts(tmp_path) == (0, 2, 1)


def test_a_plain_name_that_a_person_gave_is_kept(tmp_path: Path) -> None:
    folder = open_run(tmp_path, settings(), SetClock())
    (spool_of(folder).buffer / "my_copy-2.npz").write_bytes(episodes.encode(episode("good")))
    work_to_the_end(learner(folder))
    check_ingested_once(folder, {"good"})
    assert (tmp_path / "archive" / "my_copy-2.npz").exists()


def sicken(monkeypatch: pytest.MonkeyPatch, sick: str, times: int) -> list[str]:
    """Reading a certain file fails so many times; returns what was read, as it grows."""
    load, read = Spool.load, list[str]()

    def fail(self: Spool, name: str) -> episodes.Episode:
        read.append(name)
        if name == sick and read.count(sick) <= times:
            raise OSError(5, "Input/output error")
        return load(self, name)

    monkeypatch.setattr(Spool, "load", fail)
    return read


def test_a_file_that_cannot_be_read_does_not_stop_the_others_and_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock()
    folder = open_run(tmp_path, settings(learner__batch_matches=1), clock)
    spool = spool_of(folder)
    sick = spool.put(episode("sick", finished_at=START))
    clock.advance(1.0)
    spool.put(episode("well", finished_at=START))
    read = sicken(monkeypatch, sick, times=4)
    mind = learner(folder)
    work_to_the_end(mind)
    assert head_tally(folder).ingested == {"well": 1}
    assert read.count(sick) == 1 and mind.pending() == 1
    for _ in range(4):
        clock.advance(6.0)
        work_to_the_end(mind)
    check_ingested_once(folder, {"sick", "well"})
    assert problems(folder) == [f"{sick} cannot be read: Input/output error; it is tried again"]


def test_a_file_that_can_never_be_read_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock()
    folder = open_run(tmp_path, settings(), clock)
    sick = spool_of(folder).put(episode("sick"))
    read = sicken(monkeypatch, sick, times=1000)
    mind = learner(folder)
    for _ in range(10):
        work_to_the_end(mind)
        clock.advance(6.0)
    assert read == 5 * [sick]
    assert reasons(folder) == {sick: "cannot be read: Input/output error"}


def archive(spool: Spool, clock: SetClock, count: int) -> list[str]:
    names = []
    for number in range(count):
        names.append(spool.put(episode(str(number))))
        spool.archive(names[-1])
        clock.advance(1.0)
    return names


def left(spool: Spool) -> list[str]:
    return sorted(path.name for path in spool.archived.iterdir())


def test_the_archive_is_bounded_by_count(spool: Spool, clock: SetClock) -> None:
    names = archive(spool, clock, 6)
    assert spool.prune(SpoolConfig(archive_matches=2), keep=()) == 4
    assert left(spool) == names[-2:]


def test_the_archive_is_bounded_by_bytes(spool: Spool, clock: SetClock) -> None:
    names = archive(spool, clock, 6)
    size = (spool.archived / names[0]).stat().st_size
    assert spool.prune(SpoolConfig(archive_bytes=3 * size), keep=()) == 3
    assert left(spool) == names[-3:]


def test_the_archive_is_bounded_by_age(spool: Spool, clock: SetClock) -> None:
    names = archive(spool, clock, 6)
    assert spool.prune(SpoolConfig(archive_age_s=2.5), keep=()) == 4
    assert left(spool) == names[-2:]


def test_the_archive_keeps_what_may_be_sampled_again(spool: Spool, clock: SetClock) -> None:
    names = archive(spool, clock, 6)
    clock.advance(1e6)
    limits = SpoolConfig(archive_matches=1, archive_bytes=1, archive_age_s=1.0)
    assert spool.prune(limits, keep={names[0], names[3]}) == 4
    assert left(spool) == [names[0], names[3]]


def test_a_learner_keeps_its_archive_within_bounds(tmp_path: Path) -> None:
    config = settings(
        learner__batch_matches=1, learner__replay_capacity=3, spool__archive_matches=5
    )
    folder = open_run(tmp_path, config, SetClock())
    spool = spool_of(folder)
    for number in range(40):
        spool.put(episode(str(number)))
    mind = learner(folder)
    work_to_the_end(mind)
    assert counts(tmp_path) == (0, 5, 0)


def test_an_episode_that_was_pruned_says_so(spool: Spool) -> None:
    with pytest.raises(FileNotFoundError):
        spool.load_archived("gone.npz")
    (spool.buffer / "bad.npz").write_bytes(b"bad")
    with pytest.raises(FileFormatError, match=r"bad\.npz"):
        spool.load("bad.npz")


def test_the_quarantine_is_bounded_by_count_and_by_bytes(spool: Spool) -> None:
    for place in range(5):
        path = spool.buffer / f"{place}.npz"
        path.write_bytes(b"x" * 10)
        spool.quarantine(path.name, "odd")
        os.utime(spool.quarantined / f"{path.name}.reason.json", (100.0 - place,) * 2)
    assert spool.prune_quarantine(RetentionConfig()) == 0
    assert spool.prune_quarantine(RetentionConfig(quarantine_files=3)) == 2
    assert sorted(path.name for path in spool.quarantined.iterdir()) == [
        name for place in range(3) for name in (f"{place}.npz", f"{place}.npz.reason.json")
    ], "what was set aside first is gone"
    assert spool.prune_quarantine(RetentionConfig(quarantine_bytes=15)) == 2
    assert len(list(spool.quarantined.iterdir())) == 2
