"""Snapshots are read from a run that may train on meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.leagues_of_brawl import brawl_league

from understudy.core import files
from understudy.core.clock import SystemClock
from understudy.core.errors import FileFormatError, RunFolderError
from understudy.league import snapshots
from understudy.league import state as league_files
from understudy.league.pool import Pool, Snapshot
from understudy.policy.weights import Weights
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest


def thinned(folder: RunFolder, steps: int) -> None:
    """The learner commits a version without that snapshot, and removes its file."""
    head = folder.versions.manifest(1)
    state = league_files.decode(folder.versions.read(head, league_files.FILE))
    state.pool = [one for one in state.pool if one.steps != steps]
    contents = {
        WEIGHTS: folder.versions.read(head, WEIGHTS),
        league_files.FILE: league_files.encode(state),
    }
    after = Manifest(number=2, parent=1, created_at=0.0, spec=folder.spec)
    folder.versions.commit(after, contents)
    files.remove(Pool(folder.root / league_files.FOLDER, folder.spec).path(steps))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run whose pool loses step-2000 between the moment it is read and the first file."""
    folder = RunFolder.load(brawl_league(tmp_path / "run", snapshots=3), SystemClock())
    load = Pool.load

    def late(pool: Pool, snapshot: Snapshot) -> Weights:
        if folder.versions.head() == 1:
            thinned(folder, 2000)
        return load(pool, snapshot)

    monkeypatch.setattr(Pool, "load", late)
    return folder


def test_a_pool_that_is_thinned_meanwhile_is_read_again(folder: RunFolder) -> None:
    policies, count = snapshots.spread(folder, 20)
    assert (list(policies), count) == (["step-1000", "step-3000"], 2)


def test_a_snapshot_that_left_meanwhile_is_one_that_is_not_there(folder: RunFolder) -> None:
    with pytest.raises(RunFolderError, match=r"--agent: .* has no snapshot 'step-2000' \(there"):
        snapshots.named(folder, "step-2000", flag="--agent")


def test_a_file_that_is_missing_otherwise_is_damage(folder: RunFolder) -> None:
    files.remove(Pool(folder.root / league_files.FOLDER, folder.spec).path(3000))
    with pytest.raises(FileFormatError, match=r"step-000003000\.npz: this snapshot is missing"):
        snapshots.spread(folder, 20)
