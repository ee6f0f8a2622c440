"""Exports a run: streams its journal or its episodes into the files of tables."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import msgspec

from understudy import __version__
from understudy.core import files
from understudy.core.arrays import read_bytes
from understudy.core.errors import ConfigError, FileFormatError, RunFolderError
from understudy.experience import episode as episode_files
from understudy.experience.episode import Episode
from understudy.experience.spool import files_of
from understudy.registry.run_folder import RunFolder
from understudy.screens.exports.episodes import (
    EPISODES,
    decision_columns,
    decisions_table,
    episode_row,
)
from understudy.screens.exports.metrics import METRICS, metric_rows
from understudy.screens.exports.schema import ExportFormat, ExportKind, ExportTable
from understudy.screens.exports.writing import TableFiles, files_named_like
from understudy.telemetry.journal import Entry
from understudy.telemetry.text import plain

SCHEMA = 1
_ROWS = 1_000
"""Rows of metrics that are handed over together."""
_SPOOL = ("buffer", "archive", "quarantine")
_NAMED = 20
"""Unreadable files that a summary names."""


class ExportedTable(msgspec.Struct, frozen=True):
    """What became of one table."""

    rows: int
    bytes: int
    files: tuple[str, ...]
    columns: dict[str, str]
    """The kind of each column."""


class ExportSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`metrics.json` or `episodes.json`, written last: the export beside it is whole."""

    schema: int = SCHEMA
    what: ExportKind
    format: ExportFormat
    run: str
    game: str
    made_at: float
    understudy: str = __version__
    tables: dict[str, ExportedTable]
    unreadable: int = 0
    """Files of episodes that are damaged."""
    unreadable_files: tuple[str, ...] = ()
    """The first of them."""


@dataclass(frozen=True, kw_only=True)
class ExportTarget:
    """Where an export goes, and as what."""

    folder: Path
    form: ExportFormat
    force: bool = False

    def begin(self, what: ExportKind, tables: Iterable[ExportTable]) -> None:
        """Make the folder, and remove the export whose summary is there; ConfigError where it is
        not to be replaced. Other files stay; `force` lets the new export replace those that have
        the names of its own."""
        summary = self.folder / f"{what}.json"
        there = [summary] if summary.exists() else []
        there += files_named_like(self.folder, tables)
        if there and not self.force:
            raise ConfigError(
                f"--out {self.folder}: holds {there[0].name} already; name another folder, or "
                "replace it with --force"
            )
        files.make_folders(self.folder)
        files.sweep(self.folder)
        if summary in there:
            listed = _listed(summary)
            # The summary goes first: it says that the files are whole.
            for path in there:
                if path == summary or path.name in listed:
                    files.remove(path)

    def end(self, summary: ExportSummary) -> None:
        data = msgspec.json.format(msgspec.json.encode(summary), indent=1)
        files.write_atomic(self.folder / f"{summary.what}.json", data + b"\n")


def export_metrics(
    folder: RunFolder, entries: Iterable[Entry], target: ExportTarget
) -> ExportSummary:
    """Write the tables of a journal, in the order of its entries."""
    stream = iter(entries)
    first = next(stream, None)
    if first is None:
        raise RunFolderError(f"{folder.root}: nothing to export: its journal is empty")
    target.begin("metrics", METRICS.values())
    with contextlib.ExitStack() as stack:
        tables: dict[str, _Rows] = {}
        for entry in chain([first], stream):
            for name, cells in metric_rows(entry):
                if name not in tables:
                    made = TableFiles(target.folder, METRICS[name], target.form)
                    tables[name] = _Rows(stack.enter_context(made))
                tables[name].add(cells)
        for rows in tables.values():
            rows.flush()
    written = {name: _exported(METRICS[name], rows.into) for name, rows in sorted(tables.items())}
    summary = _summary(folder, "metrics", target, written)
    target.end(summary)
    return summary


def export_episodes(
    folder: RunFolder, target: ExportTarget, *, progress: Callable[[float], None]
) -> ExportSummary:
    """Write every decision of every episode that is on disk, oldest first."""
    found = files_of(folder.root)
    if not found:
        raise RunFolderError(
            f"{folder.root}: has no episodes on disk. `train` keeps none; --as metrics has the "
            "results of its matches"
        )
    decisions = decisions_table(folder.spec)
    target.begin("episodes", (EPISODES, decisions))
    unreadable: list[str] = []
    with contextlib.ExitStack() as stack:
        into = stack.enter_context(TableFiles(target.folder, EPISODES, target.form))
        rows = stack.enter_context(TableFiles(target.folder, decisions, target.form))
        for count, name in enumerate(sorted(found), start=1):
            try:
                episode, where = _read(folder, found[name])
            except FileFormatError as error:
                unreadable.append(plain(str(error)))
            except FileNotFoundError:
                pass  # pruned since it was listed
            else:
                into.add(episode_row(episode, where))
                rows.add(decision_columns(episode, folder.spec))
            progress(count / len(found))
    written = {"episodes": _exported(EPISODES, into), "decisions": _exported(decisions, rows)}
    summary = _summary(folder, "episodes", target, written, unreadable=unreadable)
    target.end(summary)
    return summary


def _listed(summary: Path) -> set[str]:
    """The files of the export that a summary describes."""
    try:
        earlier = msgspec.json.decode(summary.read_bytes(), type=ExportSummary)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"--out {summary.parent}: {summary.name} is not the summary of an export ({error}); "
            "name another folder, or remove that file"
        ) from error
    return {name for table in earlier.tables.values() for name in table.files}


@dataclass
class _Rows:
    """Rows on their way into the files of a table."""

    into: TableFiles
    waiting: list[tuple[object, ...]] = field(default_factory=list)

    def add(self, cells: tuple[object, ...]) -> None:
        self.waiting.append(cells)
        if len(self.waiting) >= _ROWS:
            self.flush()

    def flush(self) -> None:
        if self.waiting:
            self.into.add(list(zip(*self.waiting, strict=True)))
            self.waiting = []


def _read(folder: RunFolder, path: Path) -> tuple[Episode, Path]:
    """An episode and where it is: a learner may have moved it since it was listed."""
    for place in _places(folder, path):
        with contextlib.suppress(FileNotFoundError):
            data = read_bytes(place, limit=episode_files.MAX_BYTES)
            return episode_files.decode(data, folder.spec, what=place.name), place
    raise FileNotFoundError(str(path))


def _places(folder: RunFolder, path: Path) -> Iterator[Path]:
    yield path
    yield from (folder.root / name / path.name for name in _SPOOL if name != path.parent.name)


def _exported(table: ExportTable, into: TableFiles) -> ExportedTable:
    columns = {column.name: column.kind for column in table.columns}
    return ExportedTable(into.rows, into.bytes, tuple(into.names), {**columns})


def _summary(
    folder: RunFolder,
    what: ExportKind,
    target: ExportTarget,
    tables: dict[str, ExportedTable],
    *,
    unreadable: list[str] | None = None,
) -> ExportSummary:
    lost = unreadable or []
    return ExportSummary(
        what=what,
        format=target.form,
        run=str(folder.root),
        game=folder.identity.game,
        made_at=folder.clock.time(),
        tables=tables,
        unreadable=len(lost),
        unreadable_files=tuple(lost[:_NAMED]),
    )
