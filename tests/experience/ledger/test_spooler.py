"""On the way to the spool: a disk that hangs, and a spool that fails in a way of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from understudy.experience.episode import Episode

from .decisions import Spooled, ledger_at, open_some, settled


@pytest.mark.parametrize("what", ["put", "sync"])
def test_a_process_ends_though_its_disk_has_hung(tmp_path: Path, what: str) -> None:
    script = Path(__file__).with_name("hung_child.py")
    child = subprocess.run(
        [sys.executable, str(script), str(tmp_path), what],
        capture_output=True, encoding="utf-8", timeout=20.0, check=True,
    )  # fmt: skip
    assert "segments stay in the ledger until the next start" in child.stdout
    if what == "sync":
        assert "the disk has not answered" in child.stdout
    spooled = Spooled()
    with ledger_at(tmp_path, spooled, segment=1) as after:
        assert after.counts.open == 1
        assert len(spooled) == 1  # nothing was lost by it


def test_a_spool_that_fails_in_a_way_of_its_own_is_told_and_asked_again(tmp_path: Path) -> None:
    told = threading.Event()
    taken: list[Episode] = []

    def put(episode: Episode) -> None:
        if not told.is_set():
            raise ValueError("what is this?")
        taken.append(episode)

    with ledger_at(
        tmp_path, put=put, segment=1, background=True, tell=lambda words: told.set()
    ) as ledger:
        ledger.close(settled(*open_some(ledger, 1)))
        open_some(ledger, 1)
        assert told.wait(10.0)
        ledger.flush()
    assert len(taken) == 1
    assert any("what is this?" in problem for problem in ledger.problems)
