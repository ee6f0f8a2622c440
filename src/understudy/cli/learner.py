"""`understudy learner`: the background learner in a terminal of its own."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer


def learner(
    run: Annotated[Path, typer.Option(help="The run folder to learn in.")],
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Learn behind a server: a batch every interval.")
    ] = False,
    gate: Annotated[
        str | None,
        typer.Option(help="The server's gate, to judge again: open, cost, rollout or module:Name."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="What that gate sends more than; default live.threshold.")
    ] = None,
    supervised: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Learn in the background from what bots record in a run folder.

    A bot starts its own learner; run this one where the bot has `learner="off"`, or on another
    machine that shares the folder. Ctrl-C drains what is pending and stops. A server has the
    continuous learner behind it, and starts it by itself too.

    Example: understudy learner --run runs/zerg
    """
    from understudy.core.errors import ConfigError
    from understudy.run.learner import Behind, serve

    if not continuous and (gate is not None or threshold is not None):
        flag = "--gate" if gate is not None else "--threshold"
        raise ConfigError(f"{flag}: expected only together with --continuous")
    if threshold is not None and not math.isfinite(threshold):
        raise ConfigError(f"--threshold: expected a finite number, got {threshold}")
    behind = Behind(gate=gate or "open", threshold=threshold) if continuous else None
    serve(run, supervised=supervised, behind=behind)
