"""`understudy forget`: what one client of a server taught is set aside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import Json
from understudy.cli.output import emit_labelled


def forget(
    client: Annotated[str, typer.Option(help="The client, as the server named it.")],
    run: Annotated[Path, typer.Option(help="The run folder.")],
    json: Json = False,
) -> None:
    """Set aside everything that one client of a server taught, so that no learner uses it.

    Its episodes go from buffer and archive to quarantine, with the reason. Nothing is deleted.

    Example: understudy forget --run runs/queen --client c7
    """
    from understudy.core.clock import SystemClock
    from understudy.judging.forgetting import forget as set_aside
    from understudy.telemetry.text import plain, say_json

    report = set_aside(run, client, clock=SystemClock())
    if json:
        say_json(report.as_dict())
        return
    rows = [
        ("Unread", f"{plain(name)}: cannot be read, so its client is not known")
        for name in report.unread
    ]
    waiting = f"{report.waiting} episodes of {plain(client)}, set aside before any learning"
    rows += [
        ("Waiting", waiting),
        ("Archived", f"{report.archived} episodes, set aside"),
        ("Decisions", f"{report.decisions}"),
    ]
    if report.learned_by is not None:
        words = f"version {report.learned_by} is the first that learned from them; "
        back = f"to go back before it: understudy models rollback VERSION --run {run}"
        rows.append(("Learned", words + back))
    emit_labelled(rows, label_width=11)
