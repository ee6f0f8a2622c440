"""`understudy learner`: the background learner in a terminal of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def learner(
    run: Annotated[Path, typer.Option(help="The run folder to learn in.")],
    supervised: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Learn in the background from what bots record in a run folder.

    A bot starts its own learner; run this one where the bot has `learner="off"`, or on another
    machine that shares the folder. Ctrl-C drains what is pending and stops.

    Example: understudy learner --run runs/zerg
    """
    from understudy.run.learner import serve

    serve(run, supervised=supervised)
