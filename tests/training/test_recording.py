"""What is recorded of training costs training nothing, also where it cannot be written."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from understudy.arena.recording import PlayedMatch
from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.core.config import Config
from understudy.core.files import Disk
from understudy.games import catalog
from understudy.match.recordings import MatchRecordings
from understudy.policy.mlp import Mlp
from understudy.policy.spec import PolicySpec
from understudy.registry.run_folder import RunFolder
from understudy.telemetry import events
from understudy.telemetry.journal import Journal, Reader
from understudy.training.recording import RecordingWriter


class FullDisk(Disk):
    def write(self, path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device", str(path))


def played(seed: int) -> PlayedMatch:
    actions, checksums = np.zeros((3, 2, 1), np.int32), np.zeros(3, np.uint32)
    return PlayedMatch(seed, 0, "based", 1, actions, checksums)


def brawl_folder(root: Path) -> RunFolder:
    game = catalog.make("brawl")
    spec = PolicySpec(game.features, game.actions, Mlp((4,)))
    return RunFolder.open(
        root, spec=spec, config=Config(), clock=SystemClock(), game=f"brawl {game.version}"
    )


def test_a_full_disk_costs_recordings_and_is_reported_once(tmp_path: Path) -> None:
    folder = brawl_folder(tmp_path)
    writer = RecordingWriter(folder, Journal(folder.journal, "train", folder.clock))
    writer.write([played(1)], version=1, steps=64)
    with files.using(FullDisk()):
        for _ in range(3):
            writer.write([played(2), played(3)], version=1, steps=128)
    writer.write([played(4)], version=2, steps=192)
    kept = MatchRecordings(tmp_path)
    assert [kept.meta(number).seed for number in kept.numbers()] == [1, 4]
    problems = [
        entry.e for entry in Reader(folder.journal).new() if isinstance(entry.e, events.Problem)
    ]
    assert [(one.where, "No space left" in one.message) for one in problems] == [
        ("recording", True)
    ]


def test_what_an_interrupted_write_left_is_removed(tmp_path: Path) -> None:
    folder = brawl_folder(tmp_path)
    left = tmp_path / "matches" / f"{files.TEMPORARY}00000001.match"
    left.parent.mkdir()
    left.write_bytes(b"half a recording")
    writer = RecordingWriter(folder, Journal(folder.journal, "train", folder.clock))
    writer.write([played(1)], version=0, steps=0)
    assert not left.exists() and MatchRecordings(tmp_path).numbers() == [1]
