"""Restarts: what was open is open, what is torn or damaged is told, ids ascend."""

from __future__ import annotations

from pathlib import Path

import pytest
from walk.toys import SPEC

from understudy.core import files
from understudy.core.errors import FileFormatError
from understudy.core.files import Disk
from understudy.experience.ledger.records import Header, frame
from understudy.experience.ledger.store import BLOCK
from understudy.policy.spec import PolicySpec

from .decisions import Spooled, decision, ledger_at, no_waiting, open_some, seen, settled


def test_what_was_open_is_open_after_a_restart_and_late_rewards_settle_it(tmp_path: Path) -> None:
    spooled = Spooled()
    before = ledger_at(tmp_path, spooled)
    keys = open_some(before, 3, client="c7")
    before.close(settled(keys[0]))
    after = ledger_at(tmp_path, spooled)  # the first one was killed
    assert [one.id for one in after.open_of("north")] == keys[1:]
    assert after.opened(keys[1]) == decision(keys[1], client="c7")
    assert after.counts == before.counts == (3, 1, 0, 0, 0, 2)
    after.close(settled(*keys[1:]))
    open_some(after, 1, client="c7")
    assert spooled.keys == [tuple(keys)]


def test_ids_ascend_for_ever_even_when_all_logs_are_gone(tmp_path: Path) -> None:
    given = [open_some(ledger_at(tmp_path), 3)]
    given.append(open_some(ledger_at(tmp_path), 2))  # after a kill: beyond all that was reserved
    assert given[1][0] > BLOCK
    for path in tmp_path.glob("*.log"):
        path.unlink()
    with ledger_at(tmp_path) as ledger:
        given.append(open_some(ledger, 2))
    (tmp_path / "ids.json").write_bytes(b'{"below": 1, "crc32": 5}')
    ledger = ledger_at(tmp_path)
    assert list(ledger.problems) == ["ids.json is damaged: ids go on from what the logs name"]
    given.append(open_some(ledger, 1))
    flat = [key for keys in given for key in keys]
    assert flat == sorted(set(flat))


def test_a_clean_stop_wastes_no_ids(tmp_path: Path) -> None:
    with ledger_at(tmp_path) as ledger:
        assert open_some(ledger, 2) == [1, 2]
    with ledger_at(tmp_path) as ledger:
        assert open_some(ledger, 1) == [3]


def test_ids_are_reserved_ahead_while_the_disk_has_time(tmp_path: Path) -> None:
    with no_waiting():
        ledger = ledger_at(tmp_path)
        ledger.take_ids(BLOCK - 1)
        ledger.sync()
        before = (tmp_path / "ids.json").read_bytes()
        ledger.take_ids(BLOCK)
        assert (tmp_path / "ids.json").read_bytes() == before


def test_a_torn_tail_costs_what_was_never_acknowledged_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "whole"
    ledger = ledger_at(folder)
    kept = open_some(ledger, 2)
    before = (folder / "00000001.log").read_bytes()
    open_some(ledger, 2)
    whole = (folder / "00000001.log").read_bytes()
    with no_waiting():
        for length in range(len(before), len(whole)):
            torn = tmp_path / f"torn-{length}"
            torn.mkdir()
            (torn / "00000001.log").write_bytes(whole[:length])
            ledger = ledger_at(torn)
            assert [one.id for one in ledger.open_of("north")] == kept
            assert len(ledger.problems) == (length > len(before))
            assert ledger.counts == (2, 0, 0, 0, 0, 2)
            new = open_some(ledger, 1)
            assert [one.id for one in ledger_at(torn).open_of("north")] == kept + new


def test_damage_in_the_middle_is_told_and_the_rest_is_kept(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    first, lost, last = (open_some(ledger, 1)[0] for _ in range(3))
    ledger.close(settled(first))
    path = tmp_path / "00000001.log"
    data = bytearray(path.read_bytes())
    data[data.index(seen(lost))] ^= 255
    path.write_bytes(data)
    told: list[str] = []
    ledger = ledger_at(tmp_path, tell=told.append)
    assert told == list(ledger.problems) and "damaged bytes at" in told[0]
    assert ledger.state_of(first) == "settled" and ledger.state_of(lost) == "unknown"
    assert [one.id for one in ledger.open_of("north")] == [last]
    assert ledger.counts == (2, 1, 0, 0, 0, 1), "balanced, though one is gone"


def test_a_ledger_of_another_run_or_program_is_told(tmp_path: Path) -> None:
    open_some(ledger_at(tmp_path), 1)
    other = PolicySpec(("a", "b", "c"), SPEC.actions, SPEC.network)
    ledger = ledger_at(tmp_path, spec=other)
    assert "1 decisions do not fit this run: observation: 8 bytes" in ledger.problems[0]
    later = Header(schema=2, next_id=1, opened=0, settled=0, expired=0, superseded=0, orphaned=0)
    (tmp_path / "00000009.log").write_bytes(frame([later]))
    with pytest.raises(FileFormatError, match=r"00000009\.log: ledger of schema 2"):
        ledger_at(tmp_path)


def test_a_crash_between_spool_and_ledger_leads_to_the_same_episode_again(tmp_path: Path) -> None:
    spooled = Spooled()

    class Dies(Disk):
        def append(self, path: Path, data: bytes) -> None:
            if spooled:
                raise OSError("killed here")
            super().append(path, data)

    ledger = ledger_at(tmp_path, spooled)
    keys = open_some(ledger, 5)
    with files.using(Dies()):
        ledger.close(settled(*keys[:3]))
    assert spooled.keys == [tuple(keys[:3])]
    again = Spooled()
    after = ledger_at(tmp_path, again, segment=1)  # also when the settings are others by then
    assert [one.meta for one in again] == [one.meta for one in spooled]
    assert again.keys == spooled.keys
    after.close(settled(*keys[3:]))
    assert again.keys == [tuple(keys[:3]), (keys[3],)]
