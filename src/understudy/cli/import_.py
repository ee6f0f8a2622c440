"""`understudy import`: experience and models of the old bot, into a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import Json
from understudy.cli.output import emit_labelled
from understudy.cli.progress import working


def import_(
    paths: Annotated[list[Path], typer.Argument(help="Old .npz files, or folders that hold some.")],
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
    """Take over what an older bot recorded and learned (docs/coming-over.md).

    Experience (states, actions, rewards) waits for the learner; a model (W1 ... b3) becomes the
    first version. The files stay as they are; what came in before is passed over. Exit code 1: some
    file could not be taken.

    Example: understudy import local_training/data local_training/models --run runs/zerg
    """
    from understudy.core.clock import SystemClock
    from understudy.legacy.importing import import_files
    from understudy.registry.run_folder import new_run, remember
    from understudy.telemetry.text import plain, say_json

    target = run or new_run("imported")
    with working("importing", quiet=json) as show:
        report = import_files(
            paths, target, clock=SystemClock(), late_rewards=late_rewards, show=show
        )
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
