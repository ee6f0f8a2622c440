"""`understudy import`: what a ladder gives back, or what the old bot left, into a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import Json
from understudy.cli.output import emit_labelled
from understudy.cli.progress import working


def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="A ladder's data (a .zip or a folder), or old .npz files and folders with some."
        ),
    ],
    run: Annotated[
        Path | None, typer.Option(help="The run folder (default: a new runs/imported-N).")
    ] = None,
    late_rewards: Annotated[
        bool,
        typer.Option(
            "--late-rewards", help="The files have each reward one decision late; move them back."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Take over matches that a bot recorded on a ladder, or what an older bot recorded and learned.

    Of a ladder's data (docs/ladder.md) every match is taken once, however often it is given; --run
    is the run that the bot was exported from. Of an older bot (docs/coming-over.md), experience
    (states, actions, rewards) waits for the learner, and a model (W1 ... b3) becomes the first
    version. The files stay as they are. Exit code 1: some file could not be taken.

    Example: understudy import local_training/data local_training/models --run runs/zerg
    """
    from understudy.core.clock import SystemClock
    from understudy.core.errors import ConfigError
    from understudy.legacy.importing import ImportReport, import_files
    from understudy.legacy.returned import import_returned, is_returned
    from understudy.registry.run_folder import new_run, remember
    from understudy.telemetry.text import plain, say_json

    returned = [path for path in paths if is_returned(path)]
    if returned and run is None:
        raise ConfigError(
            f"--run: {returned[0]} holds matches of a run; name the one that the bot was exported "
            "from"
        )
    target = run or new_run("imported")
    report = ImportReport(target)
    with working("importing", quiet=json) as show:
        if returned:
            taken_back = import_returned(returned, target, clock=SystemClock(), show=show)
            report.lines += taken_back.lines
        old = [path for path in paths if path not in returned]
        if old:
            report.lines += import_files(
                old, target, clock=SystemClock(), late_rewards=late_rewards, show=show
            ).lines
    failed, taken = report.of("failed"), [*report.of("experience"), *report.of("model")]
    if taken:
        remember(target)
    if json:
        say_json(report.as_dict())
        raise typer.Exit(1 if failed else 0)
    rows = [
        ("Not taken", f"{plain(str(line.path))}: {plain(line.reason, limit=400)}")
        for line in failed
    ]
    rows += [("Model", f"{plain(str(line.path))} is version 1") for line in report.of("model")]
    matches, known = len(report.of("experience")), len(report.of("known"))
    rows.append(("Experience", f"{matches:,} matches, {report.decisions:,} decisions"))
    rows.append(("Known", f"{known:,} files came in before"))
    if taken:
        then = f"to learn from it now: understudy learner --run {target}"
        rows.append(("Run folder", f"{target}; {then}"))
    emit_labelled(rows, label_width=11)
    raise typer.Exit(1 if failed else 0)
