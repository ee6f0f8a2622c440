"""SIGKILL at every durable step: one valid champion, the same evidence, nothing counted twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from walk.power import quick_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="forks children and kills them")

SCRIPT = Path(__file__).with_name("kill_children.py")


def kill(how: str) -> dict[str, int]:
    with quick_folder() as root:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), how, str(root / "kills")],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_killed_at_every_effect_of_assignment_result_verdict_promotion_and_compacting() -> None:
    found = kill("effects")
    assert found["effects"] > 60
    for where in ("in a record", "in a match", "between a verdict and the pointers"):
        assert found[where] > 3, where


def test_two_bots_are_one_test_and_a_killed_one_loses_its_match_alone() -> None:
    found = kill("bots")
    assert found["finished"] == 50
    assert found["counted"] == 52
    assert found["turns"] > 4, "they played at the same time"
