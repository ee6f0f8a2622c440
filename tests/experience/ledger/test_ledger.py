"""A ledger as a session uses it: mistakes, full and slow disks, files that go, threads."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from walk.toys import SPEC

from understudy.core import files
from understudy.core.errors import InputError
from understudy.core.files import Disk
from understudy.core.spaces import MultiDiscrete
from understudy.experience.episode import Episode
from understudy.experience.ledger import Closing, Ledger
from understudy.experience.ledger import ledger as ledgers
from understudy.experience.ledger.records import check_opened
from understudy.policy.spec import PolicySpec

from .decisions import Spooled, decision, keys_of, ledger_at, no_waiting, open_some, seen, settled


def logs(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.log"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observation": b"1234"}, "observation: 4 bytes, expected 8"),
        ({"observation": np.array([1, np.nan], "<f4").tobytes()}, "observation: .* not finite"),
        ({"value": 1e39}, "value .* not finite"),
        ({"action": (2,)}, r"action: \(2,\) is outside"),
        ({"action": (0, 0)}, "action: 2 parts, expected 1"),
        ({"legal": b"12"}, "legal: 2 bytes, expected 1 or none"),
        ({"id": 99}, "id: expected one of `take_ids`"),
    ],
)
def test_a_decision_that_does_not_fit_is_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    ledger = ledger_at(tmp_path)
    good, bad = ledger.take_ids(2)
    with pytest.raises(InputError, match=message), np.errstate(over="ignore"):
        ledger.open([decision(good), decision(**{"key": bad, **changes})])  # type: ignore[arg-type]
    assert ledger.counts.opened == 0
    wide = PolicySpec(SPEC.features, MultiDiscrete((2, 3)), SPEC.network)
    assert not check_opened([decision(1, action=(1, 2))], wide)


def test_nobody_closes_what_is_not_open_and_twice_changes_nothing(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    (key,) = open_some(ledger, 1)
    for wrong, message in (
        (Closing(id=99, state="settled"), "no decision 99 is open"),
        (Closing(id=key, state="lost"), "state: expected one of settled"),  # type: ignore[arg-type]
        (Closing(id=key, state="expired", terminal=True), "terminal: .* expected settled"),
        (Closing(id=key, state="settled", reward=float("inf")), "reward: not finite"),
        (Closing(id=key, state="settled", outcome="won"), "outcome"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InputError, match=message):
            ledger.close([*settled(key), wrong] if wrong.id != key else [wrong])
        assert ledger.state_of(key) == "open"
    ledger.close([Closing(id=key, state="expired"), *settled(key)])
    ledger.close(settled(key))
    assert ledger.state_of(key) == "expired"
    assert ledger.counts == (1, 0, 1, 0, 0, 0)


class HalfDisk(Disk):
    """Writes half of what is appended, and fails."""

    def append(self, path: Path, data: bytes) -> None:
        super().append(path, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def test_on_a_full_disk_nothing_of_the_batch_counts_and_no_id_comes_twice(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path)
    (kept,) = open_some(ledger, 1)
    with files.using(HalfDisk()):
        refused = list(ledger.take_ids(3))
        for _ in range(2):  # at the end of a file, and at the beginning of the next
            with pytest.raises(OSError, match="No space"):
                ledger.open([decision(key) for key in refused])
        with pytest.raises(OSError, match="No space"):
            ledger.close(settled(kept))
    assert ledger.counts == (1, 0, 0, 0, 0, 1)
    (later,) = open_some(ledger, 1)
    assert later > max(refused)
    ledger.close(settled(kept))
    after = ledger_at(tmp_path)
    assert [after.state_of(key) for key in (kept, *refused, later)] == [
        "settled", "unknown", "unknown", "unknown", "open",
    ]  # fmt: skip
    assert after.counts == ledger.counts == (2, 1, 0, 0, 0, 1)


def test_segments_wait_for_a_full_disk_and_decisions_are_refused_when_too_many_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "_MOST_WAITING", 2)
    spooled = Spooled()
    ledger = ledger_at(tmp_path, spooled, segment=1)
    spooled.full = True
    keys = open_some(ledger, 4)
    ledger.close(settled(*keys[:2]))
    assert ledger.waiting == 2 and "cannot leave for the spool" in ledger.problems[-1]
    with pytest.raises(BlockingIOError, match="2 segments wait for the spool"):
        open_some(ledger, 1)
    with pytest.raises(OSError, match="No space"):
        ledger.flush()
    ledger.close(settled(keys[2]))
    spooled.full = False
    ledger.flush()
    assert spooled.keys == [(key,) for key in keys[:3]]
    open_some(ledger, 1)


def test_files_come_and_go_and_one_idle_territory_keeps_none_but_its_own_lines(
    tmp_path: Path,
) -> None:
    spooled = Spooled()
    with no_waiting():
        ledger = ledger_at(tmp_path, spooled, rotate_bytes=2_000)
        idle = open_some(ledger, 2, "idle")
        ledger.close(settled(idle[0]))
        most = 0
        for _ in range(400):
            keys = open_some(ledger, 3, "busy")
            ledger.close(settled(*keys[:2]))
            ledger.close([Closing(id=keys[2], state="expired")])
            ledger.sync()
            most = max(most, len(logs(tmp_path)))
        assert most <= 10
        assert int(logs(tmp_path)[-1][:8]) > 50
        assert sum(map(len, spooled)) == 800
        ledger = ledger_at(tmp_path, spooled, rotate_bytes=2_000)
        assert [one.id for one in ledger.open_of("idle")] == idle[1:]
        assert ledger.counts == (1202, 801, 400, 0, 0, 1)
        ledger.close(settled(idle[1]))
        ledger.cut("idle", seen(1))
        assert spooled.keys[-1] == tuple(idle)
        open_some(ledger, 1)
        ledger.sync()
        assert len(logs(tmp_path)) == 1


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    for name in ("notes.log", "1.txt"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "00000007.log").mkdir()
    with ledger_at(tmp_path) as ledger:
        open_some(ledger, 1)
    assert (tmp_path / "notes.log").read_text() == "mine"


def test_in_the_background_episodes_leave_and_files_are_synced_and_removed(tmp_path: Path) -> None:
    episodes: list[Episode] = []
    synced = threading.Event()

    class Watched(Disk):
        def sync(self, path: Path) -> None:
            if path.name == "00000001.log":
                synced.set()

    with files.using(Watched()):
        ledger = ledger_at(
            tmp_path, put=episodes.append, background=True, sync_ms=1.0, rotate_bytes=500
        )
        (alone,) = open_some(ledger, 1, "alone")
        assert synced.wait(10.0), "written, and a millisecond later synced"
        for _ in range(20):
            keys = open_some(ledger, 4)
            ledger.close(settled(*keys))
        ledger.close(settled(alone))
        ledger.cut("north", seen(0))
        ledger.cut("alone", b"")
        ledger.flush()
        ledger.stop()
    assert not ledger.problems
    assert sorted(key for episode in episodes for key in keys_of(episode)) == list(range(1, 82))
    assert len(logs(tmp_path)) == 1


def test_a_spool_that_fails_for_a_while_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.experience.ledger.spooler._RETRY_S", 0.001)
    spooled = Spooled()
    spooled.full = True
    with no_waiting(), ledger_at(tmp_path, spooled, background=True, segment=1) as ledger:
        keys = open_some(ledger, 2)
        ledger.close(settled(keys[0]))
        with pytest.raises(OSError, match="No space"):
            ledger.flush()
        spooled.full = False
        while ledger.waiting:
            try:
                ledger.flush()
            except OSError:
                continue  # the try that was under way
        assert spooled.keys == [(keys[0],)]


def test_a_spool_that_hangs_does_not_hold_up_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "_PATIENCE_S", 0.01)
    release = threading.Event()
    ledger: Ledger = ledger_at(
        tmp_path, put=lambda _: release.wait(30.0), background=True, segment=1
    )
    keys = open_some(ledger, 2)
    ledger.close(settled(keys[0]))
    ledger.stop()
    assert "until the next start" in ledger.problems[0]
    with pytest.raises(OSError, match="the ledger was stopped"):
        ledger.close(settled(keys[1]))
    again = Spooled()
    ledger_at(tmp_path, again)
    assert again.keys == [(keys[0],)]
    before = logs(tmp_path)
    release.set()
    with pytest.raises(OSError, match="the ledger was stopped"):
        ledger.flush()
    assert logs(tmp_path) == before
