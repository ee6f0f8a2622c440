"""`understudy forget`: what one client of a server taught is set aside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.options import Json


def forget(
    client: Annotated[str, typer.Option(help="The client, as the server named it.")],
    run: Annotated[Path, typer.Option(help="The run folder.")],
    json: Json = False,
) -> None:
    """Set aside everything that one client of a server taught, so that nobody learns from it.

    Its episodes go from buffer and archive to quarantine, with the reason. Nothing is deleted.

    Example: understudy forget --run runs/queen --client c7
    """
    from understudy.core.clock import SystemClock
    from understudy.judging.forgetting import forget as set_aside
    from understudy.telemetry.text import plain, say, say_json

    report = set_aside(run, client, clock=SystemClock())
    if json:
        say_json(report.as_dict())
        return
    for name in report.unread:
        say(f"Unread     {plain(name)}: cannot be read, so nobody knows whose it is")
    say(f"Waiting    {report.waiting} episodes of {plain(client)}, set aside before any learning")
    say(f"Archived   {report.archived} episodes, set aside")
    say(f"Decisions  {report.decisions}")
    if report.learned_by is not None:
        say(f"Learned    version {report.learned_by} is the first that learned from them;")
        say(f"           to go back before it: understudy models rollback VERSION --run {run}")
