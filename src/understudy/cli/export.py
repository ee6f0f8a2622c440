"""`understudy export`: metrics and episodes of a run as CSV or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from understudy.cli.options import JsonAtEnd, check_folder
from understudy.core.errors import ConfigError, nearest


def export(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")],
    run: Annotated[
        Path | None, typer.Argument(help="The run folder (default: the latest).")
    ] = None,
    as_: Annotated[
        str, typer.Option("--as", help="metrics: from the journal; episodes: every decision.")
    ] = "metrics",
    format_: Annotated[str, typer.Option("--format", help="csv or parquet.")] = "csv",
    force: Annotated[
        bool, typer.Option("--force", help="Replace an earlier export in that folder.")
    ] = False,
    json: JsonAtEnd = False,
) -> None:
    """Write the metrics or the episodes of a run as tables for other programs.

    Metrics are one file for each kind of event: matches, batches, versions, evaluations and more.
    Episodes are one row for each decision, in files of bounded size. docs/exports.md describes
    every column.

    Example: understudy export runs/swarm-1 --as episodes --format parquet -o episodes
    """
    from understudy.cli.progress import working
    from understudy.core.clock import SystemClock
    from understudy.registry.run_folder import RunFolder, latest
    from understudy.screens.exports.export import ExportTarget, export_episodes, export_metrics
    from understudy.screens.exports.schema import ExportFormat, ExportKind
    from understudy.screens.exports.writing import check_installed
    from understudy.telemetry.journal import Reader
    from understudy.telemetry.text import say, say_json, size

    for flag, value, known in (
        ("--as", as_, get_args(ExportKind)),
        ("--format", format_, get_args(ExportFormat)),
    ):
        if value not in known:
            raise ConfigError(
                f"{flag}: expected {' or '.join(known)}, got {value!r}.{nearest(value, known)}"
            )
    form: ExportFormat = "parquet" if format_ == "parquet" else "csv"
    check_installed(form)
    check_folder("--out", out)
    folder = RunFolder.load(run or latest(), SystemClock())
    target = ExportTarget(folder=out, form=form, force=force)
    with working(f"{as_} of {folder.root}", quiet=json) as show:
        if as_ == "metrics":
            entries = Reader(folder.journal).stream(progress=show)
            summary = export_metrics(folder, entries, target)
        else:
            summary = export_episodes(folder, target, progress=show)
    if json:
        say_json(summary)
        return
    for name, table in summary.tables.items():
        count = len(table.files)
        where = table.files[0] if count == 1 else f"{count} files"
        say(f"{name:<20} {table.rows:>10,} rows  {size(table.bytes):>10}  {where}")
    if summary.unreadable:
        first = summary.unreadable_files[0]
        say(f"{summary.unreadable:,} episodes are damaged and left out: {first}")
    say(f"Written to {out}")
