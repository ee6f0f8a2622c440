"""What can be told of a ledger from outside, while its server goes on or after it was killed."""

from __future__ import annotations

from pathlib import Path

from understudy.experience.ledger import Closing, DecisionCounts
from understudy.experience.ledger.recovery import counts_in

from .decisions import ledger_at, no_waiting, open_some, settled


def test_it_agrees_with_the_ledger_at_every_moment(tmp_path: Path) -> None:
    with no_waiting():
        ledger = ledger_at(tmp_path, rotate_bytes=300)
        for round_ in range(12):
            keys = open_some(ledger, 3)
            assert counts_in(tmp_path) == ledger.counts
            ledger.close(settled(keys[0]))
            ledger.close([Closing(id=keys[1], state="expired")])
            assert counts_in(tmp_path) == ledger.counts
            if round_ % 4 == 3:
                ledger.sync()  # files that nothing needs go
            if round_ == 7:
                ledger = ledger_at(tmp_path, rotate_bytes=300)  # it was killed, and starts again
                assert counts_in(tmp_path) == ledger.counts
    assert counts_in(tmp_path) == DecisionCounts(36, 12, 12, 0, 0, 12)
    assert len(list(tmp_path.glob("*.log"))) > 1


def test_looking_changes_nothing_and_half_a_record_does_not_count(tmp_path: Path) -> None:
    assert counts_in(tmp_path / "nowhere") is None
    assert counts_in(tmp_path) == DecisionCounts(), "made, and nothing was decided yet"
    ledger = ledger_at(tmp_path)
    open_some(ledger, 2)
    path = next(tmp_path.glob("*.log"))
    before = path.read_bytes()
    open_some(ledger, 1)
    after = path.read_bytes()
    path.write_bytes(after[:-5])
    assert counts_in(tmp_path) == DecisionCounts(opened=2, open=2)
    assert path.read_bytes() == after[:-5] and after.startswith(before)


def test_a_newest_file_without_a_beginning_leaves_the_word_to_the_one_before(
    tmp_path: Path,
) -> None:
    open_some(ledger_at(tmp_path), 2)
    (tmp_path / "00000009.log").write_bytes(b"\xfeUSL")
    assert counts_in(tmp_path) == DecisionCounts(opened=2, open=2)
