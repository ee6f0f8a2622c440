"""The page of experience: how old, how often used, what was set aside and why."""

from __future__ import annotations

from pathlib import Path

from run.dashboards import unpacked
from telemetry.entries import batch
from walk.toys import SPEC, SetClock, episode

from understudy.core.clock import SystemClock
from understudy.experience.episode import Meta, Outcome
from understudy.experience.spool import IMPORTS, Spool
from understudy.registry.run_folder import RunFolder
from understudy.screens.dashboard.pages import experience
from understudy.screens.dashboard.run_files import (
    disk_use,
    kind_of_reason,
    quarantine,
    recent_decisions,
)
from understudy.telemetry.events import MatchFinished
from understudy.telemetry.journal import Journal

from .readings import HOSTILE, outlines, reading_of


def ring(root: Path) -> tuple[RunFolder, Spool]:
    folder = RunFolder.open(root, spec=SPEC, config=None, clock=SystemClock())
    return folder, Spool(root, SPEC, folder.clock)


def test_what_waits_is_counted_by_its_age(tmp_path: Path) -> None:
    folder, spool = ring(tmp_path / "run")
    now = folder.clock.time()
    old = Spool(folder.root, SPEC, SetClock(now - 2 * 3600.0))
    names = [spool.put(episode("a")), spool.put(episode("a")), old.put(episode("a"))]
    page = outlines(experience.parts, reading_of(folder.root))
    (label,) = [
        one["aria-label"] for one in page["ages"].of("svg") if "buffer" in one["aria-label"]
    ]
    assert "3 matches: <1m 2; <6h 1" in label
    (oldest, *_) = page["figures"].of("time")
    assert int(oldest["data-at"]) == round(int(min(names)[:20]) / 1e9)


def test_batches_say_how_stale_their_decisions_were(tmp_path: Path) -> None:
    folder, _ = ring(tmp_path / "run")
    journal = Journal(folder.journal, "learner", folder.clock)
    journal.write(batch(version_lag={"0": 5, "4-7": 2}))
    journal.write(batch(version_lag={"0": 1}))
    (chart,) = outlines(experience.parts, reading_of(folder.root))["ages"].of("svg")
    assert "8 decisions: 0 6; 4-7 2" in chart["aria-label"]


def test_a_lag_is_in_the_bucket_that_the_journal_would_have() -> None:
    lags = (0, 1, 2, 3, 4, 7, 8, 127, 128, 10_000)
    found = [experience.lag_bucket(lag) for lag in lags]
    assert found == ["0", "1", "2-3", "2-3", "4-7", "4-7", "8-15", "64-127", "128+", "128+"]


def test_quarantine_names_reasons_files_and_senders(tmp_path: Path) -> None:
    folder, spool = ring(tmp_path / "run")
    tags = {"client": HOSTILE}
    sent = Meta(id="b", outcome=Outcome.VICTORY, finished_at=1.0, tags=tags)
    first, second, third = (
        spool.put(episode("a")),
        spool.put(episode("b", meta=sent)),
        "",
    )
    spool.quarantine(first, f"{first}: holds no decision")
    spool.quarantine(second, f"a number too large to learn from: feature {HOSTILE!r} is 1e30")
    third = spool.put(episode("a"))
    spool.quarantine(third, "a number too large to learn from: feature 'x' is 3e25 in decision 4")
    (spool.quarantined / "odd.npz").write_bytes(b"no zip")
    (spool.quarantined / "odd.npz.reason.json").write_bytes(b"{")
    found = quarantine(reading_of(folder.root))
    assert found.kinds == {
        "holds no decision": 1,
        "a number too large to learn from": 2,
        "its reason cannot be read": 1,
    }
    assert [one.name for one in found.newest] == [third, second, first, "odd.npz"]
    page = outlines(experience.parts, reading_of(folder.root))["quarantine"]
    assert not page.of("script") and first in page.text and "3e25 in decision 4" in page.text
    assert "client </p><script>" in page.text


def test_kinds_of_reasons_leave_out_what_differs_from_file_to_file() -> None:
    kinds = {
        kind_of_reason(f"{name}: actions has shape ({count}, 1), expected (3, 2)", name)
        for name, count in (("a.npz", 3), ("b.npz", 4))
    }
    assert kinds == {"actions has shape expected"}
    assert kind_of_reason("", "a.npz") == "other"


def test_files_are_read_once_and_one_that_moves_is_read_later(tmp_path: Path) -> None:
    folder, spool = ring(tmp_path / "run")
    kept, gone = spool.put(episode("a")), spool.put(episode("a"))
    reading = reading_of(folder.root)
    found = recent_decisions(reading)
    assert found is not None and found.episodes == 2 and found.newest == max(kept, gone)
    spool.archive(kept)
    (spool.buffer / gone).unlink()
    assert recent_decisions(reading) is found  # not looked at again within seconds
    again = recent_decisions(reading_of(folder.root))
    assert again is not None and again.episodes == 1


def test_disk_use_is_by_part_and_holds_every_file(tmp_path: Path) -> None:
    root = unpacked(tmp_path, "ring") / "ring"
    parts = disk_use(reading_of(root))
    files = [path for path in root.rglob("*") if path.is_file()]
    assert sum(one.files for one in parts) == len(files)
    assert sum(one.bytes for one in parts) == sum(path.stat().st_size for path in files)
    assert [one.bytes for one in parts] == sorted((one.bytes for one in parts), reverse=True)


def test_imported_matches_and_lost_ones_are_counted(tmp_path: Path) -> None:
    folder, _ = ring(tmp_path / "run")
    (folder.root / IMPORTS).write_text("import-1 a.npz\nimport-2 b.npz\n", encoding="utf-8")
    lost = MatchFinished(
        id="x", outcome="victory", decisions=1, reward=0.0, version=0, seconds=1.0, saved=False
    )
    Journal(folder.journal, "bot", folder.clock).write(lost)
    text = outlines(experience.parts, reading_of(folder.root))["figures"].text
    assert "Imported2" in text and "Not saved1" in text


def test_an_empty_run_says_so_and_training_has_no_such_page(tmp_path: Path) -> None:
    folder, _ = ring(tmp_path / "run")
    page = outlines(experience.parts, reading_of(folder.root))
    assert (
        "Nothing waits" in page["ages"].text and "Nothing was set aside" in page["quarantine"].text
    )
    assert not experience.offered(reading_of(unpacked(tmp_path, "arena") / "arena"))
    served = reading_of(unpacked(tmp_path, "served") / "served")
    assert experience.offered(served) and outlines(experience.parts, served)["figures"].text


def test_decisions_of_the_rules_alone_are_of_no_version(tmp_path: Path) -> None:
    page = outlines(experience.parts, reading_of(unpacked(tmp_path, "shadow") / "shadow"))
    labels = [one["aria-label"] for one in page["ages"].of("svg")]
    assert labels and not any("Versions behind" in one for one in labels)
