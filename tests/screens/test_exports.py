"""Exports: faithful to what is on disk, whole or not there, and described by docs/exports.md."""

from __future__ import annotations

import csv
import gc
import io
import json
import re
import signal
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from walk.toys import SPEC, episode, open_run, settings, spool_of

from understudy.core import files
from understudy.core.errors import ConfigError
from understudy.core.spaces import MultiBinary, MultiDiscrete
from understudy.experience.episode import Episode
from understudy.registry.run_folder import RunFolder
from understudy.screens.exports import writing
from understudy.screens.exports.episodes import (
    ACTION,
    EPISODES,
    FEATURE,
    action_names,
    decision_columns,
    decisions_table,
)
from understudy.screens.exports.export import ExportTarget, export_episodes, export_metrics
from understudy.screens.exports.metrics import METRICS, metric_rows
from understudy.screens.exports.schema import ExportFormat, ExportTable
from understudy.screens.exports.writing import TableFiles
from understudy.telemetry import events as ev
from understudy.telemetry.journal import Entry

DOCS = Path(__file__).parent.parent.parent / "docs" / "exports.md"
FORMATS: tuple[ExportFormat, ...] = ("csv", "parquet")


def read(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a table in all its files, as text where they come from CSV."""
    rows: list[dict[str, Any]] = []
    for path in sorted(folder.glob(f"{name}*")):
        if path.suffix == ".parquet":
            import pyarrow.parquet

            rows += pyarrow.parquet.read_table(path).to_pylist()
        elif path.suffix == ".csv":
            rows += csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
    return rows


def run_with(root: Path, *many: Episode) -> RunFolder:
    folder = open_run(root, settings())
    spool = spool_of(folder)
    for one in many:
        spool.put(one)
    return folder


def odd_episode(name: str, length: int = 40) -> Episode:
    """Numbers that text easily gets wrong, and all that may be absent."""
    chance = np.random.default_rng(7)
    some = chance.standard_normal((length, 2)).astype(np.float32) * np.float32(1e-30)
    drawn = chance.random(length) < 0.5
    return episode(
        name,
        length=length,
        observations=some,
        rewards=chance.standard_normal(length).astype(np.float32),
        values=chance.standard_normal(length).astype(np.float32) * np.float32(1e20),
        log_probs=np.where(drawn, -chance.random(length), 0).astype(np.float32),
        sampled=drawn,
        actions=np.ones((length, 1), np.int32),
        legal=np.stack([drawn, np.ones(length, np.bool_)], axis=1),
        sent=np.arange(length) % 3 > 0,
        explored=np.arange(length) % 3 == 1,
        expected=np.where(drawn, np.nan, 0.25).astype(np.float32),
        settled=np.arange(length) % 2 == 0,
        cuts=np.arange(length) % 5 == 0,
    )


# --- episodes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_decisions_are_those_of_the_episode_to_the_last_bit(
    tmp_path: Path, form: ExportFormat
) -> None:
    kept = odd_episode("one")
    folder = run_with(tmp_path / "run", kept)
    target = ExportTarget(folder=tmp_path / "out", form=form)
    summary = export_episodes(folder, target, progress=lambda share: None)
    rows = read(tmp_path / "out", "decisions")
    assert len(rows) == len(kept) == summary.tables["decisions"].rows

    def numbers(name: str) -> list[Any]:
        return [None if row[name] in ("", None) else np.float32(row[name]) for row in rows]

    for name, values in (
        ("reward", kept.rewards),
        ("value", kept.values),
        ("feature.a", kept.observations[:, 0]),
        ("feature.b", kept.observations[:, 1]),
        ("action.0", kept.actions[:, 0]),
        ("step", np.arange(len(kept))),
    ):
        assert numbers(name) == list(values), name
    drawn = kept.log_probs, kept.sampled
    known = [value if is_drawn else None for value, is_drawn in zip(*drawn, strict=True)]
    assert numbers("log_prob") == known
    for name, flags in (
        ("sampled", kept.sampled),
        ("executed", kept.sent),
        ("explored", kept.explored),
        ("settled", kept.settled),
        ("cut", kept.cuts),
    ):
        assert flags is not None
        assert [row[name] in (True, "true") for row in rows] == list(flags), name
    assert [row["legal"] for row in rows] == ["11" if one else "01" for one in kept.sampled]
    assert {row["action"] for row in rows} == {"right"}
    assert [one is None for one in numbers("gate_expected")] == list(kept.sampled)


@pytest.mark.parametrize("form", FORMATS)
def test_files_are_bounded_and_no_episode_is_split(
    tmp_path: Path, form: ExportFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = len(decisions_table(SPEC).columns)
    monkeypatch.setattr(writing, "_GROUP", 10)
    monkeypatch.setattr(writing, "_CELLS", 25 * columns)
    folder = run_with(tmp_path / "run", *(episode(f"e{i}", length=7) for i in range(20)))
    out = tmp_path / "out"
    export_episodes(folder, ExportTarget(folder=out, form=form), progress=lambda share: None)
    parts = sorted(out.glob("decisions-*"))
    assert [path.name for path in parts][:2] == [
        f"decisions-00001.{form}",
        f"decisions-00002.{form}",
    ]
    homes: dict[str, set[str]] = {}
    for path in parts:
        rows = read(out, path.stem)
        assert len(rows) <= 25 + 14
        for row in rows:
            homes.setdefault(row["episode"], set()).add(path.name)
    assert len(homes) == 20 and all(len(home) == 1 for home in homes.values())


def test_damaged_episodes_are_left_out_and_named(tmp_path: Path) -> None:
    folder = run_with(tmp_path / "run", episode("good"))
    (folder.root / "buffer" / "bad.npz").write_bytes(b"no episode")
    out = tmp_path / "out"
    target = ExportTarget(folder=out, form="csv")
    summary = export_episodes(folder, target, progress=lambda share: None)
    assert summary.unreadable == 1 and "bad.npz" in summary.unreadable_files[0]
    assert [row["episode"] for row in read(out, "episodes-")] == ["good"]


def test_names_of_actions() -> None:
    pairs = np.array([[0, 0], [1, 0], [1, 1]])
    assert action_names(pairs, MultiBinary(("left", "jump"))) == ["", "left", "left+jump"]
    assert action_names(pairs, MultiDiscrete((2, 2))) == ["0/0", "1/0", "1/1"]


# --- metrics -------------------------------------------------------------------------------------


def example(kind: Any) -> Any:
    """A value of a field's type."""
    plain = {int: 3, float: 0.1, str: "a\x00b", bool: True}
    if kind in plain:
        return plain[kind]
    container = typing.get_origin(kind)
    return container() if container in (tuple, dict, list) else None


def every_event() -> list[ev.Event]:
    """One event of each kind, with a value in every field that has no default."""
    made = []
    for kind in ev.Event.__args__:
        fields = msgspec.structs.fields(kind)
        values = {field.name: example(field.type) for field in fields if field.required}
        made.append(kind(**values))
    tally = ev.OpponentTally(1, 2, 3, 0.5)
    return [
        *made,
        ev.MatchesTrained(steps=1, results={"a": (1, 2, 3, 4)}, returns={"a": 0.5}, matches=2),
        ev.CheckpointJudged(steps=1, version=1, seconds=1.0, opponents={"a": tally}, matches=4),
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_every_event_is_exported(tmp_path: Path, form: ExportFormat) -> None:
    folder = run_with(tmp_path / "run")
    entries = [Entry(t=float(t), by="bot", e=one) for t, one in enumerate(every_event())]
    target = ExportTarget(folder=tmp_path / "out", form=form)
    summary = export_metrics(folder, entries, target)
    assert summary.tables.keys() == METRICS.keys()
    times = {
        float(row["at"]) for name in METRICS for row in read(tmp_path / "out", f"{name}.{form}")
    }
    without = {1.0 * t for t, one in enumerate(entries) if not list(metric_rows(one))}
    assert times | without == {entry.t for entry in entries}
    problem = read(tmp_path / "out", f"problems.{form}")[0]
    assert problem["message"] == r"a\x00b"


def test_a_row_fits_its_table() -> None:
    for one in every_event():
        for name, cells in metric_rows(Entry(t=0.0, by="bot", e=one)):
            assert len(cells) == len(METRICS[name].columns), name


# --- whole or not there --------------------------------------------------------------------------


def test_an_earlier_export_is_replaced_only_by_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_with(tmp_path / "run", *(episode(f"e{i}", length=7) for i in range(20)))
    out = tmp_path / "out"
    target = ExportTarget(folder=out, form="csv")
    with monkeypatch.context() as small:
        small.setattr(writing, "_GROUP", 10)
        small.setattr(writing, "_CELLS", 25 * len(decisions_table(SPEC).columns))
        export_episodes(folder, target, progress=lambda share: None)
    assert (out / "decisions-00003.csv").exists()
    (out / "mine.txt").write_text("keep me", encoding="utf-8")
    (out / "decisions-00099.csv").write_text("mine, too", encoding="utf-8")
    with pytest.raises(Exception, match=r"holds episodes\.json already.*--force"):
        export_episodes(folder, target, progress=lambda share: None)
    again = ExportTarget(folder=out, form="parquet", force=True)
    export_episodes(folder, again, progress=lambda share: None)
    assert sorted(path.name for path in out.iterdir()) == [
        "decisions-00001.parquet",
        "decisions-00099.csv",
        "episodes-00001.parquet",
        "episodes.json",
        "mine.txt",
    ]


def test_force_removes_no_file_that_an_export_did_not_write(tmp_path: Path) -> None:
    folder, out = run_with(tmp_path / "run"), tmp_path / "out"
    out.mkdir()
    for name in ("notes.csv", "matches.csv"):
        (out / name).write_text("mine", encoding="utf-8")
    entries = [Entry(t=0.0, by="bot", e=one) for one in every_event()]
    entries = [one for one in entries if "notes" not in dict(metric_rows(one))]
    with pytest.raises(ConfigError, match=r"holds matches\.csv already.*--force"):
        export_metrics(folder, entries, ExportTarget(folder=out, form="csv"))
    for form in FORMATS:  # the first finds no summary, the second that of the first
        export_metrics(folder, entries, ExportTarget(folder=out, form=form, force=True))
        assert (out / "notes.csv").read_text(encoding="utf-8") == "mine"
    assert not (out / "matches.csv").exists() and (out / "matches.parquet").exists()


@pytest.mark.parametrize("other", [b"no JSON", b'{"what": "\xff"}', b'{"what": 0.5}'])
def test_a_file_that_is_no_summary_is_not_replaced(tmp_path: Path, other: bytes) -> None:
    folder, out = run_with(tmp_path / "run", episode("one")), tmp_path / "out"
    out.mkdir()
    (out / "episodes.json").write_bytes(other)
    target = ExportTarget(folder=out, form="csv", force=True)
    with pytest.raises(ConfigError, match=r"episodes\.json is not the summary of an export"):
        export_episodes(folder, target, progress=lambda share: None)
    assert [path.name for path in out.iterdir()] == ["episodes.json"]
    assert (out / "episodes.json").read_bytes() == other


def test_an_export_that_fails_leaves_no_half_file(tmp_path: Path) -> None:
    folder = run_with(tmp_path / "run", episode("one"), episode("two"))

    def fail(share: float) -> None:
        raise RuntimeError("in the middle")

    for form in FORMATS:
        out = tmp_path / form
        with pytest.raises(RuntimeError, match="in the middle"):
            export_episodes(folder, ExportTarget(folder=out, form=form), progress=fail)
        assert not list(out.iterdir())


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("full", [False, True])
def test_a_file_that_was_begun_does_not_come_back(
    tmp_path: Path, form: ExportFormat, full: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "_GROUP", 1)

    class Filling(files.Disk):
        full = False

        def append(self, path: Path, data: bytes) -> None:
            if self.full:
                raise OSError(28, "No space left on device")
            super().append(path, data)

    def begin_and_fail() -> None:
        with TableFiles(tmp_path, ExportTable("t", EPISODES.columns[:1]), form) as into:
            into.add([["x"]])
            assert list(tmp_path.iterdir())
            if not full:
                raise OSError("in the middle")
            disk.full = True
            into.add([["y"]])

    disk = Filling()
    words = "No space left" if full else "in the middle"
    with files.using(disk), pytest.raises(OSError, match=words):
        begin_and_fail()
    gc.collect()
    assert not list(tmp_path.iterdir())


_KILLED = """
import os, signal, sys
from pathlib import Path
from understudy.core.clock import SystemClock
from understudy.registry.run_folder import RunFolder
from understudy.screens.exports import writing
from understudy.screens.exports.export import ExportTarget, export_episodes

writing._GROUP, writing._CELLS = 10, 25 * 18

def die(share):
    if share > 0.7:
        os.kill(os.getpid(), signal.SIGKILL)

folder = RunFolder.load(Path(sys.argv[1]), SystemClock())
export_episodes(folder, ExportTarget(folder=Path(sys.argv[2]), form=sys.argv[3]), progress=die)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
@pytest.mark.parametrize("form", FORMATS)
def test_a_killed_export_leaves_whole_files_and_no_summary(
    tmp_path: Path, form: ExportFormat
) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    folder = run_with(run, *(episode(f"e{i}", length=7) for i in range(20)))
    done = subprocess.run([sys.executable, "-c", _KILLED, run, out, form], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert not (out / "episodes.json").exists()
    parts = sorted(out.glob("decisions-*"))
    assert parts
    for path in parts:
        counts: dict[str, int] = {}
        for row in read(out, path.stem):
            counts[row["episode"]] = counts.get(row["episode"], 0) + 1
        assert set(counts.values()) == {7}
    target = ExportTarget(folder=out, form=form, force=True)
    summary = export_episodes(folder, target, progress=lambda share: None)
    assert summary.tables["decisions"].rows == 140
    assert json.loads((out / "episodes.json").read_bytes())["tables"]["episodes"]["rows"] == 20


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    table = ExportTable("t", EPISODES.columns[:1])

    class Full(files.Disk):
        def sync(self, path: Path) -> None:
            raise OSError(28, "No space left on device")

    with (
        files.using(Full()),
        pytest.raises(OSError, match="No space left"),
        TableFiles(tmp_path, table, "csv") as into,
    ):
        into.add([["x"]])
    assert not list(tmp_path.iterdir())


# --- the documented schema -----------------------------------------------------------------------


def documented() -> dict[str, list[tuple[str, str]]]:
    """By heading, the columns of its table and their kinds."""
    found: dict[str, list[tuple[str, str]]] = {}
    heading = ""
    for line in DOCS.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif match := re.match(r"\| `([^`]+)` \| (\w+) \| \S", line):
            found.setdefault(heading, []).append((match[1], match[2]))
    return found


def test_every_column_is_documented() -> None:
    page = documented()
    head = page.pop("Rules for all exports")
    for name, table in METRICS.items():
        assert [*head, *page[name]] == list(table.columns), name
    assert page["episodes"] == list(EPISODES.columns)
    patterns = [(f"{ACTION}N", "integer"), (f"{FEATURE}NAME", "float32")]
    general = [column for column in decisions_table(SPEC).columns if "." not in column.name]
    assert page["decisions"] == [*general, *patterns]
    columns = decision_columns(episode("one"), SPEC)
    assert len(columns) == len(decisions_table(SPEC).columns)
