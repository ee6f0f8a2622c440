"""Run folders of brawl with a league, as training leaves them."""

from __future__ import annotations

from pathlib import Path

from understudy.core.clock import SystemClock
from understudy.core.config import LeagueConfig
from understudy.league import state as league_files
from understudy.league.anchors import anchors_of
from understudy.league.league import League
from understudy.policy import weights
from understudy.policy.policy import untrained
from understudy.registry.run_folder import RunFolder
from understudy.registry.versions import WEIGHTS, Manifest

from .runs_of_brawl import brawl_run


def brawl_league(root: Path, *, snapshots: int = 3) -> Path:
    """Version 1, the champion, with `snapshots` at step-1000, step-2000, ... and results."""
    brawl_run(root, versions=0)
    folder = RunFolder.load(root, SystemClock())
    league = League(
        LeagueConfig(save_freq=1000), root / league_files.FOLDER, folder.spec,
        anchors_of("brawl", {}),
    )  # fmt: skip
    for index in range(1, snapshots + 1):
        league.note({"constant": (9, 0, 1), "based": (index, 1, 10 - index)})
        league.offer(1000 * index, untrained(folder.spec, seed=10 + index).weights)
        league.note({f"step-{1000 * index}": (6, 1, 3)})
    manifest = Manifest(
        number=1, parent=None, created_at=0.0, spec=folder.spec, counters={"steps": 5000}
    )
    policy = untrained(folder.spec, seed=1)
    contents = {WEIGHTS: weights.encode(policy.weights), league_files.FILE: league.encode()}
    folder.versions.commit(manifest, contents)
    folder.pointers.move("champion", 1, by="latest")
    return root
