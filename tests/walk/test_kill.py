"""SIGKILL at random points and at every effect: no finished match is lost, none is learned from
twice, every version loads, and the pointers are valid."""

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
from understudy.telemetry import events
from understudy.telemetry.journal import Reader
from walk.power import quick_folder
from walk.toys import check_ingested_once, check_registry, head_tally, manifests, metas, reasons

pytestmark = pytest.mark.skipif(os.name != "posix", reason="forks children and kills them")

SCRIPT = Path(__file__).with_name("kill_children.py")


def kill(*arguments: object) -> dict[str, int]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, int] = json.loads(done.stdout)
    return found


def check_kills(root: Path, kills: int, seed: int) -> None:
    found = kill("random", root, kills, seed)
    assert found["kills"] >= kills
    hits = ("in_training", "in_commit", "between_commit_and_archive")
    assert all(found.get(hit) for hit in hits), "the kills came too tamely"
    folder = RunFolder.load(root, SystemClock())
    check_registry(folder)

    ingested = Counter(key for manifest in manifests(folder) for key in manifest.ingested)
    assert set(ingested.values()) == {1}
    assert head_tally(folder).ingested == ingested
    assert list(metas(root / "buffer")) == []

    # A batch that was killed again and again is suspect; kills that are not its fault can make it
    # look like poison. Even then it is kept, and it must be as rare as chance makes it.
    poison = list(metas(root / "quarantine"))
    assert len(poison) <= 2
    assert all(reason.startswith("poison") for reason in reasons(folder).values())

    kept = {meta.tags["name"]: meta.id for meta in metas(root / "archive")}
    assert ingested.keys() == set(kept.values())
    finished = (root / "told.txt").read_text().split()
    assert len(finished) > kills // 2
    assert set(finished) <= kept.keys() | {meta.tags["name"] for meta in poison}

    problems = [
        entry.e for entry in Reader(root / "journal").new() if isinstance(entry.e, events.Problem)
    ]
    assert problems == []


def test_a_hundred_kills(tmp_path: Path) -> None:
    check_kills(tmp_path / "run", 120, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(16))
def test_two_thousand_kills(tmp_path: Path, seed: int) -> None:
    check_kills(tmp_path / "run", 125, seed=seed)


def test_a_kill_at_every_effect() -> None:
    with quick_folder() as root:
        assert kill("effects", root)["effects"] > 150


def test_a_match_that_kills_every_learner_is_found_and_set_aside(tmp_path: Path) -> None:
    deaths = kill("poison", tmp_path)["deaths"]
    assert deaths <= 15, "three for every halving of a batch of ten"
    folder = RunFolder.load(tmp_path, SystemClock())
    assert [meta.id for meta in metas(tmp_path / "quarantine")] == ["poison"]
    assert all(reason.startswith("poison") for reason in reasons(folder).values())
    others = {f"match {number}" for number in range(12) if number != 4}
    check_registry(folder)
    check_ingested_once(folder, others)
