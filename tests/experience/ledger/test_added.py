"""Parts of a reward: on disk before they are confirmed, summed, and counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.core.errors import InputError
from understudy.experience.ledger import Added

from .decisions import ledger_at, no_waiting, open_some, settled


def test_parts_are_summed_and_survive_a_kill(tmp_path: Path) -> None:
    before = ledger_at(tmp_path)
    first, second = open_some(before, 2)
    before.add([Added(id=first, reward=0.5), Added(id=first, reward=0.25)])
    after = ledger_at(tmp_path)  # the first one was killed
    assert (after.added(first), after.added(second)) == (0.75, None)
    after.add([Added(id=first, reward=-1.0)])
    assert ledger_at(tmp_path).added(first) == -0.25


def test_parts_are_carried_over_with_their_decision(tmp_path: Path) -> None:
    with no_waiting():
        ledger = ledger_at(tmp_path, rotate_bytes=200)
        (idle,) = open_some(ledger, 1, "idle")
        ledger.add([Added(id=idle, reward=0.5)])
        for _ in range(60):
            ledger.close(settled(*open_some(ledger, 1)))
            ledger.sync()
            assert ledger_at(tmp_path).added(idle) == 0.5  # also where both files are there
        assert not (tmp_path / "00000001.log").exists()


def test_a_part_of_what_is_not_open_is_refused_with_its_batch(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    first, second = open_some(ledger, 2)
    ledger.close(settled(second))
    for key, reward, wrong in ((second, 0.5, "is open"), (first, float("inf"), "not finite")):
        with pytest.raises(InputError, match=wrong):
            ledger.add([Added(id=first, reward=0.5), Added(id=key, reward=reward)])
    assert ledger.added(first) is None
    assert ledger.added(second) is None


def test_the_newest_decision_is_known_until_it_leaves(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    assert ledger.last_of("north") is None
    first, second = open_some(ledger, 2)
    ledger.close(settled(second))
    newest = ledger.last_of("north")
    assert newest is not None
    assert newest.id == second
    ledger.close(settled(first))
    ledger.cut("north")
    assert ledger.last_of("north") is None
