"""Recorded matches on disk: whole or not there, checked, and bounded."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from walk.power import FallibleDisk, build, quick_folder

from understudy.core import files
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.match import recordings
from understudy.match.recordings import (
    MatchRecordings,
    RecordedMatch,
    RecordingMeta,
    decode,
    encode,
)


def recorded(frames: int = 5, /, **changes: Any) -> RecordedMatch:
    meta = RecordingMeta(
        game="brawl",
        rules=1,
        options={"delay": "2"},
        engine="jax on a toaster",
        seed=7,
        side=1,
        opponent="random",
        score=-1,
        frames=frames,
        version=3,
        steps=4096,
        recorded_at=1e9,
    )
    actions = np.arange(frames * 2, dtype=np.uint8).reshape(frames, 2, 1)
    checksums = np.arange(frames, dtype=np.uint32)
    return RecordedMatch(msgspec.structs.replace(meta, **changes), actions, checksums)


def same(one: RecordedMatch, other: RecordedMatch) -> bool:
    return one.meta == other.meta and all(
        mine.dtype == yours.dtype and np.array_equal(mine, yours)
        for mine, yours in ((one.actions, other.actions), (one.checksums, other.checksums))
    )


@given(
    frames=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
    opponent=st.text(max_size=30).filter(lambda text: text.isprintable()),
    wide=st.booleans(),
)
def test_what_is_written_is_read(frames: int, seed: int, opponent: str, wide: bool) -> None:
    match = recorded(frames, seed=seed, opponent=opponent)
    if wide:
        match = RecordedMatch(match.meta, match.actions.astype(np.uint16) + 300, match.checksums)
    assert same(decode(encode(match), what="x"), match)


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_one_changed_bit_anywhere_is_an_error(at: int, bit: int) -> None:
    data = bytearray(encode(recorded()))
    data[at % len(data)] ^= 1 << bit
    with pytest.raises(FileFormatError, match=r"matches/00000001\.match"):
        decode(bytes(data), what="matches/00000001.match")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_file_that_was_cut_short_is_an_error(share: float) -> None:
    data = encode(recorded())
    with pytest.raises(FileFormatError, match="damaged"):
        decode(data[: int(len(data) * share)], what="x")


@pytest.mark.parametrize(
    ("match", "message"),
    [
        (recorded(schema=2), "schema 2, this program reads 1"),
        (recorded(seed=-1), "seed -1"),
        (recorded(side=2), "side 2"),
        (recorded(score=2), "score 2"),
        (recorded(5, frames=6), r"actions is uint8 \(5, 2, 1\), expected .*\[6, players, parts\]"),
        (
            RecordedMatch(recorded().meta, recorded().actions, np.zeros(5, np.int32)),
            "checksums is int32",
        ),
        (
            RecordedMatch(recorded().meta, np.zeros((5, 2), np.uint8), recorded().checksums),
            "actions is uint8",
        ),
    ],
)
def test_a_file_that_breaks_a_promise_names_the_field(match: RecordedMatch, message: str) -> None:
    with pytest.raises(FileFormatError, match=f"x: .*{message}"):
        decode(encode(match), what="x")


def test_numbers_count_up_and_strangers_are_passed_over(tmp_path: Path) -> None:
    kept = MatchRecordings(tmp_path)
    assert kept.numbers() == [] and not kept.folder.exists()
    assert [kept.put(recorded(seed=seed)) for seed in (11, 12)] == [1, 2]
    (kept.folder / "notes.match").write_bytes(b"")
    (kept.folder / f"{files.TEMPORARY}1").write_bytes(b"half")
    assert kept.numbers() == [1, 2]
    assert kept.put(recorded(seed=13)) == 3
    assert [kept.load(number).meta.seed for number in (1, 2, 3)] == [11, 12, 13]
    assert kept.meta(2) == kept.load(2).meta
    with pytest.raises(RunFolderError, match="no recorded match 9; there are 1 to 3"):
        kept.load(9)


def test_the_oldest_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(encode(recorded()))
    monkeypatch.setattr(recordings, "MAX_FOLDER_BYTES", 3 * size + size // 2)
    kept = MatchRecordings(tmp_path)
    for _ in range(7):
        kept.put(recorded())
        assert sum(path.stat().st_size for path in kept.folder.iterdir()) <= 3.5 * size
    assert kept.numbers() == [5, 6, 7]
    monkeypatch.setattr(recordings, "MAX_FOLDER_BYTES", 1)
    kept.put(recorded(400))
    assert kept.numbers() == [8], "the newest stays, whatever its size"


def test_a_power_cut_after_any_effect_leaves_whole_recordings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(recordings, "MAX_FOLDER_BYTES", int(2.5 * len(encode(recorded()))))
    put, states, chance = [0], list[tuple[int, Any]](), random.Random(3)
    with quick_folder() as root:

        def after() -> None:
            states.extend((put[0], tree) for tree in disk.crashes(chance, mixes=3))

        disk = FallibleDisk(root, after)
        with files.using(disk):
            for number in range(1, 6):
                assert MatchRecordings(root).put(recorded(seed=number)) == number
                put[0] = number
    assert len(states) > 50
    for index, (told, tree) in enumerate(states):
        left = tmp_path / str(index)
        build(tree, left)
        kept = MatchRecordings(left)
        numbers = kept.numbers()
        assert [kept.load(number).meta.seed for number in numbers] == numbers
        assert told == 0 or max(numbers) >= told, "a recording that was told of is gone"
        assert kept.put(recorded()) == max(numbers, default=0) + 1


_CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from match.test_recordings import recorded
from understudy.match.recordings import MatchRecordings
kept = MatchRecordings(Path(sys.argv[1]))
while True:
    print(kept.put(recorded(2000)), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_killed_writer_leaves_whole_recordings(tmp_path: Path) -> None:
    last = 0
    for puts in (1, 4):
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD, tmp_path, Path(__file__).parent.parent],
            stdout=subprocess.PIPE,
            text=True,
        )
        with child:
            assert child.stdout is not None
            for _ in range(puts):
                last = int(child.stdout.readline())
            child.kill()
        assert child.returncode == -signal.SIGKILL
        kept = MatchRecordings(tmp_path)
        numbers = kept.numbers()
        assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= last
        assert all(same(kept.load(number), recorded(2000)) for number in numbers)
