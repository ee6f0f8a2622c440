"""SIGKILL of bots, relays, the learner and the wire to a real store, at random points: no finished
match is lost, none is learned from twice, and every player ends on the newest version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from walk.toys import check_registry, head_tally, manifests, metas, reasons

from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="forks children and kills them"),
    pytest.mark.xdist_group("relay"),
]

SCRIPT = Path(__file__).with_name("kill_children.py")


def check_kills(root: Path, port: int, kills: int, seed: int) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, (root, port, kills, seed))],
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout)["kills"] == kills
    folder = RunFolder.load(root / "learner", SystemClock())
    check_registry(folder)
    ingested = Counter(key for manifest in manifests(folder) for key in manifest.ingested)
    assert set(ingested.values()) == {1}, "a match was learned from twice"
    assert head_tally(folder).ingested == ingested
    poison = list(metas(folder.root / "quarantine"))  # kills in training look like its fault
    assert len(poison) <= 2
    assert all(reason.startswith("poison") for reason in reasons(folder).values())

    played = {
        meta.tags["name"]: meta.id
        for player in root.glob("player*")
        for meta in metas(player / "archive")
    }
    told = set((root / "told.txt").read_text(encoding="utf-8").split())
    assert len(told) > kills
    assert told <= played.keys(), "a finished match is nowhere on its machine"
    missing = {played[name] for name in told} - ingested.keys() - {one.id for one in poison}
    assert not missing, "a finished match was lost on the way"
    for player in root.glob("player*"):
        check_registry(RunFolder.load(player, SystemClock()))


def test_twenty_kills_lose_and_repeat_nothing(tmp_path: Path, moto_port: int) -> None:
    check_kills(tmp_path, moto_port, 20, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 12))
def test_two_hundred_kills_lose_and_repeat_nothing(
    tmp_path: Path, moto_port: int, seed: int
) -> None:
    check_kills(tmp_path, moto_port, 20, seed=seed)
