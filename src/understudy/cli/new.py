"""`understudy new`: a folder to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from understudy.cli.output import emit_text
from understudy.core.errors import ConfigError, nearest
from understudy.telemetry.text import say

KINDS = ("sc2-bot",)


def new(
    kind: Annotated[str, typer.Argument(help="What to make: `sc2-bot`.")],
    folder: Annotated[Path, typer.Argument(help="The folder to make; its name is the bot's.")],
) -> None:
    """Make a bot to begin with: rules, strategies, and a program that plays and learns.

    `sc2-bot` is a bot for StarCraft II that learns which of five strategies to follow. It runs as
    it is: against the game, against its stand-in, and where a ladder starts it.

    Example: understudy new sc2-bot my_bot
    """
    if kind not in KINDS:
        raise ConfigError(
            f"new: expected one of {', '.join(KINDS)}, got {kind!r}.{nearest(kind, KINDS)}"
        )
    from understudy.adapters.sc2.template import make_bot
    from understudy.core.dependencies import install_line, not_installed

    for path in make_bot(folder):
        say(str(path))
    run = folder / "run.py"
    say("")
    emit_text(f"python {run} --stand-in: play a small game in the place of StarCraft II")
    emit_text(f"python {run}: play StarCraft II, with a learner beside it")
    missing = not_installed("sc2", "jax")
    if missing:
        emit_text(f"Both need {' and '.join(missing)}: {install_line('sc2')}")
