"""SIGKILL at random points: every acknowledged decision is there, and none leaves twice."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from walk.power import quick_folder
from walk.toys import SPEC, SetClock

from understudy.experience import episode as episodes
from understudy.experience.spool import Spool

from .decisions import keys_of, ledger_at, no_waiting, settled
from .kill_child import TERRITORIES

SCRIPT = Path(__file__).with_name("kill_child.py")


def killed(root: Path, seed: int, lines: int) -> list[list[str]]:
    """What a process said before it was killed, after so many lines and a moment."""
    with subprocess.Popen(
        [sys.executable, str(SCRIPT), str(root), str(seed)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        said = [child.stdout.readline() for _ in range(lines)]
        child.kill()
        said += child.stdout.readlines()
        assert not child.stderr.read()
    return [line.split() for line in said if line.endswith("\n")]


def check_kills(root: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    told: dict[str, Counter[int]] = {
        word: Counter() for word in ("open", "expiring", "expired", "settled", "recovered")
    }
    for number in range(kills):
        for word, *keys in killed(root, 1000 * seed + number, chance.choice((1, 5, 40, 200))):
            told[word].update(map(int, keys))
    assert len(told["open"]) > 30 * kills
    assert max(told["open"].values()) == 1, "an id was given out twice"

    with no_waiting():
        spool = Spool(root, SPEC, SetClock())
        ledger = ledger_at(root / "ledger", put=spool.put, segment=4)
        waiting = {one.id for one in ledger.older_than(4e9)}
        for state in ("settled", "expired"):
            assert not waiting & told[state].keys()
            assert {ledger.state_of(key) for key in told[state]} <= {state, "unknown"}
        counts = ledger.counts
        assert counts.opened == sum(counts[1:]) >= len(told["open"])
        ledger.close(settled(*waiting))
        for territory in TERRITORIES:
            ledger.cut(territory, b"")
        assert not ledger.waiting

    found = [spool.load(name) for name in spool.pending()]
    distinct = {one.meta.id: one for one in found}
    for one in found:
        assert episodes.encode(one) == episodes.encode(distinct[one.meta.id])
    left = Counter(key for one in distinct.values() for key in keys_of(one))
    assert max(left.values()) == 1, "a decision would be learned from twice"
    assert told["settled"].keys() <= left.keys()
    assert not told["expired"].keys() & left.keys()
    assert told["open"].keys() <= left.keys() | told["expiring"].keys()


def test_a_dozen_kills() -> None:
    with quick_folder() as root:
        check_kills(root, 12, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 10))
def test_eight_hundred_kills(seed: int) -> None:
    with quick_folder() as root:
        check_kills(root, 100, seed=seed)
