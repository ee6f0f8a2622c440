"""SIGKILL of a StarCraft II bot, of its game or of its learner at random points: no finished match
is lost, none is learned from twice, and a match whose game died is kept as aborted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder
from walk.toys import check_registry, head_tally, manifests, metas, reasons

pytest.importorskip("sc2")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="forks children and kills them")

SCRIPT = Path(__file__).with_name("sc2_kill_children.py")


def check_kills(root: Path, kills: int, seed: int) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(root), str(kills), str(seed)],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    killed: dict[str, int] = json.loads(done.stdout)
    assert killed.keys() == {"bot", "game", "learner"}
    assert sum(killed.values()) >= kills
    folder = RunFolder.load(root, SystemClock())
    check_registry(folder)

    ingested = Counter(key for manifest in manifests(folder) for key in manifest.ingested)
    assert set(ingested.values()) == {1}
    assert head_tally(folder).ingested == ingested
    assert list(metas(root / "buffer")) == []

    # A batch that was killed again and again looks like poison; it is kept, and rare.
    poison = list(metas(root / "quarantine"))
    assert len(poison) <= 2
    assert all(reason.startswith("poison") for reason in reasons(folder).values())
    kept = Counter(meta.tags["name"] for meta in (*metas(root / "archive"), *poison))
    assert set(kept.values()) == {1}, "a match is there twice"
    told = dict(line.split() for line in (root / "told.txt").read_text().splitlines())
    assert told.keys() <= kept.keys(), "a match that was kept is lost"
    outcomes = {meta.tags["name"]: str(meta.outcome) for meta in metas(root / "archive")}
    assert all(outcomes.get(name, outcome) == outcome for name, outcome in told.items())
    assert {"defeat", "aborted"} <= set(told.values())


def test_twenty_kills(tmp_path: Path) -> None:
    check_kills(tmp_path / "run", 20, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
def test_two_hundred_kills(tmp_path: Path, seed: int) -> None:
    check_kills(tmp_path / "run", 50, seed=seed)
